"""The data contract: what a run and a gate leave behind. Plain frozen data."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from ci.results.observed import (
    Counters,
    Finding,
    LineCounters,
    MachineState,
    Measurement,
    StaticFigures,
    SubCheck,
)

__all__ = [
    "SCHEMA_VERSION",
    "CaseResult",
    "CaseVerdict",
    "Change",
    "Counters",
    "Finding",
    "GateResult",
    "GateRun",
    "LineCounters",
    "Machine",
    "MachineState",
    "Measurement",
    "Outcome",
    "Pair",
    "Revision",
    "Round",
    "RunRecord",
    "StageResult",
    "StaticFigures",
    "Status",
    "SubCheck",
    "Timing",
    "Word",
]

SCHEMA_VERSION = 1
"""Version of the stored form of RunRecord and GateResult."""


class Status(enum.StrEnum):
    """What became of a case in one run."""

    PASSED = "PASSED"
    INCORRECT = "INCORRECT"
    """Wrong numbers, or a finding: undefined behaviour is not correct, whatever it computed."""
    COMPILE_ERROR = "COMPILE_ERROR"
    LAUNCH_ERROR = "LAUNCH_ERROR"
    TIMEOUT = "TIMEOUT"
    SKIPPED = "SKIPPED"
    NOT_EMULATED = "NOT_EMULATED"


class Word(enum.StrEnum):
    """The verdict on one case."""

    UNCHANGED = "UNCHANGED"
    IMPROVEMENT = "IMPROVEMENT"
    REGRESSION = "REGRESSION"
    INCONCLUSIVE = "INCONCLUSIVE"
    INCORRECT = "INCORRECT"
    ERROR = "ERROR"
    NEW = "NEW"
    MISSING = "MISSING"
    NOT_EMULATED = "NOT_EMULATED"


class Outcome(enum.StrEnum):
    """The verdict of a whole gate."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True, slots=True)
class StageResult:
    """What holds for a stage whatever the size."""

    ladder: str
    stage: str
    source_digest: str
    """sha256 of the flattened source text, hexadecimal; empty if it could not be read."""
    identity: Mapping[str, str]
    """Architecture → digest of the cubin built without line information."""
    static: tuple[StaticFigures, ...]
    subchecks: tuple[SubCheck, ...]
    """The correctness plan, run once a stage; its failures fail every case of the stage."""
    findings: tuple[Finding, ...]
    """Findings of the plan's launches."""
    error: str
    """Compiler's or loader's message, with file and line; empty if the stage builds."""
    seconds: float
    """Wall time spent on the stage's build and plan (s)."""
    counters: Counters | None = None
    """Sum over the plan's launches: what only other layouts and edges cost shows here.
    None unless the plan passed on a device that counts."""
    lines: tuple[LineCounters, ...] = ()
    """The sum per source line, in file and line order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseResult:
    """What one run found out about one case."""

    id: str
    suite: str
    ladder: str
    stage: str
    size: Mapping[str, int]
    role: str
    """``perf`` or ``check``."""
    status: Status
    reason: str
    """Why not PASSED; empty if PASSED."""
    subcheck: SubCheck | None
    """The check at the case's own size; None if it was not launched."""
    findings: tuple[Finding, ...]
    counters: Counters | None
    """None unless PASSED on a device that counts."""
    lines: tuple[LineCounters, ...]
    """Per source line, in file and line order."""
    flops: int
    compulsory_bytes: int
    seconds: float
    """Wall time the device worked on the case (s); says nothing of the kernel's speed."""
    cold: Measurement | None = None
    hot: Measurement | None = None
    baseline: Measurement | None = None
    """The vendor library's routine on the same operands in the same run, cold."""

    def __post_init__(self) -> None:
        """Hold the contract: counters only of a passed case, a reason otherwise."""
        if self.status is Status.PASSED and self.reason:
            msg = f"{self.id}: PASSED with a reason ({self.reason})"
            raise ValueError(msg)
        if self.status is not Status.PASSED and not self.reason:
            msg = f"{self.id}: {self.status} without a reason"
            raise ValueError(msg)
        if self.status is not Status.PASSED and self.counters is not None:
            msg = f"{self.id}: counters are kept of a PASSED case only, this one is {self.status}"
            raise ValueError(msg)
        if self.status is not Status.PASSED and (self.cold or self.hot):
            msg = f"{self.id}: times are kept of a PASSED case only, this one is {self.status}"
            raise ValueError(msg)


