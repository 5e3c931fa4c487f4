"""Who touched each piece of shared memory last, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

THREAD_BITS = 10
FIRST_EPOCH = 1 << THREAD_BITS
"""What a barrier adds to the epoch."""
NEVER = -1
LONG_AGO = 0
"""Before the first epoch: written, and ordered before all that follows."""

_LAST_THREAD = (1 << THREAD_BITS) - 1
_WARP_BITS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Touches:
    """The granules one instruction touches, in ascending order of block row and thread."""

    granule: NDArray[np.int64]
    """Index into the marks, row by row."""
    thread: NDArray[np.int32]
    row: NDArray[np.int64] | None
    """Row of the shadow; None while one row stands for all blocks."""


class Marks:
    """Who touched each granule last: the epoch, its lowest and its highest thread.

    Epoch and thread share a number whose upper part is the epoch. It only grows, so the newest
    highest thread is a maximum; the lowest is one as well, counted down from the last thread.
    """

    def __init__(self, verb: str, granules: int) -> None:
        """Start without a mark; ``verb`` is what was done to marked granules."""
        self.verb = verb
        self.high = np.full(granules, NEVER, dtype=np.int32)
        self.low = np.full(granules, NEVER, dtype=np.int32)

    def foreign(self, touches: Touches, now: NDArray[np.int32]) -> NDArray[np.bool_] | None:
        """Return which touches meet a mark of another warp in their own epoch; None: none does."""
        high = self.high.take(touches.granule)
        found: NDArray[np.bool_] = high >= now
        if not found.any():
            return None
        warp = touches.thread >> _WARP_BITS
        low = _LAST_THREAD - (self.low.take(touches.granule) & _LAST_THREAD)
        found &= ((high & _LAST_THREAD) >> _WARP_BITS != warp) | (low >> _WARP_BITS != warp)
        return found if found.any() else None

    def record(self, touches: Touches, now: NDArray[np.int32]) -> None:
        """Mark the touched granules."""
        at = touches.granule
        high = np.maximum(self.high.take(at), now + touches.thread)
        low = np.maximum(self.low.take(at), now + _LAST_THREAD - touches.thread)
        # Of several values for one granule the last one stays, and threads ascend.
        self.high[at] = high
        self.low[at[::-1]] = low[::-1]

    def other(self, granule: int, thread: int) -> int:
        """Return the thread of another warp that marked the granule."""
        high = int(self.high[granule]) & _LAST_THREAD
        low = _LAST_THREAD - (int(self.low[granule]) & _LAST_THREAD)
        return low if low >> _WARP_BITS != thread >> _WARP_BITS else high

    def spread(self, repeats: int, copies: int) -> None:
        """Repeat every granule, then the whole."""
        self.high = np.tile(np.repeat(self.high, repeats), copies)
        self.low = np.tile(np.repeat(self.low, repeats), copies)
