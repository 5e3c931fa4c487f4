"""Which launches make a stage's correctness plan: the factors, their levels, the directed rows."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ci.check.launch import exchanged_names
from ci.check.pairwise import covering_rows
from ci.check.references import Reference
from kernels.spec import Access, CudaStage, Layout, Problem, Tile

DEFAULT_TILE = 8
"""Steps of a summed axis for a stage that declares no tile."""

LARGEST_TILE = 256
"""No block covers more of an axis than this; beyond it the search for the edge gives up."""

VECTOR = 4
"""Elements of the widest access, 16 bytes of float32."""


class Contents(enum.Enum):
    """What the operands hold."""

    RANDOM = "random"
    """Zero-mean N(0, 1)."""
    INTEGERS = "integers"
    """Small integers: the result is exact, whatever the order of summation."""
    NOT_FINITE = "NaN and infinity"
    """Random, with NaN and infinities that must reach just the elements they belong to."""
    CANCELLING = "cancelling"
    """Random, with sums that cancel to nearly 0: a purely relative bound would fail here."""


SWEPT_CONTENTS = (Contents.RANDOM, Contents.INTEGERS)
"""The contents every other factor is combined with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Combination:
    """One launch of a plan: a level of every factor."""

    size: Mapping[str, int]
    """Axis → extent."""
    layouts: Mapping[str, Layout]
    """Operand → layout."""
    leading_dimensions: Mapping[str, int]
    """Operand → elements."""
    misalignments: Mapping[str, int]
    """Operand → elements by which its address misses the allocator's alignment."""
    scalars: Mapping[str, float]
    contents: Contents

    @property
    def name(self) -> str:
        """Return the combination as sub-checks name it."""
        words = [f"{axis}={extent}" for axis, extent in self.size.items()]
        words += [f"{operand}={layout.value}" for operand, layout in self.layouts.items()]
        words += [f"ld{name.lower()}={ld}" for name, ld in self.leading_dimensions.items()]
        words += [f"{name}+{by}" for name, by in self.misalignments.items() if by]
        words += [f"{name}={value:g}" for name, value in self.scalars.items()]
        return " ".join([*words, self.contents.value])


def _tight(extent: int) -> int:
    return extent


def _odd(extent: int) -> int:
    return extent + 1 + extent % 2


