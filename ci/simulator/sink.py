"""Collects what a launch did that has no defined result, by kind and source line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci.simulator.report import Hazard, Place

if TYPE_CHECKING:
    from collections.abc import Callable

    Triple = tuple[int, int, int]

READ_AFTER_WRITE = "read-after-write race"
WRITE_AFTER_READ = "write-after-read race"
WRITE_AFTER_WRITE = "write-after-write race"
GLOBAL_READ_AFTER_WRITE = "global read-after-write race"
GLOBAL_WRITE_AFTER_READ = "global write-after-read race"
GLOBAL_WRITE_AFTER_WRITE = "global write-after-write race"
UNINITIALISED_GLOBAL = "uninitialised global read"
UNINITIALISED = "uninitialised shared read"
UNINITIALISED_LOCAL = "uninitialised local read"
UNINITIALISED_VARIABLE = "uninitialised variable read"
READ_EARLY = "asynchronous copy read too early"


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

    def block(self, number: int) -> str:
        """Return the index of a block, given its number in the grid."""
        return _text(self._block_of(number))

    def line(self, pc: int) -> str:
        """Return the source line of an instruction, as in ``line 12``."""
        return f"line {self._place_of(pc).line}"

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
