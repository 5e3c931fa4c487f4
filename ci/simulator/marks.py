"""Who touched each piece of shared memory last, when, and by which instruction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

THREAD_BITS = 10
_PC_BITS = 20
WARP_BITS = 5
FIRST_EPOCH = 1 << THREAD_BITS + _PC_BITS
"""What an event that orders accesses adds to the time."""
NEVER = -1
LONG_AGO = 0
"""Before the first epoch: written, and ordered before all that follows."""

_LAST_THREAD = (1 << THREAD_BITS) - 1
_LAST_PC = (1 << _PC_BITS) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Touches:
    """The granules one instruction touches, in ascending order of block row and thread."""

    granule: NDArray[np.int64]
    """Index into the marks, row by row."""
    thread: NDArray[np.int32]
    row: NDArray[np.int64] | None
    """Row of the shadow; None while one row stands for all blocks."""
    per_lane: int
    """Granules of each lane, one behind the other."""

    def clashes(self) -> NDArray[np.bool_] | None:
        """Return which touches share a granule with another lane of their warp; None: none."""
        order = np.argsort(self.granule, kind="stable")
        granule, warp = self.granule[order], self.thread[order] >> WARP_BITS
        same = (granule[1:] == granule[:-1]) & (warp[1:] == warp[:-1])
        if not same.any():
            return None
        found = np.zeros(len(order), np.bool_)
        found[order[1:][same]] = True
        found[order[:-1][same]] = True
        return found


class Extent(NamedTuple):
    """What a shadow covers."""

    rows: int
    """Blocks with marks of their own; 1: one row stands for all of them."""
    threads: int
    """Of a block."""
    granules: int
    """Of a row."""
    granule_bytes: int


def find_touches(
    address: NDArray[np.int64], mask: NDArray[np.bool_] | None, width_bytes: int, extent: Extent
) -> Touches:
    """Return what the active lanes of an access touch.

    Args:
        address: (b, t) byte addresses.
        mask: Active lanes, broadcastable; None: every thread.
        width_bytes: Bytes per lane, a multiple of the granule's.
        extent: The shadow's.
    """
    shape = (extent.rows, extent.threads)
    granule = np.broadcast_to(address[:, : extent.threads] // extent.granule_bytes, shape)
    if mask is None:
        row, lane = (index.reshape(-1) for index in np.indices(shape))
        granule = granule.reshape(-1)
    else:
        row, lane = np.nonzero(np.broadcast_to(mask[:, : extent.threads], shape))
        granule = granule[row, lane]
    if extent.rows > 1:
        granule = granule + row * extent.granules
    per_lane = width_bytes // extent.granule_bytes
    if per_lane > 1:
        granule = (granule[:, None] + np.arange(per_lane)).reshape(-1)
        row, lane = np.repeat(row, per_lane), np.repeat(lane, per_lane)
    return Touches(granule, lane.astype(np.int32), row if extent.rows > 1 else None, per_lane)


class Marks:
    """Who touched each granule last: the time, its lowest and its highest thread.

    Time, thread and program counter share a number whose upper part is the time. It only grows,
    so the newest highest thread is a maximum; the lowest is one as well, counted down from the
    last thread.
    """

    def __init__(self, verb: str, granules: int) -> None:
        """Start without a mark; ``verb`` is what was done to marked granules."""
        self.verb = verb
        self.high = np.full(granules, NEVER, dtype=np.int64)
        self.low = np.full(granules, NEVER, dtype=np.int64)

    def foreign(self, touches: Touches, now: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Return which touches meet a mark of another warp in their own epoch; None: none does."""
        high = self.high.take(touches.granule)
        found: NDArray[np.bool_] = high >= now
        if not found.any():
            return None
        warp = touches.thread >> WARP_BITS
        low = self.low.take(touches.granule)
        found &= (_thread(high) >> WARP_BITS != warp) | (_counted_down(low) >> WARP_BITS != warp)
        return found if found.any() else None

    def sibling(self, touches: Touches, ordered: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Return which touches meet a mark of another lane of their warp that nothing orders.

        Args:
            touches: What is touched now.
            ordered: (rows, threads) time at which each thread was ordered against others last.
        """
        high = self.high.take(touches.granule)
        found: NDArray[np.bool_] = high >= FIRST_EPOCH
        if not found.any():
            return None
        other = self._beside(high, self.low.take(touches.granule), touches.thread)
        found &= (other != touches.thread) & (other >> WARP_BITS == touches.thread >> WARP_BITS)
        if not found.any():
            return None
        here = np.flatnonzero(found)
        row = 0 if touches.row is None else touches.row[here]
        mine, theirs = (ordered[row, thread[here]] for thread in (touches.thread, other))
        found[here] = (high[here] >= mine) | (high[here] >= theirs)
        return found if found.any() else None

    def _beside(
        self, high: NDArray[np.int64], low: NDArray[np.int64], thread: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Return the highest thread of each mark, or the lowest if ``thread`` is the highest."""
        last = _thread(high)
        return np.where(last == thread, _counted_down(low), last)

    def record(self, touches: Touches, now: NDArray[np.int64], pc: int) -> None:
        """Mark the touched granules."""
        at = touches.granule
        now = now + min(pc, _LAST_PC)
        thread = touches.thread.astype(np.int64)
        high = np.maximum(self.high.take(at), now + (thread << _PC_BITS))
        low = np.maximum(self.low.take(at), now + (_LAST_THREAD - thread << _PC_BITS))
        # Of several values for one granule the last one stays, and threads ascend.
        self.high[at] = high
        self.low[at[::-1]] = low[::-1]

    def other(self, granule: int, thread: int, *, same_warp: bool) -> tuple[int, int]:
        """Return the thread that marked the granule besides ``thread``, and its instruction."""
        high, low = int(self.high[granule]), int(self.low[granule])
        last, first = (
            high >> _PC_BITS & _LAST_THREAD,
            _LAST_THREAD - (low >> _PC_BITS & _LAST_THREAD),
        )
        mine = last == thread if same_warp else last >> WARP_BITS == thread >> WARP_BITS
        return (first, low & _LAST_PC) if mine else (last, high & _LAST_PC)

    def spread(self, repeats: int, copies: int) -> None:
        """Repeat every granule, then the whole."""
        self.high = np.tile(np.repeat(self.high, repeats), copies)
        self.low = np.tile(np.repeat(self.low, repeats), copies)


class Trail:
    """Who did one thing to each granule: seen from other warps, and from lanes of the same."""

    def __init__(self, verb: str, granules: int) -> None:
        """Start without a mark; ``verb`` is what was done."""
        self.warps = Marks(verb, granules)
        """In the time of the block."""
        self.lanes = Marks(verb, granules)
        """In the time of each warp."""

    def meetings(
        self, touches: Touches, now: NDArray[np.int64], ordered: NDArray[np.int64]
    ) -> list[tuple[NDArray[np.bool_], Marks, bool]]:
        """Return which touches meet which marks, and whether those are of their own warp.

        Args:
            touches: What is touched now.
            now: Epoch of each touch in its block.
            ordered: As in ``Marks.sibling``.
        """
        foreign = self.warps.foreign(touches, now)
        sibling = self.lanes.sibling(touches, ordered)
        met = [(foreign, self.warps, False), (sibling, self.lanes, True)]
        return [(found, marks, same) for found, marks, same in met if found is not None]

    def spread(self, repeats: int, copies: int) -> None:
        """Repeat every granule, then the whole."""
        self.warps.spread(repeats, copies)
        self.lanes.spread(repeats, copies)


def _thread(high: NDArray[np.int64]) -> NDArray[np.int32]:
    return (high >> _PC_BITS & _LAST_THREAD).astype(np.int32)


def _counted_down(low: NDArray[np.int64]) -> NDArray[np.int32]:
    return (_LAST_THREAD - (low >> _PC_BITS & _LAST_THREAD)).astype(np.int32)
