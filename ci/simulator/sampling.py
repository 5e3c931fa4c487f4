"""Counting a launch from a few of its blocks: which ones, and whether they stand for the others.

A grid falls into boxes of blocks: along each axis the first block, the last one, and those between.
Of each box the corners and their next neighbours are executed, all in one slice.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.affine import dependence
from ci.simulator.coalescing import SECTOR_BYTES
from ci.simulator.counters import LaunchCounters
from ci.simulator.report import Counts, Sampling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ci.simulator.forms import Array, Mask
    from ci.simulator.merging import MergedAccess
    from ci.simulator.ptx import Instruction, Kernel

Triple = tuple[int, int, int]

_NEGATIVE, _POSITIVE = ("lt", "ge", "lo", "hs"), ("gt", "le", "hi", "ls")
_HALF = 1 << 31


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Sample:
    """The blocks that are executed, and what they stand for."""

    numbers: NDArray[np.int64]
    """(rows,) linear block numbers."""
    corner: NDArray[np.intp]
    """(rows,) the row of the first corner of each row's box."""
    weight: NDArray[np.int64]
    """(rows,) blocks each row stands for, times ``denominator``."""
    denominator: int
    defect: NDArray[np.int64]
    """(rows, rows) maps the values of something affine to zeros."""
    steps: NDArray[np.int64]
    """(neighbours, rows) maps values to what they change by from a corner to the next block."""