@dataclass(frozen=True, kw_only=True, slots=True)
class Revision:
    """Which code a run is about."""

    commit: str
    """Full hash; ``-dirty-`` and 12 digits of the tree's digest follow for an edited tree;
    ``tree-`` and 12 digits where there is no git."""
    subject: str
    """First line of the commit message; empty if unknown."""
    committed: str
    """Commit date, ISO 8601 with offset; empty if unknown."""
    parents: tuple[str, ...]
    """Full hashes; empty if unknown or a root commit."""
    described: str
    """What the user asked for: ``HEAD~1``, ``working tree``, a folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """What a run ran on; records of two different machines are never compared."""

    name: str
    """Folder of its records: ``simulator``, or GPU model and runner slot."""
    device: str
    """``simulator`` or ``cuda``."""
    versions: Mapping[str, str]
    """Component → version: flopwatch, nvrtc, nvdisasm, numpy, python."""
    architectures: tuple[str, ...]
    """Architectures that were compiled."""
    origin: str
    """``installed`` or ``checkout``: where flopwatch itself was loaded from."""
    peaks: Mapping[str, float] = field(default_factory=dict)
    """Roofs of the machine: ``float32_flop_per_s`` at the highest clock, ``copy_bytes_per_s`` as
    measured by a device-to-device copy. Empty without a GPU."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """All cases of one revision on one machine."""

    schema_version: int
    run: str
    """Id of the run, unique in its folder: UTC start time and a random suffix."""
    started: str
    """UTC, ISO 8601."""
    revision: Revision
    machine: Machine
    complete: bool
    """False if the run was interrupted: cases may be absent."""
    selection: str
    """The ``-k`` expression; empty: every case."""
    error: str
    """Why the suite did not load; empty if it did."""
    stages: tuple[StageResult, ...]
    cases: tuple[CaseResult, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One figure that differs between base and head."""

    metric: str
    """Field of Counters or StaticFigures."""
    where: str
    """Architecture and variant of a static figure, ``plan`` for the sum over the correctness
    plan's launches; empty for a counter of the case's own launch."""
    base: float
    head: float
    fails: bool
    """True if a change in this direction fails the gate."""
    improves: bool
    """True if it is for the better in a figure that can fail."""
    place: str
    """``file:line`` of the line that changed most; empty if there is none."""
    place_text: str
    """That source line."""
    place_base: int
    """The line's own figure at base."""
    place_head: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """What the timing rule concluded about one case."""

    setting: str
    """``standard`` or ``sensitive``: the margins in force."""
    ratio: float
    """Estimate of head's time over base's; above 1 is slower."""
    low: float
    """Lower end of the ratio's interval."""
    high: float
    rounds: int
    """Rounds that the estimate rests on."""
    base_s: float
    """Median of base's samples (seconds a launch)."""
    head_s: float
    smallest_detectable: float
    """Ratio that a case as noisy as this one would have shown; 0 where a verdict was reached."""
    other_setting: Word
    """What the other setting says of the same rounds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseVerdict:
    """The verdict on one case, and why."""

    id: str
    ladder: str
    stage: str
    verdict: Word
    code: str
    """Reason code, stable for programs: ``identical``, ``counters``, ``findings``, ``removed`` …"""
    reason: str
    """One sentence for people, with figures and the source line."""
    base: str
    """Base's status or ``absent``."""
    head: str
    changes: tuple[Change, ...]
    """Worst first."""
    findings: tuple[Finding, ...]
    """Head's findings."""
    wrong: tuple[SubCheck, ...]
    """Head's failed sub-checks."""
    acknowledged: str
    """The reason given in the acknowledgement that covers this verdict; empty if none."""
    timing: Timing | None = None
    """None if the case was not timed in this gate."""

    @property
    def fails(self) -> bool:
        """Return whether this verdict fails the gate."""
        never_covered = self.verdict in (Word.INCORRECT, Word.ERROR)
        coverable = self.verdict in (Word.REGRESSION, Word.MISSING)
        return never_covered or (coverable and not self.acknowledged)


@dataclass(frozen=True, kw_only=True, slots=True)
class GateResult:
    """The verdict of a gate: what verdict.json holds."""

    schema_version: int
    verdict: Outcome
    sentence: str
    """One line: the result and the next step."""
    base: Revision | None
    """None: head was checked alone."""
    head: Revision
    machine: Machine
    started: str
    seconds: float
    notes: tuple[str, ...]
    """What a reader must know: head checked alone and why, cases left to a GPU, interrupted …"""
    cases: tuple[CaseVerdict, ...]
    counts: Mapping[str, int]
    """Verdict word → number of cases, words with none left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A base sample and a head sample, neighbours in time."""

    base_s: float
    """Seconds a launch."""
    head_s: float
    base_first: bool
    """Which of the two was taken first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One case in one pair of fresh processes, one a side."""

    case: str
    """Case id."""
    number: int
    """From 0; every round starts both processes anew."""
    base_started_first: bool
    """Which side started and allocated first; alternates from round to round."""
    pairs: tuple[Pair, ...]
    base_state: MachineState
    head_state: MachineState
    invalid: str
    """Why the round does not count, from the machine's state alone; empty if it does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GateRun:
    """Every sample of a timed gate."""

    schema_version: int
    run: str
    started: str
    base: Revision
    head: Revision
    machine: Machine
    method_version: int
    launches_per_sample: Mapping[str, int]
    """Case id → launches in one sample."""
    rounds: tuple[Round, ...]
    fixed_s: float
    """GPU time that no case causes: starting processes, warming up (s)."""
    case_s: Mapping[str, float]
    """Case id → GPU time spent on its rounds (s)."""
    fault: str = ""
    """What is wrong by its controls, so that no time of this gate counts; empty if nothing is."""
