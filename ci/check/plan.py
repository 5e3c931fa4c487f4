"""Which launches make a stage's correctness plan: the factors, their levels, the directed rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ci.check.combination import Combination, Draft, odd, tight, vector
from ci.check.launch import exchanged_names
from ci.check.pairwise import covering_rows
from ci.check.reference import Reference
from kernels.spec import Access, CudaStage, Problem, Tile

DEFAULT_TILE = 8
"""Steps of a summed axis for a stage that declares no tile."""

LARGEST_TILE = 256
"""No block covers more of an axis than this; beyond it the search for the edge gives up."""

LEADING_DIMENSIONS = (tight, odd, vector)
"""Without slack; odd, so that every other row is misaligned; and one that invites vector accesses
even where the extent does not."""
MISALIGNMENTS = (0, 1)
"""In units of the operand's alignment."""


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
    drafts = (*_swept(problem, reference, tiles), *reference.directed(problem, tiles))
    fitted = ((draft, _in_domain(problem, stage, draft.size, tiles)) for draft in drafts)
    return tuple(draft.at(problem, size) for draft, size in fitted if size is not None)


def plain(problem: Problem, size: Mapping[str, int], scalars: Mapping[str, float]) -> Combination:
    """Return random contents in the first layouts, without slack and misalignment."""
    return Draft(size=size, scalars=scalars).at(problem, size)


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
        size = ones | {axis: extent}
        if any(math.prod(step.launch(size, tile).grid) > 1 for step in stage.steps(problem)):
            return extent - 1
    return None


def _levels(problem: Problem, axis: str, tile: int) -> tuple[int, ...]:
    """Return the extents to try: around the edge of the tile, and far from it."""
    results = (Access.UPDATE, Access.WRITE)
    summed = all(axis not in o.axes for o in problem.operands if o.access in results)
    # Three steps of the main loop, the last one ragged, fill and drain a double buffer.
    other = 2 * tile + 3 if summed else _prime_up_to(tile // 2)
    return tuple(sorted({max(extent, 1) for extent in (1, other, tile - 1, tile, tile + 1)}))


def _prime_up_to(limit: int) -> int:
    for candidate in range(limit, 1, -1):
        if all(candidate % divisor for divisor in range(2, candidate)):
            return candidate
    return 2


def _swept(problem: Problem, reference: Reference, tiles: Mapping[str, int]) -> Iterator[Draft]:
    """Return the rows of the covering array."""
    factors = _factors(problem, reference, tiles)
    masking = frozenset((n, reference.scalars[n].index(v)) for n, v in reference.masking.items())
    for row in covering_rows({name: len(levels) for name, levels in factors.items()}, masking):
        # Each factor's level, under the factor's name.
        level = {name: levels[row[name]] for name, levels in factors.items()}
        yield Draft(
            size=_chosen(level, problem.axes),
            scalars=_chosen(level, reference.scalars),
            layouts=_chosen(level, [o.name for o in problem.operands]),
            rules=_chosen(level, [o.name for o in problem.operands], "ld "),
            misalignments=_chosen(level, [o.name for o in problem.operands], "at "),
            contents=level["contents"],
        )


def _factors(
    problem: Problem, reference: Reference, tiles: Mapping[str, int]
) -> dict[str, Sequence[Any]]:
    """Return factor → levels. A factor with one level is left out, unless everything needs it."""
    factors: dict[str, Sequence[Any]] = {
        axis: reference.extents.get(axis) or _levels(problem, axis, tiles[axis])
        for axis in problem.axes
    }
    for operand in problem.operands:
        if operand.access is Access.SCRATCH:
            continue
        # Without a transposed form there is no launch that writes another layout.
        written = operand.access is not Access.READ and not problem.transposed
        if len(operand.layouts) > 1 and not written:
            factors[operand.name] = operand.layouts
        if problem.has_leading_dimension(operand):
            factors[f"ld {operand.name}"] = LEADING_DIMENSIONS
        factors[f"at {operand.name}"] = [by * operand.alignment for by in MISALIGNMENTS]
    return {**factors, **reference.scalars, "contents": reference.contents}


def _chosen(level: Mapping[str, Any], names: Iterable[str], prefix: str = "") -> dict[str, Any]:
    """Return name → level of the factors ``prefix + name`` that there are."""
    return {name: level[prefix + name] for name in names if prefix + name in level}


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
