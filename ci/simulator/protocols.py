"""What orders blocks, and threads without a barrier: a fence, then a flag or counter.

A block that executes a fence and then writes a word with an atomic or ``volatile`` access has
released all it did before the fence. A block that later reads such a word, again with an atomic
or ``volatile`` access, has acquired what was released until then. That covers the last block of
a reduction, decoupled look-back, locks and barriers of the whole grid.

The rule is generous, so that it raises no false alarm: it takes a fence of one thread for its
whole block, needs none behind the read, and lets a read acquire what other words released before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]


class Protocols:
    """Fences, releases and acquisitions of a launch."""

    def __init__(self) -> None:
        """Begin without any."""
        self.fences = False
        """Whether any block has executed one."""
        self._released: dict[int, tuple[list[int], list[int]]] = {}
        self.begin_slice(0, 1)

    def begin_slice(self, first_block: int, blocks: int) -> None:
        """Start fresh blocks; what earlier ones released stays."""
        self._first = first_block
        self._fenced = np.zeros(blocks, np.int64)
        self._fenced_here = np.zeros(blocks, np.int64)
        self._acquired = np.zeros(blocks, np.int64)

    def fence(self, rows: NDArray[np.bool_], time: int, *, for_all: bool) -> None:
        """Take in a fence.

        Args:
            rows: (blocks,) which blocks of the slice execute it.
            time: When.
            for_all: Whether it counts for other blocks, not only for the own one.
        """
        self.fences = True
        self._fenced_here[rows] = time
        if for_all:
            self._fenced[rows] = time

    def release(self, rows: Integers, time: int) -> None:
        """Take in that blocks of the slice write a flag."""
        for row in np.unique(rows).tolist():
            if self._fenced_here[row]:
                fences, times = self._released.setdefault(self._first + row, ([], []))
                fences.append(int(self._fenced[row]))
                times.append(time)

    def acquire(self, rows: Integers, times: Integers) -> None:
        """Take in that blocks of the slice read flags that were written at these times."""
        np.maximum.at(self._acquired, rows, times)

    def ordered(self, block: Integers, time: Integers, row: Integers) -> NDArray[np.bool_]:
        """Return whether what each block did at a time is ordered before what follows.

        Args:
            block: (n,) numbers in the grid.
            time: (n,) of what they did.
            row: (n,) blocks of the slice that now go on.
        """
        found = np.zeros(len(block), np.bool_)
        for each in np.unique(block).tolist():
            if each not in self._released:
                continue
            fences, times = (np.array(part) for part in self._released[each])
            here = np.flatnonzero(block == each)
            last = np.searchsorted(times, self._acquired[row[here]], side="right") - 1
            found[here] = (last >= 0) & (fences[np.maximum(last, 0)] >= time[here])
        return found
