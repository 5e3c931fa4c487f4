"""What goes into a launch and what comes out of it: plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Place:
    """A line of the CUDA source."""

    file: str
    """File as the compiler's line table names it; empty if unknown."""
    line: int
    """1-based; 0 if unknown."""
    called_from: str = field(default="", compare=False)
    """``file:line`` of the kernel's own call, for code inlined from a function; else empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hazard:
    """Undefined behaviour that a launch showed, at its place in the source."""

    kind: str
    """Such as ``read-after-write race`` or ``out-of-bounds read``."""
    file: str
    line: int
    count: int
    """Lanes concerned, over the whole launch."""
    example: str
    """One occurrence in words, with buffer or address, block and thread."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """What a profiler would count. Exact integers; requests are per warp."""

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
    global_load_ideal_sectors: int = 0
    """Sectors if what the lanes of each warp read lay side by side."""
    global_store_ideal_sectors: int = 0
    local_load_requests: int = 0
    local_store_requests: int = 0
    atomic_sectors: int = 0
    """32-byte sectors of atomics on global memory."""
    shared_atomic_requests: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Return the sum, field by field."""
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in _COUNTED})


_COUNTED = tuple(each.name for each in fields(Counts))


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineAccesses:
    """Which accesses occur in a kernel's machine code that its PTX does not tell."""

    load: frozenset[int] = frozenset()
    """Widths of vector loads from shared memory, in bytes: 8, 16."""
    store: frozenset[int] = frozenset()
    local: bool = True
    """Whether any reaches local memory: the assembler may keep arrays in registers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How counts came about of which not every block was executed."""

    executed: int
    """Blocks."""
    blocks: int
    """Of the launch."""
    obstacle: str
    """Why the counts are an estimate, with the source line; empty: they are exact."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Buffer:
    """An array argument: the kernel may touch exactly these elements."""

    name: str
    """For hazards."""
    data: NDArray[np.generic]
    """One-dimensional, contiguous; read and written in place."""
    misalignment_bytes: int = 0
    """The address of element 0 modulo 256; 0 is what an allocator gives."""
    written: NDArray[np.bool_] | None = None
    """Which bytes hold something that was written, updated in place; None: all of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What one launch did, besides writing its buffers."""

    hazards: tuple[Hazard, ...] = ()
    """In source order."""
    lines: Mapping[Place, Counts] = field(default_factory=dict)
    """Source line → its share of the counts; lines that count nothing are left out."""
    totals: Counts = Counts()
    stopped: bool = False
    """True if a bad on-chip access, assertion or trap ended it: the buffers are incomplete."""
    sampling: Sampling | None = None
    """None: every block was executed."""
    output: tuple[str, ...] = ()
    """Lines that the kernel printed; the last one says what was left out."""