def choose(grid: Triple) -> Sample | None:
    """Return the blocks of a grid to execute; None if it has hardly more than those."""
    numbers: list[int] = []
    corner: list[int] = []
    parts: list[tuple[int, int]] = []
    defects: list[tuple[int, int, dict[int, int]]] = []
    steps: list[tuple[int, int]] = []
    spans = [_spans(extent) for extent in grid]
    for box in itertools.product(*spans):
        first = len(numbers)
        members = _members(box)
        low = members[0]
        place = {member: first + index for index, member in enumerate(members)}
        numbers += [x + grid[0] * (y + grid[1] * z) for x, y, z in members]
        corner += [first] * len(members)
        parts.append((math.prod(high - start + 1 for start, high in box), len(members)))
        next_to = {
            axis: place[_moved(low, axis)] for axis, (start, high) in enumerate(box) if high > start
        }
        steps += [(first, row) for row in next_to.values()]
        for member, row in place.items():
            far = {next_to[axis]: member[axis] - low[axis] for axis in next_to}
            defects.append((row, first, far))
    if len(numbers) >= math.prod(grid):
        return None
    denominator = math.lcm(*(rows for _, rows in parts))
    weight = [size * denominator // rows for size, rows in parts for _ in range(rows)]
    return Sample(
        numbers=np.array(numbers, np.int64),
        corner=np.array(corner, np.intp),
        weight=np.array(weight, np.int64),
        denominator=denominator,
        defect=_defect_matrix(len(numbers), defects),
        steps=_step_matrix(len(numbers), steps),
    )


def _spans(extent: int) -> list[tuple[int, int]]:
    """Return first and last index of each part of an axis."""
    if extent == 1:
        return [(0, 0)]
    inner = [(1, extent - 2)] if extent > 2 else []  # noqa: PLR2004
    return [(0, 0), *inner, (extent - 1, extent - 1)]


def _members(box: Sequence[tuple[int, int]]) -> list[Triple]:
    """Return the corners of a box, its first one first, and that one's next neighbours."""
    low: Triple = (box[0][0], box[1][0], box[2][0])
    corners: list[Triple] = list(itertools.product(box[0], box[1], box[2]))
    neighbours = [_moved(low, axis) for axis, (start, high) in enumerate(box) if high > start]
    return list(dict.fromkeys([low, *corners, *neighbours]))


def _moved(block: Triple, axis: int) -> Triple:
    x, y, z = (index + (number == axis) for number, index in enumerate(block))
    return x, y, z


def _defect_matrix(
    rows: int, defects: Sequence[tuple[int, int, Mapping[int, int]]]
) -> NDArray[np.int64]:
    matrix = np.zeros((rows, rows), np.int64)
    for row, first, far in defects:
        matrix[row, row] += 1
        matrix[row, first] -= 1
        for neighbour, distance in far.items():
            matrix[row, neighbour] -= distance
            matrix[row, first] += distance
    return matrix


def _step_matrix(rows: int, steps: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    matrix = np.zeros((len(steps), rows), np.int64)
    for number, (first, row) in enumerate(steps):
        matrix[number, row] += 1
        matrix[number, first] -= 1
    return matrix


class SampledCounters(LaunchCounters):
    """Counts a sample as the launch it stands for, and watches whether it may."""

    def __init__(
        self,
        kernel: Kernel,
        merged: Mapping[int, MergedAccess],
        sample: Sample,
        blocks: int,
        *,
        local: bool = True,
    ) -> None:
        """Prepare for one slice that holds the sample.

        Args:
            kernel: The kernel.
            merged: As for ``LaunchCounters``.
            sample: The blocks of the slice.
            blocks: Blocks of the whole launch.
            local: As for ``LaunchCounters``.
        """
        super().__init__(merged, local=local)
        self._sample = sample
        self._launched = blocks
        self._instructions: Sequence[Instruction] = kernel.instructions
        found = dependence(kernel)
        self.comparisons = found.comparisons
        """Program counters of the comparisons to call ``compared`` for."""
        self.joins = found.joins
        """Program counter → the join to call ``joined`` for."""
        self._obstacle = found.obstacle

    def global_access(
        self,
        pc: int,
        store: bool,  # noqa: FBT001
        address: NDArray[np.int64],
        mask: Mask,
        width_bytes: int,
        elements: int,
    ) -> None:
        """Count; see ``LaunchCounters.global_access``."""
        for where, active in self._shares(pc, address, mask):
            super().global_access(pc, store, where, active, width_bytes, elements)

    def atomic_access(
        self, pc: int, space: str, address: NDArray[np.int64], mask: Mask, width_bytes: int
    ) -> None:
        """Count; see ``LaunchCounters.atomic_access``."""
        for where, active in self._shares(pc, address, mask):
            super().atomic_access(pc, space, where, active, width_bytes)

    def shared_access(
        self,
        pc: int,
        store: bool,  # noqa: FBT001
        address: NDArray[np.int64],
        mask: Mask,
        width_bytes: int,
    ) -> None:
        """Count; see ``LaunchCounters.shared_access``."""
        for where, active in self._rows(address, mask):
            super().shared_access(pc, store, where, active, width_bytes)

    def local_access(self, pc: int, store: bool, mask: Mask, width_bytes: int) -> None:  # noqa: FBT001
        """Count; see ``LaunchCounters.local_access``."""
        for _, active in self._rows(np.zeros((1, 1), np.int64), mask):
            super().local_access(pc, store, active, width_bytes)

    def compared(self, pc: int, x: Array, y: Array, mask: Mask) -> None:
        """Watch a comparison: it must come out alike throughout each box."""
        if (len(x) == 1 and len(y) == 1) or self._obstacle:
            return
        operation, kind = self._instructions[pc].modifiers[0], self._instructions[pc].modifiers[-1]
        first, second = x.astype(np.int64), y.astype(np.int64)
        difference: Array = first - second
        side = np.asarray(np.sign(difference))
        if operation in _NEGATIVE:
            side = np.asarray(difference < 0)
        elif operation in _POSITIVE:
            side = np.asarray(difference > 0)
        unlike = np.not_equal(side, side[self._sample.corner])
        unlike |= self._sample.defect @ difference != 0
        if kind[0] == "u":
            # What wrapped around is no longer affine.
            unlike |= (first < 0) | (second < 0) | (first >= _HALF) | (second >= _HALF)
        if mask is not None:
            unlike = unlike & mask
        if unlike.any():
            self._doubt(pc, "turns out differently within a part of the grid")

    def joined(self, pc: int, shared: Array, mask: Mask) -> None:
        """Watch an ``or`` that is taken for a sum: what all blocks share has low bits only."""
        over = np.asarray(shared >= 1 << self.joins[pc].bits)
        if np.any(over if mask is None else over & mask):
            self._doubt(pc, "is no sum of block indices")

    def sampled(self) -> Sampling:
        """Return how the counts came about."""
        return Sampling(
            executed=len(self._sample.numbers), blocks=self._launched, obstacle=self._obstacle
        )

    def report(self) -> Mapping[int, Counts]:
        """Return the counts of the whole launch by program counter; a mean is rounded."""
        half = self._sample.denominator // 2
        for key, value in self._tally.items():
            self._tally[key] = (value + half) // self._sample.denominator
        return super().report()

    def _doubt(self, pc: int, what: str) -> None:
        place = self._instructions[pc].place
        self._obstacle = self._obstacle or f"{place.file}:{place.line} {what}"

    def _shares(
        self, pc: int, address: NDArray[np.int64], mask: Mask
    ) -> Iterator[tuple[NDArray[np.int64], Mask]]:
        """Return the parts of an access to global memory; watch how its blocks lie."""
        if len(address) == 1:
            return self._rows(address, mask)
        if mask is None or len(mask) == 1:
            shift = address - address[:1]
            alike = bool((shift == shift[:, :1]).all()) and not (shift[:, 0] % SECTOR_BYTES).any()
            if alike:
                if np.any(self._sample.defect @ shift[:, 0]):
                    self._doubt(pc, "is no sum of block indices")
                return self._rows(address[:1], mask)
        self._watch(pc, address, mask)
        return self._rows(address, mask)

    def _watch(self, pc: int, address: NDArray[np.int64], mask: Mask) -> None:
        """Note an access of which the blocks of a box are not shifted by whole sectors."""
        shift: NDArray[np.int64] = address - address[self._sample.corner]
        if mask is not None:
            # An inactive lane moves as the first active one of its block does.
            active = np.broadcast_to(mask, (len(shift), mask.shape[1]))
            shift = np.broadcast_to(shift, (len(shift), max(shift.shape[1], active.shape[1])))
            leading = np.take_along_axis(shift, active.argmax(axis=1)[:, None], axis=1)
            shift = np.where(active, shift, leading)
            shift = np.where(active.any(axis=1, keepdims=True), shift, 0)
        block = shift[:, 0]
        uneven = (self._sample.steps @ block) % SECTOR_BYTES
        if np.any(shift != shift[:, :1]) or np.any(uneven) or np.any(self._sample.defect @ block):
            self._doubt(pc, "is not shifted by whole sectors from block to block")

    def _rows(
        self, address: NDArray[np.int64], mask: Mask
    ) -> Iterator[tuple[NDArray[np.int64], Mask]]:
        """Yield an access block by block, each with its weight; once where all are alike."""
        weight = self._sample.weight
        if len(address) == 1 and (mask is None or len(mask) == 1):
            self._blocks = int(weight.sum())
            yield address, mask
            return
        for row, blocks in enumerate(weight.tolist()):
            active = mask
            if mask is not None:
                active = mask[row : row + 1] if len(mask) > 1 else mask
                if not active.any():
                    continue
                active = active if active.shape[1] > 1 else None
            self._blocks = blocks
            yield address[row : row + 1] if len(address) > 1 else address, active
