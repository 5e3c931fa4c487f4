"""Shared and local memory: a few bytes per block and per thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.arrays import SharedArray
from ci.simulator.errors import StopLaunchError
from ci.simulator.forms import unsigned
from ci.simulator.memory import scatter
from ci.simulator.sink import UNINITIALISED_LOCAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ci.simulator.forms import Array, Mask
    from ci.simulator.lanes import Lanes

_WHOLE_BYTES = 16
_POISON = 0xFF
"""Fills memory that nobody wrote: NaN in every float type."""


class OnChip:
    """Rows of bytes, one per block or thread."""

    space = ""

    def __init__(self, lanes: Lanes) -> None:
        """Begin without memory."""
        self._lanes = lanes
        self._row = np.zeros((1, 1), np.int64)
        self.arrays: Mapping[int, SharedArray] = {}
        """Program counter → what an access there may touch; all of a row where there is none."""
        self.begin_slice(0)

    def rows(self) -> Array:
        """Return the row of each lane, broadcastable to (blocks, threads)."""
        raise NotImplementedError

    def begin_slice(self, size_bytes: int) -> None:
        """Give every row ``size_bytes`` of fresh memory."""
        self.size_bytes = size_bytes
        self._whole = SharedArray("", 0, size_bytes)
        self._row = self.rows() if size_bytes else np.zeros((1, 1), np.int64)
        self._row_bytes = -(-max(size_bytes, 1) // _WHOLE_BYTES) * _WHOLE_BYTES
        self._storage = np.full((int(self._row.max()) + 1, self._row_bytes), _POISON, np.uint8)
        self._words: dict[np.dtype[Any], Array] = {}

    def grow(self, size_bytes: int) -> None:
        """Make every row at least ``size_bytes`` long; what it holds stays."""
        if size_bytes <= self.size_bytes:
            return
        before, row_bytes = self._storage, self._row_bytes
        had_rows = self.size_bytes > 0
        # Twice as much as asked for, so that a deep recursion does not copy at every level.
        self.begin_slice(2 * size_bytes)
        if had_rows:
            self._storage[:, :row_bytes] = before

    def words(self, dtype: np.dtype[Any]) -> Array:
        """Return the memory as (rows, words) of ``dtype``."""
        found = self._words.get(dtype)
        if found is None:
            found = self._words[dtype] = self._storage.view(dtype)
        return found

    def row_of(self, block: int, thread: int) -> Array:
        """Return the bytes that a thread sees."""
        row = self._row[block if len(self._row) > 1 else 0]
        found = self._storage[int(row[thread if len(row) > 1 else 0])]
        return np.asarray(found[: self.size_bytes])

    def check(self, pc: int, address: Array, mask: Mask, width_bytes: int, verb: str) -> Array:
        """Return the addresses, those of inactive lanes made harmless.

        Active lanes that leave the array which the instruction can only mean are reported.

        Raises:
            StopLaunchError: An active lane is out of bounds or misaligned; it is reported.
        """
        array = self.arrays.get(pc, self._whole)
        if (
            int(address.min()) >= array.start
            and int(address.max()) <= array.end - width_bytes
            and not int(np.bitwise_or.reduce(address, axis=None)) & width_bytes - 1
        ):
            return address
        beyond = (address < array.start) | (address > array.end - width_bytes)
        outside = (address < 0) | (address > self.size_bytes - width_bytes)
        crooked = ~outside & (address & width_bytes - 1 != 0)
        active = self._lanes.reduced(mask, address.shape)
        for fault, bad in (("out-of-bounds", beyond), ("misaligned", crooked)):
            wrong = bad & active
            if wrong.any():
                where = array if bad is beyond else self._whole
                text = self._text(where, int(address[tuple(np.argwhere(wrong)[0])]))
                self._lanes.report(f"{fault} {verb}", pc, self._lanes.both(mask, wrong), text)
        if ((outside | crooked) & active).any():
            raise StopLaunchError
        return np.where(outside | crooked, 0, address)

    def _text(self, array: SharedArray, byte: int) -> str:
        if array is self._whole:
            return f"byte {byte} of {self.space} memory ({self.size_bytes} bytes)"
        size = array.end - array.start
        return f"byte {byte - array.start} of {array.name} ({size} bytes of {self.space} memory)"

    def load(self, address: Array, dtypes: Sequence[np.dtype[Any]]) -> list[Array]:
        """Return what the lanes read from checked addresses, one array per element."""
        width = dtypes[0].itemsize
        index = address // width
        if len(address) == 1 and self._row.shape[1] == 1:
            # The same words of every row.
            first = index[0]
            return [
                self.words(dtype).take(first + element if element else first, axis=1)
                for element, dtype in enumerate(dtypes)
            ]
        index = index + self._row * (self._row_bytes // width)
        return [
            self.words(dtype).reshape(-1).take(index + element if element else index)
            for element, dtype in enumerate(dtypes)
        ]

    def store(self, address: Array, mask: Mask, values: Sequence[Array]) -> None:
        """Write one array per element to checked addresses; the last of colliding lanes wins."""
        for element, value in enumerate(values):
            words, index = self.cells(address, value.dtype)
            scatter(words, index + element if element else index, value, mask)

    def cells(self, address: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """Return the memory as one row of words, and which of them the lanes point to."""
        width = dtype.itemsize
        index = address // width + self._row * (self._row_bytes // width)
        return self.words(dtype).reshape(-1), index


class Shared(OnChip):
    """Shared memory: one row per block."""

    space = "shared"

    def rows(self) -> Array:
        """Return the block of each lane."""
        return np.arange(self._lanes.blocks)[:, None]


class Local(OnChip):
    """Local memory: one row per thread."""

    space = "local"

    def rows(self) -> Array:
        """Return the thread of each lane, counted over the slice."""
        blocks, threads = self._lanes.blocks, self._lanes.threads
        return np.arange(blocks * threads).reshape(blocks, threads)

    def grow(self, size_bytes: int) -> None:
        """Make every row at least ``size_bytes`` long, and what is known of it."""
        super().grow(size_bytes)
        self._lanes.unwritten.grow(size_bytes)

    def check_written(
        self, pc: int, address: Array, mask: Mask, dtypes: Sequence[np.dtype[Any]]
    ) -> None:
        """Report active lanes that read what their thread has not written."""
        marks = self._lanes.unwritten.load(address, dtypes)
        bad = np.logical_or.reduce(np.broadcast_arrays(*[each != 0 for each in marks]))
        bad = self._lanes.both(mask, bad)
        if bad.any():
            first = tuple(np.argwhere(bad)[0])
            byte = int(np.broadcast_to(address, bad.shape)[first])
            text = f"byte {byte} of local memory, which the thread has not written, read"
            self._lanes.report(UNINITIALISED_LOCAL, pc, bad, text)

    def mark(self, address: Array, mask: Mask, values: Sequence[Array]) -> None:
        """Take in that lanes write to checked addresses."""
        nothing = [np.zeros((1, 1), unsigned(value.dtype)) for value in values]
        self._lanes.unwritten.store(address, mask, nothing)


class Unwritten(OnChip):
    """A mark for each byte of local memory: zero once it is written."""

    def rows(self) -> Array:
        """Return the row of each lane, as in local memory."""
        return self._lanes.local.rows()
