"""Which accesses of a launch have no defined result: races and unwritten shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.marks import FIRST_EPOCH, LONG_AGO, NEVER, THREAD_BITS, Marks, Touches
from ci.simulator.report import Hazard, Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Triple = tuple[int, int, int]
    Check = Callable[[int, Touches], None]
    Access = tuple[Check, int, Touches]

READ_AFTER_WRITE = "read-after-write race"
WRITE_AFTER_READ = "write-after-read race"
WRITE_AFTER_WRITE = "write-after-write race"
UNINITIALISED = "uninitialised shared read"

_WORD_BYTES = 4
# Loops repeat their touches and whole epochs; what an earlier loop left behind need not stay.
_MOST_REMEMBERED = 1024
_LONGEST_LIST = 4096


@dataclass(slots=True)
class _Sighting:
    count: int
    example: str


class HazardSink:
    """Collects hazards, one entry for each kind and source line."""

    def __init__(
        self,
        place_of: Callable[[int], Place],
        block_of: Callable[[int], Triple],
        thread_of: Callable[[int], Triple],
    ) -> None:
        """Start empty.

        Args:
            place_of: Source line of a program counter.
            block_of: Index of the block with a linear number in the grid.
            thread_of: Index of the thread with a linear number in its block.
        """
        self.first_block = 0
        """Linear number in the grid of the current slice's first block."""
        self._place_of = place_of
        self._block_of = block_of
        self._thread_of = thread_of
        self._seen: dict[tuple[str, Place], _Sighting] = {}

    def add(self, kind: str, pc: int, count: int, block: int, thread: int, detail: str) -> None:
        """Record a hazard that one instruction showed.

        Args:
            kind: Such as ``read-after-write race``.
            pc: The instruction that came last.
            count: Number of threads concerned.
            block: Linear number of one such block in the slice.
            thread: Linear number in that block of one such thread.
            detail: What was done to what; the words ``by thread ... of block ...`` follow it.
        """
        place = self._place_of(pc)
        sighting = self._seen.get((kind, place))
        if sighting is not None:
            sighting.count += count
            return
        block_index = _text(self._block_of(self.first_block + block))
        example = f"{detail} by thread {self.thread(thread)} of block {block_index}"
        if place.called_from:
            example += f", called from {place.called_from}"
        self._seen[kind, place] = _Sighting(count, example)

    def thread(self, linear: int) -> str:
        """Return the index of a thread, as in ``(3,0,0)``."""
        return _text(self._thread_of(linear))

    def hazards(self) -> tuple[Hazard, ...]:
        """Return what was recorded, in the order of first sight."""
        return tuple(
            Hazard(
                kind=kind,
                file=place.file,
                line=place.line,
                count=sighting.count,
                example=sighting.example,
            )
            for (kind, place), sighting in self._seen.items()
        )


def _text(index: Triple) -> str:
    return "({},{},{})".format(*index)


