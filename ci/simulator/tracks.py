"""Who touched each word of a buffer in global memory, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

THREAD_BITS = 10
_WORD_BYTES = 4
_BEYOND = 1 << 40
"""Above any block number."""


class Track:
    """Who did one thing to each granule: the threads that did it last, and the outermost blocks.

    Zeros stand for nobody, so that memory is taken only for what is touched.
    """

    def __init__(self, verb: str, granules: int) -> None:
        """Start untouched; ``verb`` is what was done."""
        self.verb = verb
        self.time, self._high, self._low, self._pc = self._zeros(granules)
        self._last, self._last_time, self._first, self._first_time = self._zeros(granules)

    @staticmethod
    def _zeros(granules: int) -> list[Integers]:
        return [np.zeros(granules, np.int64) for _ in range(4)]

    def record(self, at: Integers, who: Integers, time: int, pc: int) -> None:
        """Take in threads, in ascending order, that touch granules at one time.

        Args:
            at: (n,) granules.
            who: (n,) number of the block in the grid, then of the thread in ``THREAD_BITS`` bits.
            time: Above zero.
            pc: The instruction.
        """
        back = slice(None, None, -1)
        # Of several values for one granule the last one stays.
        self._high[at] = who
        self._low[at[back]] = who[back]
        self.time[at] = time
        self._pc[at] = pc
        block = who >> THREAD_BITS
        later = block + 1 >= self._last[at]
        self._last[at[later]] = block[later] + 1
        self._last_time[at[later]] = time
        earlier = _BEYOND - block >= self._first[at]
        self._first[at[earlier][back]] = _BEYOND - block[earlier][back]
        self._first_time[at[earlier]] = time

    def other_block(self, at: Integers, block: Integers) -> tuple[Integers, Integers]:
        """Return an outermost block other than ``block`` that touched each, and when.

        Where there is none it is ``block`` itself; granules must have been touched.
        """
        last, first = self._last[at] - 1, _BEYOND - self._first[at]
        own = last == block
        return np.where(own, first, last), np.where(own, self._first_time[at], self._last_time[at])

    def other_thread(self, at: Integers, who: Integers) -> Integers:
        """Return one of the threads that touched each last, not ``who`` if there are others."""
        high = self._high[at]
        return np.where(high == who, self._low[at], high)

    def pc_of(self, granule: int) -> int:
        """Return the instruction that touched a granule last."""
        return int(self._pc[granule])

    def refine(self, pieces: int) -> None:
        """Let every granule become several, touched alike."""
        for name in vars(self):
            if name != "verb":
                setattr(self, name, np.repeat(getattr(self, name), pieces))


class Words:
    """What was done to a buffer."""

    def __init__(self, size_bytes: int) -> None:
        """Follow ``size_bytes``, word by word until something narrower is touched."""
        self._size_bytes = size_bytes
        self.granule_bytes = _WORD_BYTES
        self.tracks: dict[str, Track] = {}
        """What was done, in a word → who did it."""

    def refine(self, width_bytes: int) -> None:
        """Make the granules as small as an access."""
        if width_bytes < self.granule_bytes:
            for track in self.tracks.values():
                track.refine(self.granule_bytes // width_bytes)
            self.granule_bytes = width_bytes

    def track(self, name: str) -> Track:
        """Return the track of what ``name`` says, such as ``written``."""
        if name not in self.tracks:
            self.tracks[name] = Track(name, self._size_bytes // self.granule_bytes)
        return self.tracks[name]
