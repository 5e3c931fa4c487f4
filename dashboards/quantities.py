"""The figures a page shows: name, unit, direction and how each is read from a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from ci.results.model import CaseResult, Counters, Measurement, StageResult, StaticFigures
from dashboards import timing
from dashboards.formatting import (
    DASH,
    hundredths,
    kib,
    percent,
    significant,
    tenths,
    thousandths,
    whole,
)
from dashboards.roofs import Roofs
from dashboards.words import BASELINE

_PREFERRED_ARCH = "sm_90"
_SECTOR_BYTES = 32
_OTHER_RUN = 0.1
"""Times of two runs that differ by less than this share tell nothing: clocks drift that far."""

_NOISE_CHANGE = 1.0
"""Noise varies from run to run: only more than twice as much is a change."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """What one commit knows about a case: the sources of every quantity."""

    case: CaseResult | None
    static: StaticFigures | None
    roofs: Roofs | None


Reader = Callable[[Figures], float | None]
"""Reads one figure; None: there is no value, and a page shows a dash or a gap."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """One figure with one unit."""

    label: str
    unit: str
    of: Reader
    show: Callable[[float], str] = whole
    worse: int = 1
    """Direction that is worse: 1 more, -1 fewer, 0 neither (only shown)."""
    band: Callable[[Figures], tuple[float, float] | None] = lambda _: None
    """Where the middle half of the samples lies; None where the value is exact."""
    least_change: float = 0.0
    """Share of a value by which two commits must differ before a page marks a change."""

    def text(self, figures: Figures) -> str:
        """Return the value as text, without its unit; a dash where there is none."""
        value = self.of(figures)
        return DASH if value is None else self.show(value)


def figures_of(
    case: CaseResult | None, stage: StageResult | None, roofs: Roofs | None = None
) -> Figures:
    """Return a case with its stage's reference figures: sm_90 where compiled, first variant."""
    static = stage.static if stage else ()
    preferred = next((entry for entry in static if entry.arch == _PREFERRED_ARCH), None)
    return Figures(case=case, static=preferred or next(iter(static), None), roofs=roofs)


def _counted(value: Callable[[Counters], float | None]) -> Reader:
    def read(figures: Figures) -> float | None:
        counters = figures.case.counters if figures.case else None
        return None if counters is None else value(counters)

    return read


def _compiled(value: Callable[[StaticFigures], float]) -> Reader:
    return lambda figures: None if figures.static is None else value(figures.static)


def _timed(value: Callable[[CaseResult], float | None], scale: float = 1.0) -> Reader:
    def read(figures: Figures) -> float | None:
        found = value(figures.case) if figures.case else None
        return None if found is None else scale * found

    return read


def _band(
    measurement: Callable[[CaseResult], Measurement | None],
) -> Callable[[Figures], tuple[float, float] | None]:
    def read(figures: Figures) -> tuple[float, float] | None:
        ends = timing.quartiles_s(measurement(figures.case)) if figures.case else None
        return None if ends is None else (timing.MS_PER_S * ends[0], timing.MS_PER_S * ends[1])

    return read


def _of_roof(figures: Figures) -> float | None:
    if figures.case is None or figures.roofs is None:
        return None
    share = timing.share_of_roof(figures.case, figures.case.cold, figures.roofs)
    return None if share is None else 100 * share


def _per_request(counters: Counters) -> float | None:
    requests = counters.global_load_requests
    return counters.global_load_sectors / requests if requests else None


def _loads_per_flop(figures: Figures) -> float | None:
    case = figures.case
    if case is None or case.counters is None or not case.flops:
        return None
    return case.counters.global_load_elements / case.flops


def _traffic(figures: Figures) -> float | None:
    case = figures.case
    if case is None or case.counters is None or not case.compulsory_bytes:
        return None
    sectors = case.counters.global_load_sectors + case.counters.global_store_sectors
    return _SECTOR_BYTES * sectors / case.compulsory_bytes


LOAD_SECTORS = Quantity(
    label="Global load sectors",
    unit="32 B each",
    of=_counted(lambda counters: counters.global_load_sectors),
)
SECTORS_PER_REQUEST = Quantity(
    label="Load sectors",
    unit="per request",
    of=_counted(_per_request),
    show=hundredths,
)
LOADS_PER_FLOP = Quantity(
    label="Element loads",
    unit="per FLOP",
    of=_loads_per_flop,
    show=thousandths,
)
TRAFFIC = Quantity(
    label="Global traffic",
    unit="\u00d7\u00a0compulsory",
    of=_traffic,
    show=hundredths,
)
SHARED_WAVEFRONTS = Quantity(
    label="Shared wavefronts",
    unit="wavefronts",
    of=_counted(
        lambda counters: counters.shared_load_wavefronts + counters.shared_store_wavefronts
    ),
)
BANK_CONFLICTS = Quantity(
    label="Bank conflicts",
    unit="extra wavefronts",
    of=_counted(lambda counters: counters.shared_load_conflicts + counters.shared_store_conflicts),
)
REGISTERS = Quantity(
    label="Registers",
    unit="per thread",
    of=_compiled(lambda static: static.registers),
    worse=0,
)
SPILLS = Quantity(
    label="Spills",
    unit="bytes per thread",
    of=_compiled(lambda static: static.spill_store_bytes + static.spill_load_bytes),
)
RESIDENT_BLOCKS = Quantity(
    label="Resident blocks",
    unit="per SM",
    of=_compiled(lambda static: static.resident_blocks),
    worse=-1,
)
OCCUPANCY = Quantity(
    label="Occupancy",
    unit="% of warps",
    of=_compiled(lambda static: static.occupancy),
    show=percent,
    worse=-1,
)
SHARED_MEMORY = Quantity(
    label="Shared memory",
    unit="KiB per block",
    of=_compiled(lambda static: static.static_shared_bytes + static.dynamic_shared_bytes),
    show=kib,
    worse=0,
)
TIME = Quantity(
    label="Time",
    unit="ms (median)",
    of=_timed(lambda case: timing.median_s(case.cold), timing.MS_PER_S),
    show=significant,
    band=_band(lambda case: case.cold),
    least_change=_OTHER_RUN,
)
BASELINE_TIME = Quantity(
    label=f"{BASELINE} time",
    unit="ms (median)",
    of=_timed(lambda case: timing.median_s(case.baseline), timing.MS_PER_S),
    show=significant,
    band=_band(lambda case: case.baseline),
    least_change=_OTHER_RUN,
)
NOISE = Quantity(
    label="Noise",
    unit="IQR, % of median",
    of=_timed(lambda case: timing.noise(case.cold), 100),
    show=thousandths,
    worse=0,
    least_change=_NOISE_CHANGE,
)
SPEED = Quantity(
    label="Speed",
    unit="TFLOP/s",
    of=_timed(lambda case: timing.speed(case, case.cold), 1 / timing.FLOP_PER_TFLOP),
    show=significant,
    worse=-1,
)
OF_BASELINE = Quantity(
    label=f"Of {BASELINE}",
    unit="% of its speed",
    of=_timed(timing.share_of_baseline, 100),
    show=tenths,
    worse=-1,
    least_change=_OTHER_RUN,
)
OF_ROOF = Quantity(
    label="Of the roofline",
    unit="% of SOL",
    of=_of_roof,
    show=tenths,
    worse=-1,
)

