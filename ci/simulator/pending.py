"""Asynchronous copies on their way to shared memory: when they arrive, and who meets them before.

Every thread has groups of its own: it commits what it has issued, and waits for what it has
committed. Until its thread has waited for it, a copy may write at any time; who reads its
destination meanwhile, that thread included, reads too early, and who writes there races with it.
A copy of the same bytes to the same place does no harm.

Source: PTX ISA, "Data Movement and Conversion Instructions": cp.async, cp.async.commit_group,
cp.async.wait_group, cp.async.wait_all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.marks import THREAD_BITS, Extent, Touches, find_touches
from ci.simulator.sink import READ_EARLY, WRITE_AFTER_WRITE
from ci.simulator.stored import Stored, differing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ci.simulator.forms import Array, Mask
    from ci.simulator.lanes import Lanes

_WORD_BYTES = 4
_LAST_THREAD = (1 << THREAD_BITS) - 1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Copy:
    """What one instruction has read, and not yet written for all of its lanes."""

    pc: int
    address: Array
    """(b, t) bytes in shared memory."""
    mask: Mask
    """Lanes whose copy is on its way."""
    values: list[Array]
    """One array per 4-byte word."""
    group: int | Array
    """Number of the group that it is a part of, of each thread or of all."""

    @property
    def width_bytes(self) -> int:
        """Return the bytes of each lane."""
        return len(self.values) * _WORD_BYTES


class Pending:
    """The copies of a slice that nobody has waited for, and the words they will write.

    Groups are counted once for all threads until some of those that have copies on their way
    commit without the others.
    """

    def __init__(self, lanes: Lanes) -> None:
        """Begin without copies to the shared memory of ``lanes``."""
        self._lanes = lanes
        self.begin_slice()

    def begin_slice(self) -> None:
        """Forget everything: the next copies are of fresh blocks."""
        self._copies: list[Copy] = []
        self._committed: int | Array = 0
        """Groups so far."""
        self._marks = np.zeros((1, 0), np.int32)
        """(1 or blocks, words) who copies there: the instruction, then the thread + 1."""

    def issue(self, pc: int, address: Array, mask: Mask, values: list[Array]) -> None:
        """Take in a copy of the active lanes, which is then a part of their open group.

        Args:
            pc: The instruction.
            address: (b, t) checked addresses in shared memory.
            mask: Active lanes.
            values: What is copied, one array per 4-byte word.
        """
        words = -(-self._lanes.shared.size_bytes // _WORD_BYTES)
        if self._marks.shape[1] < words:
            self._marks = np.zeros((1, words), np.int32)
        copy = Copy(pc=pc, address=address, mask=mask, values=values, group=self._committed)
        self._copies.append(copy)
        touches = self._touches(address, mask, copy.width_bytes)
        marks, at = self._marks.reshape(-1), touches.granule
        before = marks[at]
        own = pc << THREAD_BITS | touches.thread
        marks[at] = own + 1
        last = marks[at]
        met = (before != 0) | (last != own + 1)
        if met.any():
            stores = [self._stored(each) for each in self._copies]
            met = differing(stores, touches, met, self._lanes.blocks, _WORD_BYTES)
            others = np.where(before != 0, before, last)
            self._report(WRITE_AFTER_WRITE, pc, touches, met, others, "overwritten by a copy")

    def commit(self, mask: Mask) -> None:
        """Let the active lanes close their open group."""
        if all(self._covers(mask, copy) for copy in self._copies):
            self._committed = self._committed + 1
        else:
            self._committed = self._committed + self._lanes.spread(mask)

    def wait(self, mask: Mask, newest: int) -> None:
        """Let the active lanes wait for their copies in all but the newest closed groups."""
        self._arrive(mask, [copy.group < self._committed - newest for copy in self._copies])

    def wait_all(self, mask: Mask) -> None:
        """Let the active lanes wait for all of their copies, those in no group included."""
        self._arrive(mask, [True] * len(self._copies))

    def read(self, pc: int, address: Array, mask: Mask, width_bytes: int, verb: str) -> None:
        """Take in a load or an atomic operation; ``verb`` says which.

        Args:
            pc: The instruction.
            address: (b, t) checked addresses in shared memory.
            mask: Active lanes.
            width_bytes: Bytes per lane.
            verb: Such as ``read``.
        """
        if self._copies:
            self._meet(READ_EARLY, pc, address, mask, width_bytes, verb)

    def write(self, pc: int, address: Array, mask: Mask, width_bytes: int) -> None:
        """Take in a store; arguments as in ``read``."""
        if self._copies:
            self._meet(WRITE_AFTER_WRITE, pc, address, mask, width_bytes, "written")

    def _arrive(self, mask: Mask, due: list[bool | NDArray[np.bool_]]) -> None:
        """Write those copies of the active lanes that are due."""
        left = []
        for copy, ready in zip(self._copies, due, strict=True):
            if not np.any(ready):
                left.append(copy)
            elif np.all(ready) and self._covers(mask, copy):
                self._write(copy)
            else:
                flying, spread = self._lanes.spread(copy.mask), self._lanes.spread(mask)
                arriving = flying & spread & ready
                if arriving.any():
                    self._write(replace(copy, mask=arriving))
                flying = flying & ~arriving
                if flying.any():
                    left.append(replace(copy, mask=flying))
        self._copies = left
        if not left:
            self._committed = 0
            self._marks = self._marks[:1]

    def _write(self, copy: Copy) -> None:
        touches = self._touches(copy.address, copy.mask, copy.width_bytes)
        self._marks.reshape(-1)[touches.granule] = 0
        lanes = self._lanes
        lanes.shadow.end_copy(copy.pc, copy.address, copy.mask, copy.width_bytes, copy.values)
        lanes.shared.store(copy.address, copy.mask, copy.values)

    def _covers(self, mask: Mask, copy: Copy) -> bool:
        """Return whether all lanes of a copy are active."""
        if mask is None or mask is self._lanes.everyone or mask is copy.mask:
            return True
        return not (self._lanes.spread(copy.mask) & ~mask).any()

    def _meet(
        self, kind: str, pc: int, address: Array, mask: Mask, width_bytes: int, verb: str
    ) -> None:
        """Report the active lanes that touch the destination of a copy."""
        index = address // _WORD_BYTES
        if len(self._marks) > 1:
            index = index + np.arange(len(self._marks))[:, None] * self._marks.shape[1]
        if width_bytes > _WORD_BYTES:
            index = index[..., None] + np.arange(width_bytes // _WORD_BYTES)
        if not self._marks.take(index).any():
            return
        # Some of these lanes may be idle.
        touches = self._touches(address, mask, max(width_bytes, _WORD_BYTES))
        others = self._marks.take(touches.granule)
        self._report(kind, pc, touches, others != 0, others, verb)

    def _touches(self, address: Array, mask: Mask, width_bytes: int) -> Touches:
        """Return the words that the active lanes touch."""
        lanes = self._lanes
        chosen = lanes.everyone if mask is None else mask
        rows = max(len(address), 1 if chosen is None else len(chosen))
        if rows > len(self._marks):
            self._marks = np.repeat(self._marks, rows, axis=0)
        extent = Extent(len(self._marks), lanes.threads, self._marks.shape[1], _WORD_BYTES)
        return find_touches(address, chosen, width_bytes, extent)

    def _stored(self, copy: Copy) -> Stored:
        return Stored(self._touches(copy.address, copy.mask, copy.width_bytes), copy.values)

    def _report(
        self,
        kind: str,
        pc: int,
        touches: Touches,
        found: NDArray[np.bool_],
        others: NDArray[np.int32],
        verb: str,
    ) -> None:
        """Report touches, given the marks of the copies that they meet."""
        if not found.any():
            return
        sink, first = self._lanes.sink, int(found.argmax())
        row, word = divmod(int(touches.granule[first]), self._marks.shape[1])
        other_pc, other = divmod(int(others[first]) - 1, _LAST_THREAD + 1)
        detail = (
            f"byte {word * _WORD_BYTES} of shared memory, copied at {sink.line(other_pc)} "
            f"by thread {sink.thread(other)}, which has not waited for it, {verb}"
        )
        thread = touches.thread[found]
        accesses = np.unique(
            touches.granule[found] // self._marks.shape[1] << THREAD_BITS | thread
        ).size
        alike = self._lanes.blocks if touches.row is None else 1
        sink.add(kind, pc, accesses * alike, row, int(thread[0]), detail)
