"""What a timing process is told and what it answers: a dialogue, one strict-JSON line a message."""

from __future__ import annotations

from dataclasses import dataclass

from ci.measure.batch import Batch
from ci.measure.messages import SetupFailed


@dataclass(frozen=True, kw_only=True, slots=True)
class Open:
    """Take the device and load the suites. The first command of a process."""

    suites: tuple[str, ...]
    """Folders; no two of their ladders have one name."""
    cache: str
    """Folder of the compile cache."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Find out how long one launch takes."""

    case: str
    baseline: bool
    """Whether to run the vendor library's routine instead of the stage."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """Place the operands, record the batch, warm up."""

    case: str
    baseline: bool
    batch: Batch
    verify: bool
    """Whether to show that every operand set is worked on, and its result right."""
    warm_up_s: float
    """Least time to replay the batch before it is ready."""
    more: int = 0
    """Launches that each sample holds beyond those it is divided by: a slowdown that is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Replay the batch once untimed, then so often timed."""

    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Drop:
    """Give the operands' memory back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """The device is taken, the suite loaded."""

    l2_bytes: int
    tick_s: float
    """Tick of the event timer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimated:
    """How long one launch takes, and how large its operands are."""

    launch_s: float
    set_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """The batch is warm."""

    sample_s: float
    """How long a replay takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampled:
    """The timed replays."""

    launch_s: tuple[float, ...]
    """Seconds a launch, a replay each, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropped:
    """The memory is free."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """The case cannot be timed here; the process goes on."""

    message: str
    harmless: bool = False
    """Whether nothing was launched, so that the process is as good as before."""


Command = Open | Estimate | Load | Sample | Drop
Reply = Opened | Estimated | Loaded | Sampled | Dropped | Refused | SetupFailed
