"""Which accesses to global memory race: between blocks, and within one without a barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.memory import spread_to
from ci.simulator.protocols import Protocols
from ci.simulator.sink import (
    GLOBAL_READ_AFTER_WRITE,
    GLOBAL_WRITE_AFTER_READ,
    GLOBAL_WRITE_AFTER_WRITE,
    HazardSink,
)
from ci.simulator.tracks import THREAD_BITS, Track, Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ci.simulator.forms import Array, Mask
    from ci.simulator.memory import Region

    Integers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

_WARP_BITS = 5
_THREADS = 1 << THREAD_BITS


class GlobalShadow:
    """Follows who read and wrote each word of the buffers that a kernel may write.

    Two accesses race if one of them writes, not both are strong (atomic or ``volatile``), and
    nothing orders them: neither a barrier of their block, nor an instruction that their warp
    executed together, nor a fence and a flag (``Protocols``). Storing what is there already does
    no harm. A word becomes smaller once a narrower access occurs.

    Of each word the outermost blocks that touched it are remembered, and the outermost threads
    of the instruction that touched it last.
    """

    def __init__(self, sink: HazardSink) -> None:
        """Follow nothing yet, and report to ``sink``."""
        self.sink = sink
        self.protocols = Protocols()
        self.clock = 0
        self._regions: dict[Region, Words] = {}
        self.begin_slice(1)

    def watch(self, region: Region) -> None:
        """Follow a buffer from now on."""
        region.watched = True
        self._regions[region] = Words(len(region.words(np.dtype(np.uint8))))

    def begin_slice(self, blocks: int) -> None:
        """Start fresh blocks."""
        self.protocols.begin_slice(self.sink.first_block, blocks)
        self.barrier(None)

    def barrier(self, mask: Mask) -> None:
        """Order what the threads of a block did.

        Args:
            mask: (blocks, 1) which blocks passed a block-wide barrier; None: all of them.
        """
        self.clock += 1
        now = np.full((1, 1), self.clock)
        self._epoch: Integers = now if mask is None else np.where(mask, now, self._epoch)
        self._ordered: Integers = now if mask is None else np.where(mask, now, self._ordered)

    def order_warps(self, mask: Mask) -> None:
        """Order lanes of each warp that execute an instruction together."""
        if self._regions:
            self.clock += 1
            now = np.full((1, 1), self.clock)
            self._ordered = now if mask is None else np.where(mask, now, self._ordered)

    def fence(self, active: Flags, *, for_all: bool) -> None:
        """Take in a fence of the active lanes, for other blocks or only for the own one."""
        self.clock += 1
        self.protocols.fence(np.logical_or.reduce(active, axis=1), self.clock, for_all=for_all)

    def read(self, pc: int, region: Region, offset: Array, active: Flags, width: int) -> None:
        """Take in a load.

        Args:
            pc: The instruction.
            region: Where.
            offset: (b, t) bytes from the start of the region's storage.
            active: (blocks, threads) lanes that do it.
            width: Bytes per lane.
        """
        access = self._access(pc, region, offset, active, width)
        if access is not None:
            access.check(GLOBAL_READ_AFTER_WRITE, "read", "written", "stored strongly", "updated")
            access.record("read")

    def strong_read(
        self, pc: int, region: Region, offset: Array, active: Flags, width: int
    ) -> None:
        """Take in a ``volatile`` or ordering load; arguments as in ``read``."""
        access = self._access(pc, region, offset, active, width)
        if access is not None:
            access.check(GLOBAL_READ_AFTER_WRITE, "read", "written")
            access.acquire()
            access.record("read strongly")

    def write(
        self,
        pc: int,
        region: Region,
        offset: Array,
        active: Flags,
        values: Sequence[Array],
        *,
        strong: bool,
    ) -> None:
        """Take in a store that is still to be done; other arguments as in ``read``.

        Args:
            pc: The instruction.
            region: Where.
            offset: (b, t) bytes from the start of the region's storage.
            active: (blocks, threads) lanes that do it.
            values: What is stored, one array per element.
            strong: Whether it is ``volatile`` or orders memory.
        """
        width = values[0].itemsize * len(values)
        access = self._access(pc, region, offset, active, width)
        if access is None:
            return
        others = () if strong else ("stored strongly", "updated")
        readers = ("read",) if strong else ("read", "read strongly")
        access.check(GLOBAL_WRITE_AFTER_READ, "written", *readers)
        access.check(GLOBAL_WRITE_AFTER_WRITE, "written", "written", *others, values=values)
        if strong:
            access.release()
            access.record("stored strongly")
        else:
            access.record("written")
            access.check_clashes(values)

    def atomic(self, pc: int, region: Region, offset: Array, active: Flags, width: int) -> None:
        """Take in an atomic operation; arguments as in ``read``."""
        access = self._access(pc, region, offset, active, width)
        if access is not None:
            access.check(GLOBAL_WRITE_AFTER_READ, "updated", "read")
            access.check(GLOBAL_WRITE_AFTER_WRITE, "updated", "written")
            access.acquire()
            access.release()
            access.record("updated")
            # Blocks that meet in this instruction come one after the other.
            access.acquire(met=True)

    def _access(
        self, pc: int, region: Region, offset: Array, active: Flags, width: int
    ) -> _Access | None:
        words = self._regions.get(region)
        if words is None or not active.any():
            return None
        words.refine(width)
        self.clock += 1
        return _Access(self, words, region, pc, offset, active, width)

    def is_recent(self, row: Integers, thread: Integers, other: Integers, time: Integers) -> Flags:
        """Return whether what another thread of the block did is ordered by no barrier.

        Args:
            row: (n,) blocks in the slice.
            thread: (n,) threads that go on.
            other: (n,) threads that did something.
            time: (n,) when.
        """
        mine, theirs = (_at(self._ordered, row, each) for each in (thread, other))
        same_warp = thread >> _WARP_BITS == other >> _WARP_BITS
        unordered = (time >= mine) | (time >= theirs)
        return np.asarray(np.where(same_warp, unordered, time >= _at(self._epoch, row, thread)))


class _Access:
    """One instruction's access to one buffer, granule by granule."""

    def __init__(
        self,
        shadow: GlobalShadow,
        words: Words,
        region: Region,
        pc: int,
        offset: Array,
        active: Flags,
        width: int,
    ) -> None:
        self._shadow, self._words, self._region, self._pc = shadow, words, region, pc
        row, thread = np.nonzero(active)
        self._lanes = row, thread
        self._shape = active.shape
        self._per_lane = width // words.granule_bytes
        at = _at(offset, row, thread) // words.granule_bytes
        if self._per_lane > 1:
            at = (at[:, None] + np.arange(self._per_lane)).reshape(-1)
            row, thread = (np.repeat(each, self._per_lane) for each in (row, thread))
        self._at, self._row, self._thread = at, row, thread
        self._block = shadow.sink.first_block + row
        self._who = self._block << THREAD_BITS | thread

    def record(self, done: str) -> None:
        self._words.track(done).record(self._at, self._who, self._shadow.clock, self._pc)

    def check(self, kind: str, now: str, *done: str, values: Sequence[Array] | None = None) -> None:
        """Report what meets an unordered touch of another thread.

        Args:
            kind: Of the hazard.
            now: What is done now.
            done: What was done before.
            values: What is stored now, if that does no harm where it is there already.
        """
        for each in done:
            track = self._words.tracks.get(each)
            if track is None:
                continue
            touched = track.time[self._at] > 0
            if not touched.any():
                continue
            across = self._across(track, touched)
            found = across | self._within(track, touched)
            if values is not None and found.any():
                found &= self._pieces(values) != self._content()
            if found.any():
                self._report(kind, now, track, found, across)

    def _across(self, track: Track, touched: Flags) -> Flags:
        """Return what another block did and nothing orders."""
        block, time = track.other_block(self._at, self._block)
        return self._unordered(touched & (block != self._block), block, time)

    def _within(self, track: Track, touched: Flags) -> Flags:
        """Return what another thread of the same block did last and nothing orders."""
        other = track.other_thread(self._at, self._who)
        found: Flags = touched & (other >> THREAD_BITS == self._block) & (other != self._who)
        if not found.any():
            return found
        time = track.time[self._at]
        found &= self._shadow.is_recent(self._row, self._thread, other & _THREADS - 1, time)
        return self._unordered(found, self._block, time)

    def _unordered(self, found: Flags, block: Integers, time: Integers) -> Flags:
        """Leave out what a fence and a flag order."""
        if self._shadow.protocols.fences and found.any():
            here = np.flatnonzero(found)
            ordered = self._shadow.protocols.ordered(block[here], time[here], self._row[here])
            found[here[ordered]] = False
        return found

    def acquire(self, *, met: bool = False) -> None:
        """Take in that flags are read.

        Args:
            met: Whether only flags count at which blocks meet in this instruction.
        """
        protocols = self._shadow.protocols
        if not protocols.fences:
            return
        for each in ("stored strongly", "updated"):
            track = self._words.tracks.get(each)
            if track is not None:
                time = track.time[self._at]
                if met:
                    other = track.other_thread(self._at, self._who)
                    time = np.where(other >> THREAD_BITS == self._block, 0, time)
                protocols.acquire(self._row, time)

    def release(self) -> None:
        if self._shadow.protocols.fences:
            self._shadow.protocols.release(self._row, self._shadow.clock)

    def check_clashes(self, values: Sequence[Array]) -> None:
        """Report lanes that store different values to one place in this instruction."""
        track = self._words.track("written")
        meets = track.other_thread(self._at, self._who) != self._who
        if not meets.any():
            return
        places, which = np.unique(self._at[meets], return_inverse=True)
        pieces = self._pieces(values)
        lowest = np.full(len(places), np.iinfo(np.uint32).max, np.uint32)
        highest = np.zeros(len(places), np.uint32)
        np.minimum.at(lowest, which, pieces[meets])
        np.maximum.at(highest, which, pieces[meets])
        found = meets.copy()
        found[meets] = (lowest != highest)[which]
        if found.any():
            self._report(GLOBAL_WRITE_AFTER_WRITE, "written", track, found, found)

    def _pieces(self, values: Sequence[Array]) -> NDArray[np.uint32]:
        """Return what is stored to each granule."""
        row, thread = self._lanes
        # Registers of one width may hold their bits in different types.
        bits = [each.view(f"u{each.itemsize}") for each in values]
        lanes = np.stack([spread_to(each, self._shape)[row, thread] for each in bits], axis=-1)
        parts = lanes.view(np.uint8).view(f"u{self._words.granule_bytes}")
        return np.asarray(parts.reshape(-1).astype(np.uint32))

    def _content(self) -> NDArray[np.uint32]:
        words = self._region.words(np.dtype(f"u{self._words.granule_bytes}"))
        return np.asarray(words[self._at].astype(np.uint32))

    def _report(self, kind: str, now: str, track: Track, found: Flags, across: Flags) -> None:
        sink, first = self._shadow.sink, int(found.argmax())
        at, who = self._at[first : first + 1], self._who[first : first + 1]
        other = int(track.other_thread(at, who)[0])
        block = int(self._block[first])
        if across[first] and other >> THREAD_BITS == block and other == int(who[0]):
            there = int(track.other_block(at, self._block[first : first + 1])[0][0])
            actor = f"by block {sink.block(there)}"
        else:
            actor = f"at {sink.line(track.pc_of(int(at[0])))} by thread "
            actor += sink.thread(other & _THREADS - 1)
            if other >> THREAD_BITS != block:
                actor += f" of block {sink.block(other >> THREAD_BITS)}"
        byte = int(at[0]) * self._words.granule_bytes - self._region.lead_bytes
        detail = f"byte {byte} of {self._region.name}, {track.verb} {actor}, {now}"
        lanes = np.unique(self._who[found]).size
        sink.add(kind, self._pc, lanes, int(self._row[first]), int(self._thread[first]), detail)


def _at(values: Array, row: Integers, column: Integers) -> Integers:
    """Return elements of a (b, t) array that is broadcast."""
    rows, columns = values.shape
    found: Integers = values[row if rows > 1 else 0, column if columns > 1 else 0]
    return np.broadcast_to(found, row.shape)
