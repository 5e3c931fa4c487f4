"""What was seen of a kernel: findings, checks, counters, static figures, times. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A hazard the device saw, at its place in the source."""

    kind: str
    """Such as ``read-after-write race`` or ``out-of-bounds read``."""
    kernel: str
    """Name expression of the kernel."""
    file: str
    """Source file as the suite names it, relative to the suite folder."""
    line: int
    """1-based line in that file; 0 if unknown."""
    count: int
    """How often it was seen in the case."""
    example: str
    """One occurrence in words, with buffer or address, block and thread."""
    subcheck: str
    """Name of the first sub-check that showed it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SubCheck:
    """One launch of the correctness plan: one combination of factors, or the case's own size."""

    name: str
    """The combination, as in ``M=33 N=17 K=5 A=column B=row C=row ld=+3 alpha=2 beta=0``."""
    passed: bool
    max_error: float | None
    """Largest |got - want| over the elements that are finite in both; None if none is."""
    bound: float | None
    """Accepted error at the element of the largest error-to-bound ratio; None where exact."""
    detail: str
    """Empty if passed; else which elements are wrong and what they share."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Counters:
    """What a profiler would count in one launch. Exact integers; requests are per warp.

    None: a flopwatch that did not count this yet wrote the record. What a source line does
    not do is None too: whether it was counted, the case's own counters tell.
    """

    global_load_requests: int = 0
    global_load_sectors: int = 0
    """32-byte sectors."""
    global_load_elements: int = 0
    """Loads of the threads, one per vector component."""
    global_store_requests: int = 0
    global_store_sectors: int = 0
    shared_load_wavefronts: int = 0
    shared_load_conflicts: int = 0
    """Wavefronts above the conflict-free number."""
    shared_store_wavefronts: int = 0
    shared_store_conflicts: int = 0
    local_bytes: int = 0
    """Bytes the threads moved to and from local memory."""
    atomic_requests: int = 0
    """In global and shared memory together."""
    global_load_ideal_sectors: int | None = None
    """Sectors if what the lanes of each warp read lay side by side."""
    global_store_ideal_sectors: int | None = None
    local_load_requests: int | None = None
    local_store_requests: int | None = None
    atomic_sectors: int | None = None
    """32-byte sectors of atomics on global memory."""
    shared_atomic_requests: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LineCounters:
    """The share of one source line in a case's counters."""

    file: str
    line: int
    text: str
    """The source line without indentation, so that pages need no source tree."""
    counters: Counters


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineState:
    """What the GPU's management library showed while some samples were taken.

    None: the library could not tell.
    """

    sm_clock_hz: int | None
    memory_clock_hz: int | None
    power_w: float | None
    temperature_c: float | None
    slowdowns: tuple[str, ...] | None
    """Clock-event reasons in force, as ``software power cap`` or ``hardware thermal slowdown``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """How long one launch takes, sample by sample."""

    method_version: int
    """Figures of two methods are never compared."""
    cache: str
    """``cold``: each launch finds its operands outside L2; ``hot``: inside."""
    launches_per_sample: int
    """A sample is one replay of a graph of so many launches, divided by their number."""
    operand_sets: int
    """Copies of the operands the launches of a sample go round."""
    samples_s: tuple[float, ...]
    """Seconds a launch, in the order they were taken."""
    states: tuple[MachineState, ...]
    """One a round."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StaticFigures:
    """What the cubin of one kernel tells, for one architecture and one instantiation."""

    arch: str
    """Such as ``sm_90``."""
    variant: str
    """Layout flags of the instantiation, as in ``A=row,B=column``; stable when tiles change."""
    kernel: str
    """Name expression."""
    registers: int
    """Per thread."""
    stack_bytes: int
    """Stack frame per thread: local arrays and spills."""
    spill_store_bytes: int
    """Per thread, static count, from the compiler's log."""
    spill_load_bytes: int
    static_shared_bytes: int
    """Per block, without what the system reserves."""
    dynamic_shared_bytes: int
    """Per block, from the declaration."""
    threads_per_block: int
    resident_blocks: int
    """Per multiprocessor, the theoretical maximum; 0: the kernel does not fit."""
    occupancy: float
    """Resident warps over the most the multiprocessor holds, 0 to 1."""
    limited_by: tuple[str, ...]
    """What binds ``resident_blocks``: ``registers``, ``shared memory``, ``threads``, ``blocks``,
    ``barriers``."""
    code_bytes: int
    instructions: Mapping[str, int]
    """SASS opcode → static count, loops counted once."""
