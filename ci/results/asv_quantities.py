"""What asv is shown of a record: one benchmark a quantity, one unit for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ci.results.model import (
    CaseResult,
    Counters,
    Measurement,
    StageResult,
    StaticFigures,
    Status,
)

Parameters = tuple[str, ...]
"""A benchmark's parameters: (stage,) or (stage, size)."""

Figure = float | tuple[float, ...]
"""An exact figure, or the samples of a time."""

PARAMETER_NAMES = ("stage", "size")

TIMED = "perf"
"""Role of the sizes a GPU times."""
COUNTED = "check"
"""Role of the sizes every device checks and counts."""

_STATIC_ARCHITECTURE = "sm_90"
"""The architecture whose figures are shown: the same on every machine, so that they compare."""

TIMING_METHOD = 1
"""Method version of the times that are shown: figures of two methods are no history."""

_MS_PER_S = 1_000
_NOT_TRIED = (Status.SKIPPED, Status.NOT_EMULATED)


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseQuantity:
    """A quantity of a case: parameters are stage and size."""

    name: str
    """Last part of the benchmark's name; never changed, since asv's history hangs on it."""
    unit: str
    meaning: str
    """Shown by asv where it would show the benchmark's code."""
    role: str
    """Role of the sizes that are shown."""
    of: Callable[[CaseResult], Figure | None]
    """The figure, None where the case has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StageQuantity:
    """A quantity of a stage, whatever the size: the only parameter is the stage."""

    name: str
    unit: str
    meaning: str
    of: Callable[[StageResult], Figure | None]


Quantity = CaseQuantity | StageQuantity


def _time(of: Callable[[CaseResult], Measurement | None]) -> Callable[[CaseResult], Figure | None]:
    def read(case: CaseResult) -> Figure | None:
        measurement = of(case)
        if measurement is None or measurement.method_version != TIMING_METHOD:
            return None
        return tuple(sample * _MS_PER_S for sample in measurement.samples_s) or None

    return read


def _count(of: Callable[[Counters], int]) -> Callable[[CaseResult], Figure | None]:
    return lambda case: None if case.counters is None else of(case.counters)


def _compiled(of: Callable[[StaticFigures], int]) -> Callable[[StageResult], Figure | None]:
    def read(stage: StageResult) -> Figure | None:
        entries = (entry for entry in stage.static if entry.arch == _STATIC_ARCHITECTURE)
        first = next(entries, None)
        return None if first is None else of(first)

    return read


QUANTITIES: tuple[Quantity, ...] = (
    CaseQuantity(
        name="track_time",
        unit="ms",
        meaning="Time of one launch whose operands are not in the L2 cache (cold).",
        role=TIMED,
        of=_time(lambda case: case.cold),
    ),
    CaseQuantity(
        name="track_time_hot",
        unit="ms",
        meaning="Time of one launch that finds its operands in the L2 cache (hot).",
        role=TIMED,
        of=_time(lambda case: case.hot),
    ),
    CaseQuantity(
        name="track_global_load_sectors",
        unit="32-byte sectors",
        meaning="Sectors that one launch loads from global memory. An exact count.",
        role=COUNTED,
        of=_count(lambda counters: counters.global_load_sectors),
    ),
    CaseQuantity(
        name="track_bank_conflicts",
        unit="extra wavefronts",
        meaning="Shared-memory wavefronts of one launch above the conflict-free number. "
        "An exact count.",
        role=COUNTED,
        of=_count(lambda each: each.shared_load_conflicts + each.shared_store_conflicts),
    ),
    StageQuantity(
        name="track_registers",
        unit="registers per thread",
        meaning=f"From the cubin for {_STATIC_ARCHITECTURE}, first layout variant.",
        of=_compiled(lambda static: static.registers),
    ),
    StageQuantity(
        name="track_spills",
        unit="bytes per thread",
        meaning="Spill stores and loads, counted once each in the code, from the compiler's log "
        f"for {_STATIC_ARCHITECTURE}, first layout variant.",
        of=_compiled(lambda static: static.spill_store_bytes + static.spill_load_bytes),
    ),
)
"""Every benchmark a ladder has, on every machine."""

COUNTING_METHOD = 1
"""Version of how counters and static figures are made."""


def benchmark_name(ladder: str, quantity: Quantity) -> str:
    """Return asv's name of a quantity of a ladder."""
    return f"{ladder}.{quantity.name}"


def benchmark_version(ladder: str, quantity: Quantity) -> str:
    """Return what asv compares before it joins two points: problem and method.

    A problem's name stands for its declaration for ever, so a changed problem has a new name.
    """
    timed = isinstance(quantity, CaseQuantity) and quantity.role == TIMED
    return f"{ladder}-{TIMING_METHOD if timed else COUNTING_METHOD}"


def size_label(case_id: str) -> str:
    """Return the size as ids write it, ``M=256,N=256,K=256``."""
    return case_id.partition("[")[2].removesuffix("]")


def figures(
    ladder: str,
    quantity: Quantity,
    stages: Iterable[StageResult],
    cases: Iterable[CaseResult],
) -> dict[Parameters, Figure | None]:
    """Return a quantity of a ladder as a record's stages and cases tell it.

    None stands for a failure: a stage that does not compile, a case that is not PASSED. What the
    machine cannot give, or was not asked for, is absent.
    """
    if isinstance(quantity, StageQuantity):
        found: dict[Parameters, tuple[Figure | None, bool]] = {
            (stage.stage,): (quantity.of(stage), bool(stage.error))
            for stage in stages
            if stage.ladder == ladder
        }
    else:
        found = {
            (case.stage, size_label(case.id)): (quantity.of(case), _failed(case))
            for case in cases
            if case.ladder == ladder and case.role == quantity.role
        }
    return {key: figure for key, (figure, failed) in found.items() if figure is not None or failed}


def _failed(case: CaseResult) -> bool:
    return case.status is not Status.PASSED and case.status not in _NOT_TRIED