def _vector(extent: int) -> int:
    return (extent // VECTOR + 1) * VECTOR


LEADING_DIMENSIONS: tuple[Callable[[int], int], ...] = (_tight, _odd, _vector)
"""Without slack; odd, so that every other row is misaligned; and one that invites vector accesses
even where the extent does not."""

MISALIGNMENTS = (0, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Draft:
    """A combination whose size is still to be fitted to the stage's domain."""

    size: Mapping[str, int]
    layouts: Mapping[str, Layout]
    rules: Mapping[str, Callable[[int], int]]
    """Operand → contiguous extent → leading dimension."""
    misalignments: Mapping[str, int]
    scalars: Mapping[str, float]
    contents: Contents

    def at(self, problem: Problem, size: Mapping[str, int]) -> Combination:
        """Return the combination at a size."""
        inner = {o.name: o.axes[self.layouts[o.name] is Layout.ROW] for o in problem.operands}
        return Combination(
            size=size,
            layouts=self.layouts,
            leading_dimensions={name: self.rules[name](size[inner[name]]) for name in inner},
            misalignments=self.misalignments,
            scalars=self.scalars,
            contents=self.contents,
        )


def plan(
    problem: Problem, reference: Reference, stage: CudaStage, tile: Tile
) -> tuple[Combination, ...]:
    """Return the launches of a stage's correctness plan, in which every pair of levels occurs.

    Factors: the extent of each axis (1, a prime, and around the tile's edge), layout, leading
    dimension and misalignment of each operand, each scalar, random contents or exact ones.
    Directed combinations follow. A size outside the stage's domain is rounded up to whole tiles;
    if the stage does not take that either, the combination is left out.
    """
    tiles = tile_extents(problem, stage, tile)
    drafts = (*_swept(problem, reference, tiles), *_directed(problem, tiles))
    fitted = ((draft, _in_domain(problem, stage, draft.size, tiles)) for draft in drafts)
    return tuple(draft.at(problem, size) for draft, size in fitted if size is not None)


def plain(problem: Problem, size: Mapping[str, int], scalars: Mapping[str, float]) -> Combination:
    """Return random contents in the first layouts, without slack and misalignment."""
    return _draft(problem, size, scalars).at(problem, size)


def _draft(
    problem: Problem,
    size: Mapping[str, int],
    scalars: Mapping[str, float],
    *,
    layouts: Sequence[Layout] = (),
    rule: Callable[[int], int] = _tight,
    contents: Contents = Contents.RANDOM,
) -> _Draft:
    """Return a draft with one rule for all leading dimensions; no layouts: the first ones."""
    names = [operand.name for operand in problem.operands]
    layouts = layouts or [operand.layouts[0] for operand in problem.operands]
    return _Draft(
        size=size,
        layouts=dict(zip(names, layouts, strict=True)),
        rules=dict.fromkeys(names, rule),
        misalignments=dict.fromkeys(names, 0),
        scalars=scalars,
        contents=contents,
    )


def tile_extents(problem: Problem, stage: CudaStage, tile: Tile) -> dict[str, int]:
    """Return how much of each axis one block, or one step of its main loop, covers.

    For an axis the grid depends on, that is the largest extent one block is launched for; for
    a summed axis ``K`` it is the tile parameter ``BK``, else the smallest tile parameter.
    """
    summed = min(tile.values(), default=DEFAULT_TILE)
    return {
        axis: _block_extent(problem, stage, tile, axis) or tile.get(f"B{axis}", summed)
        for axis in problem.axes
    }


def _block_extent(problem: Problem, stage: CudaStage, tile: Tile, axis: str) -> int | None:
    ones = dict.fromkeys(problem.axes, 1)
    for extent in range(2, LARGEST_TILE + 2):
        if math.prod(stage.launch(ones | {axis: extent}, tile).grid) > 1:
            return extent - 1
    return None


def _levels(problem: Problem, axis: str, tile: int) -> tuple[int, ...]:
    """Return the extents to try: around the edge of the tile, and far from it."""
    summed = all(axis not in o.axes for o in problem.operands if o.access is not Access.READ)
    # Three steps of the main loop, the last one ragged, fill and drain a double buffer.
    other = 2 * tile + 3 if summed else _prime_up_to(tile // 2)
    return tuple(sorted({max(extent, 1) for extent in (1, other, tile - 1, tile, tile + 1)}))


def _prime_up_to(limit: int) -> int:
    for candidate in range(limit, 1, -1):
        if all(candidate % divisor for divisor in range(2, candidate)):
            return candidate
    return 2


def _swept(problem: Problem, reference: Reference, tiles: Mapping[str, int]) -> Iterator[_Draft]:
    """Return the rows of the covering array."""
    extents = {axis: _levels(problem, axis, tiles[axis]) for axis in problem.axes}
    names = [operand.name for operand in problem.operands]
    counts = {axis: len(levels) for axis, levels in extents.items()}
    for operand in problem.operands:
        counts[operand.name] = len(operand.layouts)
        counts[f"ld {operand.name}"] = len(LEADING_DIMENSIONS)
        counts[f"at {operand.name}"] = len(MISALIGNMENTS)
    counts |= {name: len(levels) for name, levels in reference.scalars.items()}
    counts["contents"] = len(SWEPT_CONTENTS)
    masking = frozenset((n, reference.scalars[n].index(v)) for n, v in reference.masking.items())
    for row in covering_rows(counts, masking):
        yield _Draft(
            size={axis: extents[axis][row[axis]] for axis in problem.axes},
            layouts={o.name: o.layouts[row[o.name]] for o in problem.operands},
            rules={name: LEADING_DIMENSIONS[row[f"ld {name}"]] for name in names},
            misalignments={name: MISALIGNMENTS[row[f"at {name}"]] for name in names},
            scalars={name: levels[row[name]] for name, levels in reference.scalars.items()},
            contents=SWEPT_CONTENTS[row["contents"]],
        )


def _in_domain(
    problem: Problem, stage: CudaStage, size: Mapping[str, int], tiles: Mapping[str, int]
) -> Mapping[str, int] | None:
    """Return the size, or the next one in whole tiles, or None where the stage takes neither."""
    whole = {axis: -(-extent // tiles[axis]) * tiles[axis] for axis, extent in size.items()}
    return next((s for s in (size, whole) if accepts(problem, stage, s)), None)


def accepts(problem: Problem, stage: CudaStage, size: Mapping[str, int]) -> bool:
    """Return whether the stage takes a size, and the size of the transposed problem."""
    theirs = exchanged_names(problem)
    exchanged = {axis: size[theirs.get(axis, axis)] for axis in size}
    return stage.domain(size) is None and stage.domain(exchanged) is None


def _directed(problem: Problem, tiles: Mapping[str, int]) -> tuple[_Draft, ...]:
    """Return the combinations of a matrix product that no pair of levels stands for."""
    row, column = Layout.ROW, Layout.COLUMN
    product, both = {"alpha": 1.0, "beta": 0.0}, {"alpha": -1.5, "beta": 0.75}
    ragged = {axis: extent + 1 for axis, extent in tiles.items()}
    # Whole vectors, but no whole tile: all a stage needs to take its widest accesses everywhere.
    vectors = {axis: _vector(extent) for axis, extent in tiles.items()}
    vectors["N"] += VECTOR
    return (
        _draft(problem, vectors, product, contents=Contents.CANCELLING),
        _draft(problem, vectors, both, layouts=(row, column, column), rule=_vector),
        _draft(problem, vectors, both, layouts=(column, row, column), rule=_vector),
        _draft(problem, vectors, product, layouts=(column, column, row), rule=_vector),
        _draft(problem, ragged, both, contents=Contents.NOT_FINITE),
        # CUDA_gemm#6, tilelang#2381: the tail of K dropped silently, K = 8n + 3.
        _draft(problem, {"M": 100, "N": 100, "K": 99}, both),
        # NVIDIA/cutlass#49: misaligned accesses at odd extents.
        _draft(problem, {"M": 2, "N": 4, "K": 3}, product),
    )