TIMED = (TIME, SPEED, OF_BASELINE, OF_ROOF)
"""Columns of a ladder that a GPU's clock tells."""
COMPILED = (REGISTERS, SPILLS, RESIDENT_BLOCKS, OCCUPANCY, SHARED_MEMORY)
"""Columns of a ladder that the cubin tells."""
COUNTED = (
    LOAD_SECTORS, SECTORS_PER_REQUEST, LOADS_PER_FLOP, TRAFFIC, SHARED_WAVEFRONTS, BANK_CONFLICTS,
)  # fmt: skip
"""Columns of a ladder that one counted launch tells."""
CHARTED = (
    TIME, BASELINE_TIME, OF_BASELINE, NOISE,
    LOAD_SECTORS, SHARED_WAVEFRONTS, BANK_CONFLICTS, REGISTERS, SPILLS, RESIDENT_BLOCKS,
)  # fmt: skip
"""Histories of a case."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """A field of the data contract as people read it."""

    label: str
    unit: str
    show: Callable[[float], str] = whole


COUNTER_FIELDS: Mapping[str, Field] = {
    "global_load_requests": Field(label="Global load requests", unit="per warp"),
    "global_load_sectors": Field(label="Global load sectors", unit="32 B each"),
    "global_load_elements": Field(label="Global load elements", unit="elements"),
    "global_store_requests": Field(label="Global store requests", unit="per warp"),
    "global_store_sectors": Field(label="Global store sectors", unit="32 B each"),
    "shared_load_wavefronts": Field(label="Shared load wavefronts", unit="wavefronts"),
    "shared_load_conflicts": Field(label="Shared load conflicts", unit="extra wavefronts"),
    "shared_store_wavefronts": Field(label="Shared store wavefronts", unit="wavefronts"),
    "shared_store_conflicts": Field(label="Shared store conflicts", unit="extra wavefronts"),
    "local_bytes": Field(label="Local memory", unit="bytes"),
    "atomic_requests": Field(label="Atomic requests", unit="per warp"),
    "global_load_ideal_sectors": Field(label="Ideal load sectors", unit="32 B each"),
    "global_store_ideal_sectors": Field(label="Ideal store sectors", unit="32 B each"),
    "local_load_requests": Field(label="Local load requests", unit="per warp"),
    "local_store_requests": Field(label="Local store requests", unit="per warp"),
    "atomic_sectors": Field(label="Atomic sectors", unit="32 B each"),
    "shared_atomic_requests": Field(label="Shared atomic requests", unit="per warp"),
}
"""Every field of ``Counters``, in the order of the contract."""

STATIC_FIELDS: Mapping[str, Field] = {
    "registers": Field(label="Registers", unit="per thread"),
    "stack_bytes": Field(label="Stack frame", unit="bytes per thread"),
    "spill_store_bytes": Field(label="Spill stores", unit="bytes per thread"),
    "spill_load_bytes": Field(label="Spill loads", unit="bytes per thread"),
    "static_shared_bytes": Field(label="Static shared", unit="KiB per block", show=kib),
    "dynamic_shared_bytes": Field(label="Dynamic shared", unit="KiB per block", show=kib),
    "threads_per_block": Field(label="Threads", unit="per block"),
    "resident_blocks": Field(label="Resident blocks", unit="per SM"),
    "occupancy": Field(label="Occupancy", unit="% of warps", show=percent),
    "code_bytes": Field(label="Code", unit="KiB", show=kib),
}
"""Every numeric field of ``StaticFigures``."""


def counter(counters: Counters, name: str) -> int | None:
    """Return one field of the counters; None if the record does not have it."""
    value: int | None = attrgetter(name)(counters)
    return value


def static_figure(static: StaticFigures, name: str) -> float:
    """Return one numeric field of the static figures."""
    return float(attrgetter(name)(static))


def field_of(metric: str) -> Field:
    """Return how a gate's metric is written; a metric this page does not know keeps its name."""
    known = COUNTER_FIELDS.get(metric) or STATIC_FIELDS.get(metric)
    return known or Field(label=metric.replace("_", " ").capitalize(), unit="count")