class SharedShadow:
    """Follows who wrote and read each piece of shared memory since the last barrier.

    Warps of a block are unordered between two block-wide barriers; a pair of accesses of two
    warps to one place is a race if one of them writes, unless both are atomic. Lanes of one warp
    are taken as ordered. A place is a 4-byte word, and becomes smaller once a narrower access
    occurs, so that neighbouring bytes of two warps are no race.

    Two things keep this cheap. One row of marks stands for all blocks of a slice until an access
    or a barrier differs between blocks. And accesses are only listed until their epoch ends:
    a list without hazards has none when a loop repeats it, for races lie within an epoch and what
    is written stays written.
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
        self._now = np.full(1, FIRST_EPOCH, dtype=np.int32)
        self._reads = Marks("read", self._granules)
        self._writes = Marks("written", self._granules)
        self._atomics: Marks | None = None
        self._known_touches: dict[tuple[int, bytes, bytes], Touches] = {}
        self._listed: list[Access] = []
        self._harmless: set[tuple[Access, ...]] = set()
        self._is_listing = True
        self._reports = 0

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
            self._now += FIRST_EPOCH
            self._join_rows()
        else:
            self._split_rows()
            self._now += np.where(mask[:, 0], FIRST_EPOCH, 0).astype(np.int32)

    def read(
        self,
        pc: int,
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
    ) -> None:
        """Take in a load.

        Args:
            pc: The instruction.
            address: (b, t) byte addresses, b in {1, blocks}, t in {1, padded threads}.
            mask: Active lanes, broadcastable; None: every thread.
            width_bytes: Bytes per lane.
        """
        self._take(self._check_read, pc, self._touches(address, mask, width_bytes))

    def write(
        self,
        pc: int,
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
    ) -> None:
        """Take in a store, or an asynchronous copy that completes; arguments as in ``read``."""
        self._take(self._check_write, pc, self._touches(address, mask, width_bytes))

    def start_copy(
        self,
        pc: int,
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
    ) -> None:
        """Take in the destination of an asynchronous copy, which is not written yet."""
        self._take(self._check_copy, pc, self._touches(address, mask, width_bytes))

    def atomic(
        self,
        pc: int,
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
    ) -> None:
        """Take in an atomic operation; one on a word that no thread wrote is not reported."""
        self._take(self._check_atomic, pc, self._touches(address, mask, width_bytes))

    def _take(self, check: Check, pc: int, touches: Touches) -> None:
        if not self._is_listing:
            check(pc, touches)
            return
        self._listed.append((check, pc, touches))
        if len(self._listed) == _LONGEST_LIST:
            self._catch_up()

    def _settle(self) -> None:
        """Check the listed accesses of the epoch that ends."""
        accesses = tuple(self._listed)
        if accesses and accesses not in self._harmless:
            before = self._reports
            self._catch_up()
            if self._reports == before:
                if len(self._harmless) == _MOST_REMEMBERED:
                    self._harmless.clear()
                self._harmless.add(accesses)
        self._listed.clear()
        self._is_listing = len(self._now) == 1

    def _catch_up(self) -> None:
        """Check the listed accesses, and the following ones of this epoch at once."""
        for check, pc, touches in self._listed:
            check(pc, touches)
        self._listed.clear()
        self._is_listing = False

    def _check_read(self, pc: int, touches: Touches) -> None:
        self._check(READ_AFTER_WRITE, pc, touches, self._writes, "read")
        if self._atomics is not None:
            self._check(READ_AFTER_WRITE, pc, touches, self._atomics, "read")
        unwritten = self._writes.high.take(touches.granule) == NEVER
        if unwritten.any():
            self._report(UNINITIALISED, pc, touches, unwritten, "which no thread wrote, read")
        self._reads.record(touches, self._epoch(touches))

    def _check_write(self, pc: int, touches: Touches) -> None:
        # Recorded first, so that two warps of this one instruction meet as well.
        self._writes.record(touches, self._epoch(touches))
        self._check_against_all(pc, touches, "written")

    def _check_copy(self, pc: int, touches: Touches) -> None:
        self._check_against_all(pc, touches, "overwritten by a copy")

    def _check_atomic(self, pc: int, touches: Touches) -> None:
        self._check(WRITE_AFTER_READ, pc, touches, self._reads, "updated")
        self._check(WRITE_AFTER_WRITE, pc, touches, self._writes, "updated")
        if self._atomics is None:
            self._atomics = Marks("updated", len(self._reads.high))
        self._atomics.record(touches, self._epoch(touches))
        written = np.maximum(self._writes.high.take(touches.granule), LONG_AGO)
        self._writes.high[touches.granule] = written

    def _check_against_all(self, pc: int, touches: Touches, now: str) -> None:
        self._check(WRITE_AFTER_READ, pc, touches, self._reads, now)
        self._check(WRITE_AFTER_WRITE, pc, touches, self._writes, now)
        if self._atomics is not None:
            self._check(WRITE_AFTER_WRITE, pc, touches, self._atomics, now)

    def _check(self, kind: str, pc: int, touches: Touches, marks: Marks, now: str) -> None:
        found = marks.foreign(touches, self._epoch(touches))
        if found is not None:
            first = int(np.argmax(found))
            other = marks.other(int(touches.granule[first]), int(touches.thread[first]))
            story = f"{marks.verb} by thread {self._sink.thread(other)}, {now}"
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
        self._reports += 1
        self._sink.add(kind, pc, accesses * alike, row, int(thread[0]), detail)

    def _epoch(self, touches: Touches) -> NDArray[np.int32]:
        """Return the epoch of each touch, or one for all, in the marks' notation."""
        return self._now if touches.row is None else self._now[touches.row]

    def _touches(
        self, address: NDArray[np.int64], mask: NDArray[np.bool_] | None, width_bytes: int
    ) -> Touches:
        """Return what the active lanes touch, after making the shadow fine enough for it."""
        if width_bytes < self._granule_bytes:
            self._refine(width_bytes)
        if len(address) > 1 or (mask is not None and len(mask) > 1):
            self._split_rows()
        if len(self._now) > 1:
            return self._find_touches(address, mask, width_bytes)
        active = b"" if mask is None else mask.tobytes()
        key = (width_bytes, address.tobytes(), active)
        touches = self._known_touches.get(key)
        if touches is None:
            if len(self._known_touches) >= _MOST_REMEMBERED:
                self._known_touches.clear()
            touches = self._find_touches(address, mask, width_bytes)
            self._known_touches[key] = touches
        return touches

    def _find_touches(
        self, address: NDArray[np.int64], mask: NDArray[np.bool_] | None, width_bytes: int
    ) -> Touches:
        shape = (len(self._now), self._threads)
        granule = np.broadcast_to(address[:, : self._threads] // self._granule_bytes, shape)
        if mask is None:
            row, lane = (index.reshape(-1) for index in np.indices(shape))
            granule = granule.reshape(-1)
        else:
            row, lane = np.nonzero(np.broadcast_to(mask[:, : self._threads], shape))
            granule = granule[row, lane]
        if len(self._now) > 1:
            granule = granule + row * self._granules
        per_lane = width_bytes // self._granule_bytes
        if per_lane > 1:
            granule = (granule[:, None] + np.arange(per_lane)).reshape(-1)
            row, lane = np.repeat(row, per_lane), np.repeat(lane, per_lane)
        return Touches(granule, lane.astype(np.int32), row if len(self._now) > 1 else None)

    def _refine(self, granule_bytes: int) -> None:
        """Make the places smaller; earlier accesses touched all parts of theirs."""
        self._catch_up()
        pieces = self._granule_bytes // granule_bytes
        self._granule_bytes = granule_bytes
        self._granules *= pieces
        self._spread(pieces, 1)

    def _split_rows(self) -> None:
        """Give every block marks of its own."""
        if len(self._now) < self._blocks:
            self._catch_up()
            self._now = np.tile(self._now, self._blocks)
            self._spread(1, self._blocks)

    def _join_rows(self) -> None:
        """Let one row stand for all blocks again, if a barrier has made them alike."""
        rows = len(self._now)
        if rows == 1:
            return
        unwritten = self._writes.high.reshape(rows, -1) == NEVER
        if (unwritten == unwritten[0]).all():
            self._now = np.full(1, FIRST_EPOCH, dtype=np.int32)
            self._reads = Marks("read", self._granules)
            self._writes = Marks("written", self._granules)
            self._writes.high[~unwritten[0]] = LONG_AGO
            self._atomics = None
            self._is_listing = True

    def _spread(self, repeats: int, copies: int) -> None:
        self._known_touches.clear()
        for marks in (self._reads, self._writes, self._atomics):
            if marks is not None:
                marks.spread(repeats, copies)
