"""What a worker process is asked and what it answers: one strict-JSON line a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ci.results.explanation import Explanation
from ci.results.model import (
    CaseResult,
    Counters,
    Finding,
    LineCounters,
    StageResult,
    Status,
    SubCheck,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspect:
    """Load a suite, compile every stage and read what the compiler tells."""

    suite: str
    """Folder of the suite."""
    architectures: tuple[str, ...]
    device: str
    """``cuda`` or ``simulator``; for ``cuda`` the GPU's own architecture is compiled too."""
    cache: str
    """Folder of the compile cache."""
    selection: str
    """``-k`` expression: only stages with a selected case are compiled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """Run the correctness plan of one stage, then its cases."""

    suite: str
    architectures: tuple[str, ...]
    device: str
    cache: str
    ladder: str
    stage: str
    cases: tuple[str, ...]
    """Ids of the cases to run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Explain:
    """Count one case on the simulator, line by line."""

    suite: str
    cache: str
    case: str
    """Its id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """Open the GPU and tell of it what only that tells."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TryTile:
    """Compile a stage with another tile and check it on the GPU at its ladder's check sizes."""

    suite: str
    cache: str
    ladder: str
    stage: str
    tile: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeTiles:
    """Time a stage with each of some tiles on the GPU, at its ladder's first size."""

    suite: str
    cache: str
    ladder: str
    stage: str
    tiles: tuple[Mapping[str, int], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseFacts:
    """What is known of a case before it runs."""

    id: str
    suite: str
    ladder: str
    stage: str
    size: Mapping[str, int]
    role: str
    devices: tuple[str, ...]
    flops: int
    compulsory_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteLoaded:
    """First answer to Inspect."""

    cases: tuple[CaseFacts, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class StageInspected:
    """One stage compiled, or refused by the compiler; the plan has not run yet."""

    result: StageResult


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanChecked:
    """The correctness plan of a stage is through."""

    ladder: str
    stage: str
    status: Status
    reason: str
    subchecks: tuple[SubCheck, ...]
    findings: tuple[Finding, ...]
    counters: Counters | None
    lines: tuple[LineCounters, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseDone:
    """A case is through."""

    result: CaseResult


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """A case is explained."""

    explanation: Explanation


@dataclass(frozen=True, kw_only=True, slots=True)
class Surveyed:
    """The GPU works."""

    copy_bytes_per_s: float
    """Measured rate of a copy in device memory, bytes read and written."""
    cublas: str
    """Version of the library as it says itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TileTried:
    """A tile is compiled and checked."""

    status: Status
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TileTimed:
    """A tile is timed; no samples: it cannot be, for the reason given."""

    tile: Mapping[str, int]
    samples_s: tuple[float, ...]
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteFailed:
    """The suite does not load; the message is for people."""

    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SetupFailed:
    """This machine lacks something; the fault is not the suite's."""

    message: str


Job = Inspect | Check | Explain | Survey | TryTile | TimeTiles
Answer = (
    SuiteLoaded
    | StageInspected
    | PlanChecked
    | CaseDone
    | Explained
    | Surveyed
    | TileTried
    | TileTimed
    | SuiteFailed
    | SetupFailed
)
