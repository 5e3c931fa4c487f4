"""Which accesses to shared memory have no defined result: races and unwritten words."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.listing import Listing
from ci.simulator.marks import (
    FIRST_EPOCH,
    LONG_AGO,
    NEVER,
    THREAD_BITS,
    WARP_BITS,
    Extent,
    Touches,
    Trail,
    find_touches,
)
from ci.simulator.sink import (
    READ_AFTER_WRITE,
    UNINITIALISED,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    HazardSink,
)
from ci.simulator.stored import Stored, differing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ci.simulator.listing import Values

_WORD_BYTES = 4
# Loops repeat their touches; what an earlier loop left behind need not stay.
_MOST_REMEMBERED = 1024


class SharedShadow:
    """Follows who wrote and read each piece of shared memory since the last barrier.

    Warps of a block are unordered between two block-wide barriers, and lanes of a warp between
    two instructions that the warp executes together; a pair of unordered accesses to one place is
    a race if one of them writes, unless both are atomic, or both write the same value and nobody
    wrote another. What the lanes of a warp do in one instruction is a race only if it writes
    different values. A place is a 4-byte word, and becomes smaller once a narrower access occurs,
    so that neighbouring bytes are no race.

    Of a granule's touches within a warp only the newest are remembered. What that hides within
    the warp is a race between warps, or lanes that only a part of their warp waited for.

    Two things keep this cheap. One row of marks stands for all blocks of a slice until an access
    or a barrier differs between blocks. And accesses are only listed until their epoch ends
    (``Listing``).
    """

    def __init__(self, shared_bytes: int, sink: HazardSink) -> None:
        """Follow ``shared_bytes`` of shared memory per block and report to ``sink``."""
        self._bytes = shared_bytes
        self._sink = sink
        self.begin_slice(1, 1)

    def begin_slice(self, blocks: int, threads: int) -> None:
        """Forget everything: the next accesses are of fresh blocks.

        Args:
            blocks: Blocks in the slice.
            threads: Threads of a block, without padding.
        """
        self._blocks = blocks
        self._threads = threads
        self._granule_bytes = _WORD_BYTES
        self._granules = -(-self._bytes // _WORD_BYTES)
        self._begin_rows()
        self._known_touches: dict[tuple[int, bytes, bytes], Touches] = {}
        self._list = Listing()
        self._stored: deque[Stored] = deque(maxlen=256)

    def _begin_rows(self) -> None:
        """Let one row without marks stand for all blocks."""
        self._now = np.full(1, FIRST_EPOCH, dtype=np.int64)
        self._ordered = np.full((1, self._threads), FIRST_EPOCH, dtype=np.int64)
        """Time at which each thread was ordered against others of its warp last."""
        self._warps = np.full((1, -(-self._threads // 32)), FIRST_EPOCH, dtype=np.int64)
        """The same of any thread of each warp."""
        self._reads = Trail("read", self._granules)
        self._writes = Trail("written", self._granules)
        self._atomics: Trail | None = None

    def end_slice(self) -> None:
        """Check what no barrier has ended; a launch that stops early ends its slice as well."""
        self._settle()

    def barrier(self, mask: NDArray[np.bool_] | None) -> None:
        """Order what came before against what follows.

        Args:
            mask: (blocks, 1) which blocks passed a block-wide barrier; None: all of them.
        """
        if mask is None or mask.all():
            self._settle()
            self._stored.clear()
            self._now += FIRST_EPOCH
            self._order_blocks(slice(None))
            self._join_rows()
        else:
            self._split_rows()
            passed = mask[:, 0]
            self._now[passed] += FIRST_EPOCH
            self._order_blocks(passed)

    def _order_blocks(self, rows: slice | NDArray[np.bool_]) -> None:
        # Later than any of their warps: marks of one granule may be of different warps.
        latest = self._warps[rows].max(axis=1, keepdims=True) + FIRST_EPOCH
        self._warps[rows] = self._ordered[rows] = latest

    def order_warps(self, mask: NDArray[np.bool_] | None) -> None:
        """Order lanes of each warp that execute an instruction together against each other.

        Args:
            mask: The lanes, broadcastable; None: every thread.
        """
        if not self._bytes:
            return
        address = np.zeros((1, 1) if mask is None else (len(mask), 1), np.int64)
        touches = self._touches(address, mask, self._granule_bytes)
        entry = (self._order, 0, touches)
        if not self._list.ends_with(entry):
            self._list.take(*entry)

    def read(
        self,
        pc: int,
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
        *,
        first_look: bool = False,
    ) -> None:
        """Take in a load.

        Args:
            pc: The instruction.
            address: (b, t) byte addresses, b in {1, blocks}, t in {1, padded threads}.
            mask: Active lanes, broadcastable; None: every thread.
            width_bytes: Bytes per lane.
            first_look: Whether atomic operations on its words do no harm (``first_looks``).
        """
        check = self._check_look if first_look else self._check_read
        self._list.take(check, pc, self._touches(address, mask, width_bytes))

    def write(
        self,
        pc: int,
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
        values: Values = None,
    ) -> None:
        """Take in a store; arguments as in ``read``.

        Args:
            pc: The instruction.
            address: As in ``read``.
            mask: As in ``read``.
            width_bytes: As in ``read``.
            values: What is stored, one array per element; None: every lane's differs.
        """
        self._list.take(self._check_write, pc, self._touches(address, mask, width_bytes), values)

    def start_copy(
        self,
        pc: int,
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
    ) -> None:
        """Take in an asynchronous copy that begins; ``Pending`` tells who meets it under way."""
        self._list.take(self._check_copy, pc, self._touches(address, mask, width_bytes))

    def end_copy(
        self,
        pc: int,
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
        values: Values = None,
    ) -> None:
        """Take in an asynchronous copy that arrives; arguments as in ``write``."""
        self._list.take(self._record_write, pc, self._touches(address, mask, width_bytes), values)

    def atomic(
        self,
        pc: int,
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
        *,
        reads: bool = True,
    ) -> None:
        """Take in an atomic operation, which reads unless it exchanges; else as in ``read``."""
        check = self._check_update if reads else self._check_exchange
        self._list.take(check, pc, self._touches(address, mask, width_bytes))

    def _settle(self) -> None:
        """Check the listed accesses of the epoch that ends."""
        self._list.settle()
        self._list.postpones = len(self._now) == 1

    def _order(self, _: int, touches: Touches, __: Values) -> None:
        row = 0 if touches.row is None else touches.row
        warp = touches.thread >> WARP_BITS
        self._warps[row, warp] = self._warps[row, warp] + FIRST_EPOCH
        self._ordered[row, touches.thread] = self._warps[row, warp]

    def _check_read(self, pc: int, touches: Touches, values: Values) -> None:
        self._check_look(pc, touches, values)
        self._check(READ_AFTER_WRITE, pc, touches, self._atomics, "read")
        self._record(self._reads, pc, touches)

    def _check_look(self, pc: int, touches: Touches, _: Values) -> None:
        # Not recorded: it is the swap behind it that meets what follows.
        self._check(READ_AFTER_WRITE, pc, touches, self._writes, "read")
        self._check_written(pc, touches, "read")

    def _check_written(self, pc: int, touches: Touches, now: str) -> None:
        unwritten = self._writes.warps.high.take(touches.granule) == NEVER
        if unwritten.any():
            self._report(UNINITIALISED, pc, touches, unwritten, f"which no thread wrote, {now}")

    def _check_write(self, pc: int, touches: Touches, values: Values) -> None:
        # Recorded first, so that two warps of this one instruction meet as well.
        self._writes.warps.record(touches, self._epoch(touches), pc)
        self._stored.append(Stored(touches, values))
        self._check(WRITE_AFTER_READ, pc, touches, self._reads, "written")
        self._check(WRITE_AFTER_WRITE, pc, touches, self._writes, "written", stores=True)
        self._check(WRITE_AFTER_WRITE, pc, touches, self._atomics, "written")
        self._writes.lanes.record(touches, self._lane_epoch(touches), pc)

    def _record_write(self, pc: int, touches: Touches, values: Values) -> None:
        self._stored.append(Stored(touches, values))
        self._record(self._writes, pc, touches)

    def _check_copy(self, pc: int, touches: Touches, _: Values) -> None:
        now = "overwritten by a copy"
        self._check(WRITE_AFTER_READ, pc, touches, self._reads, now)
        self._check(WRITE_AFTER_WRITE, pc, touches, self._writes, now)
        self._check(WRITE_AFTER_WRITE, pc, touches, self._atomics, now)
        self._expect(touches)

    def _check_update(self, pc: int, touches: Touches, values: Values) -> None:
        self._check_written(pc, touches, "updated")
        self._check_exchange(pc, touches, values)

    def _check_exchange(self, pc: int, touches: Touches, _: Values) -> None:
        self._check(WRITE_AFTER_READ, pc, touches, self._reads, "updated")
        self._check(WRITE_AFTER_WRITE, pc, touches, self._writes, "updated")
        if self._atomics is None:
            self._atomics = Trail("updated", len(self._reads.warps.high))
        self._record(self._atomics, pc, touches)
        self._expect(touches)

    def _expect(self, touches: Touches) -> None:
        """Let the touched granules be unwritten no more, though no store has written them."""
        high = self._writes.warps.high
        high[touches.granule] = np.maximum(high.take(touches.granule), LONG_AGO)

    def _record(self, trail: Trail, pc: int, touches: Touches) -> None:
        trail.warps.record(touches, self._epoch(touches), pc)
        trail.lanes.record(touches, self._lane_epoch(touches), pc)

    def _check(
        self,
        kind: str,
        pc: int,
        touches: Touches,
        trail: Trail | None,
        now: str,
        *,
        stores: bool = False,
    ) -> None:
        """Report touches that meet what nothing orders against them.

        Args:
            kind: Of the hazard.
            pc: The instruction.
            touches: What it touches.
            trail: What was done before.
            now: What is done, in words.
            stores: Whether stores meet stores, of which equal ones do no harm, and those of one
                instruction meet as well.
        """
        if trail is None:
            return
        meetings = trail.meetings(touches, self._epoch(touches), self._ordered)
        clash = touches.clashes() if stores else None
        if clash is not None:
            meetings.append((clash, trail.warps, True))
        if not meetings:
            return
        self._list.suspects += 1
        found = np.logical_or.reduce([each for each, _, _ in meetings])
        if stores:
            found = differing(self._stored, touches, found, self._blocks, self._granule_bytes)
        if not found.any():
            return
        first = int(found.argmax())
        marks, same_warp = next((marks, same) for each, marks, same in meetings if each[first])
        granule, thread = int(touches.granule[first]), int(touches.thread[first])
        other, other_pc = marks.other(granule, thread, same_warp=same_warp)
        who = self._sink.thread(other) + (" of the same warp" if same_warp else "")
        story = f"{marks.verb} at {self._sink.line(other_pc)} by thread {who}, {now}"
        self._report(kind, pc, touches, found, story)

    def _report(
        self, kind: str, pc: int, touches: Touches, found: NDArray[np.bool_], story: str
    ) -> None:
        at = touches.granule[found]
        thread = touches.thread[found]
        row, granule = divmod(int(at[0]), self._granules)
        accesses = np.unique(at // self._granules << THREAD_BITS | thread).size
        alike = self._blocks if touches.row is None else 1
        detail = f"byte {granule * self._granule_bytes} of shared memory, {story}"
        self._list.suspects += 1
        self._sink.add(kind, pc, accesses * alike, row, int(thread[0]), detail)

    def _epoch(self, touches: Touches) -> NDArray[np.int64]:
        """Return the epoch of each touch, or one for all, in the marks' notation."""
        return self._now if touches.row is None else self._now[touches.row]

    def _lane_epoch(self, touches: Touches) -> NDArray[np.int64]:
        """Return the time of each touch in its warp."""
        row = 0 if touches.row is None else touches.row
        return np.asarray(self._warps[row, touches.thread >> WARP_BITS])

    def _touches(
        self, address: NDArray[np.int64], mask: NDArray[np.bool_] | None, width_bytes: int
    ) -> Touches:
        """Return what the active lanes touch, after making the shadow fine enough for it."""
        if width_bytes < self._granule_bytes:
            self._refine(width_bytes)
        if len(address) > 1 or (mask is not None and len(mask) > 1):
            self._split_rows()
        if len(self._now) > 1:
            return find_touches(address, mask, width_bytes, self._extent())
        active = b"" if mask is None else mask.tobytes()
        key = (width_bytes, address.tobytes(), active)
        touches = self._known_touches.get(key)
        if touches is None:
            if len(self._known_touches) >= _MOST_REMEMBERED:
                self._known_touches.clear()
            touches = find_touches(address, mask, width_bytes, self._extent())
            self._known_touches[key] = touches
        return touches

    def _extent(self) -> Extent:
        return Extent(len(self._now), self._threads, self._granules, self._granule_bytes)

    def _refine(self, granule_bytes: int) -> None:
        """Make the places smaller; earlier accesses touched all parts of theirs."""
        self._list.catch_up()
        pieces = self._granule_bytes // granule_bytes
        self._granule_bytes = granule_bytes
        self._granules *= pieces
        self._forget_stored()
        self._spread(pieces, 1)

    def _split_rows(self) -> None:
        """Give every block marks of its own."""
        if len(self._now) < self._blocks:
            self._list.catch_up()
            self._now = np.tile(self._now, self._blocks)
            self._warps = np.tile(self._warps, (self._blocks, 1))
            self._ordered = np.tile(self._ordered, (self._blocks, 1))
            self._forget_stored()
            self._spread(1, self._blocks)

    def _join_rows(self) -> None:
        """Let one row stand for all blocks again, if a barrier has made them alike."""
        rows = len(self._now)
        if rows == 1:
            return
        unwritten = self._writes.warps.high.reshape(rows, -1) == NEVER
        if (unwritten == unwritten[0]).all():
            self._begin_rows()
            self._writes.warps.high[~unwritten[0]] = LONG_AGO
            self._list.postpones = True

    def _forget_stored(self) -> None:
        """Take earlier values for different ones: they are kept in another grain."""
        self._stored.clear()
        self._stored.append(Stored(None, None))

    def _spread(self, repeats: int, copies: int) -> None:
        self._known_touches.clear()
        for trail in (self._reads, self._writes, self._atomics):
            if trail is not None:
                trail.spread(repeats, copies)
