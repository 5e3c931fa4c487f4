"""Special registers: who and where a thread is.

Source: PTX ISA, "Special Registers".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.lanes import WARP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ci.simulator.forms import Array

Triple = tuple[int, int, int]

_AXES = ".x", ".y", ".z"


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """Where a slice lies in its launch."""

    blocks: NDArray[np.int64]
    """(blocks,) linear numbers of the slice's blocks."""
    threads: int
    """Of a block, padded to whole warps."""
    grid: Triple
    block: Triple
    shared_bytes: int
    """Static and dynamic shared memory of a block."""
    dynamic_shared_bytes: int


def _constant(value: int) -> Array:
    return np.full((1, 1), value, np.uint32)


def _lane(position: Position) -> Array:
    return np.arange(position.threads)[None, :] % WARP


def _split(linear: Array, extents: Triple, axis: int) -> Array:
    """Return one coordinate of linear numbers; (1, 1) where the axis has one element."""
    if extents[axis] == 1:
        return _constant(0)
    return linear // math.prod(extents[:axis]) % extents[axis]


def _of_axis(axis: int) -> dict[str, Callable[[Position], Array]]:
    suffix = _AXES[axis]

    def thread(position: Position) -> Array:
        return _split(np.arange(position.threads)[None, :], position.block, axis)

    def block(position: Position) -> Array:
        return _split(position.blocks[:, None], position.grid, axis)

    return {
        f"%tid{suffix}": thread,
        f"%ctaid{suffix}": block,
        f"%ntid{suffix}": lambda position: _constant(position.block[axis]),
        f"%nctaid{suffix}": lambda position: _constant(position.grid[axis]),
    }


SPECIALS: dict[str, Callable[[Position], Array]] = {
    **_of_axis(0),
    **_of_axis(1),
    **_of_axis(2),
    "%laneid": _lane,
    "%warpid": lambda position: np.arange(position.threads)[None, :] // WARP,
    "%nwarpid": lambda position: _constant(position.threads // WARP),
    "%lanemask_eq": lambda position: 1 << _lane(position),
    "%lanemask_lt": lambda position: (1 << _lane(position)) - 1,
    "%lanemask_le": lambda position: (2 << _lane(position)) - 1,
    "%lanemask_gt": lambda position: (1 << WARP) - (2 << _lane(position)),
    "%lanemask_ge": lambda position: (1 << WARP) - (1 << _lane(position)),
    # All blocks run on one multiprocessor, in one grid.
    "%smid": lambda _: _constant(0),
    "%nsmid": lambda _: _constant(1),
    "%gridid": lambda _: _constant(0),
    "%total_smem_size": lambda position: _constant(position.shared_bytes),
    "%dynamic_smem_size": lambda position: _constant(position.dynamic_shared_bytes),
}
"""Special register → its values in a slice."""
TIMES = {
    "%clock": 0,
    "%clock_hi": 32,
    "%clock64": 0,
    "%globaltimer": 0,
    "%globaltimer_lo": 0,
    "%globaltimer_hi": 32,
}
"""Register that tells the time → how far it is shifted. No time passes here, so each read moves on
by ``TICK``: what waits for a time to pass goes on."""
