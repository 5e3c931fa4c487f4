"""The plan of a stage: every pair of levels, few launches, sizes at the tile's edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import kernels
from ci.check.combination import Combination, Contents
from ci.check.pairwise import missing_pairs
from ci.check.plan import LEADING_DIMENSIONS, plan, tile_extents
from ci.check.references import REFERENCES
from kernels.spec import Access, CudaStage, Ladder, Layout, Operand, Problem
from kernels.suite import load_suite
from tests.check.numpy_gemm import LADDER, PROBLEM, STAGE

REFERENCE = REFERENCES["gemm_float64"]
SUITE = load_suite(Path(kernels.__file__).parent)
REAL = [
    pytest.param(ladder, stage, id=f"{ladder.name}/{stage.name}")
    for ladder in SUITE.ladders
    for stage in ladder.stages
    if isinstance(stage, CudaStage)
]
PRODUCTS = [each for each in REAL if str(each.id).startswith("sgemm/")]


def swept(ladder: Ladder, stage: CudaStage) -> list[Combination]:
    """Return the combinations of the covering array, without the directed ones."""
    reference = REFERENCES[ladder.problem.reference]
    tile = stage.tile_for("sm_90")
    directed = len(reference.directed(ladder.problem, tile_extents(ladder.problem, stage, tile)))
    found = plan(ladder.problem, reference, stage, tile)
    return list(found[: len(found) - directed])


def levels_of(problem: Problem, combination: Combination) -> dict[str, object]:
    """Return the level of every factor."""
    found: dict[str, object] = dict(combination.size) | dict(combination.layouts)
    found |= {f"at {name}": by for name, by in combination.misalignments.items()}
    for operand in problem.operands:
        if operand.name in combination.leading_dimensions:
            found[f"ld {operand.name}"] = leading_dimension_rule(combination, operand)
    return found | dict(combination.scalars) | {"contents": combination.contents}


def leading_dimension_rule(combination: Combination, operand: Operand) -> int:
    layout = combination.layouts.get(operand.name, Layout.ROW)
    extent = operand.shape(combination.size)[layout is Layout.ROW]
    lds = [rule(extent) for rule in LEADING_DIMENSIONS]
    return lds.index(combination.leading_dimensions[operand.name])


@pytest.mark.parametrize(("ladder", "stage"), REAL)
def test_every_pair_of_levels_occurs_in_the_plan_of_each_stage(
    ladder: Ladder, stage: CudaStage
) -> None:
    problem = ladder.problem
    reference = REFERENCES[problem.reference]
    found = [levels_of(problem, combination) for combination in swept(ladder, stage)]
    levels: dict[str, list[object]] = {
        factor: list(dict.fromkeys(row[factor] for row in found)) for factor in found[0]
    }
    rows = [{factor: levels[factor].index(row[factor]) for factor in levels} for row in found]
    masking = frozenset(
        (name, levels[name].index(level)) for name, level in reference.masking.items()
    )
    counts = {factor: len(choices) for factor, choices in levels.items()}
    assert missing_pairs(counts, rows, masking) == ()
    assert missing_pairs(counts, rows[1:], masking)
    for name, choices in reference.scalars.items():
        assert set(levels[name]) == set(choices)
    for axis, extents in reference.extents.items():
        assert set(levels[axis]) == set(extents)
    assert counts["contents"] == len(reference.contents)


@pytest.mark.parametrize(("ladder", "stage"), REAL)
def test_every_operand_is_misaligned_as_far_as_it_may_be(ladder: Ladder, stage: CudaStage) -> None:
    found = swept(ladder, stage)
    for operand in ladder.problem.operands:
        if operand.access is not Access.SCRATCH:
            offsets = {combination.misalignments[operand.name] for combination in found}
            assert offsets == {0, operand.alignment}


@pytest.mark.parametrize(("ladder", "stage"), PRODUCTS)
def test_a_product_varies_layouts_and_leading_dimensions(ladder: Ladder, stage: CudaStage) -> None:
    found = [levels_of(ladder.problem, combination) for combination in swept(ladder, stage)]
    for name in "ABC":
        assert len({row[name] for row in found}) == 2
        assert len({row[f"ld {name}"] for row in found}) == len(LEADING_DIMENSIONS)


@pytest.mark.parametrize(("ladder", "stage"), REAL)
def test_the_plan_of_each_stage_is_small(ladder: Ladder, stage: CudaStage) -> None:
    reference = REFERENCES[ladder.problem.reference]
    combinations = plan(ladder.problem, reference, stage, stage.tile_for("sm_90"))
    assert len(combinations) <= 40
    assert len({combination.name for combination in combinations}) == len(combinations)


@pytest.mark.parametrize(("ladder", "stage"), PRODUCTS)
def test_every_size_at_a_tile_edge_occurs(ladder: Ladder, stage: CudaStage) -> None:
    tiles = tile_extents(ladder.problem, stage, stage.tile_for("sm_90"))
    found = swept(ladder, stage)
    for axis, tile in tiles.items():
        extents = {combination.size[axis] for combination in found}
        assert {1, tile - 1, tile, tile + 1} <= extents
    assert any(combination.size["K"] % 4 for combination in found)
    assert any(combination.size["K"] > 2 * tiles["K"] for combination in found)


def test_a_result_without_a_transposed_form_is_planned_in_its_first_layout_only() -> None:
    problem = replace(PROBLEM, transposed=())
    combinations = plan(problem, REFERENCE, STAGE, STAGE.tile)
    assert {combination.layouts["C"] for combination in combinations[:-7]} == {Layout.ROW}


@pytest.mark.parametrize("name", ["A", "B", "C"])
@pytest.mark.parametrize("layout", Layout)
def test_each_operand_in_each_layout_invites_vectors_and_defies_them(
    name: str, layout: Layout
) -> None:
    axes = next(o.axes for o in PROBLEM.operands if o.name == name)
    invites = [
        combination.size[axes[layout is Layout.ROW]] % 4 == 0
        and combination.leading_dimensions[name] % 4 == 0
        and not combination.misalignments.get(name)
        for combination in plan(PROBLEM, REFERENCE, STAGE, STAGE.tile)
        if combination.layouts[name] is layout and combination.scalars["alpha"] != 0
    ]
    assert sum(invites) >= 2
    assert not all(invites)


def test_a_block_covers_what_the_grid_says() -> None:
    assert tile_extents(PROBLEM, STAGE, STAGE.tile) == {"M": 16, "N": 8, "K": 4}


def test_a_summed_axis_without_a_tile_of_its_own_takes_the_smallest_parameter() -> None:
    assert tile_extents(PROBLEM, STAGE, {"BM": 16, "BN": 8, "SIDE": 8})["K"] == 8


def test_a_row_of_the_plan_is_named_by_its_levels() -> None:
    combination = plan(PROBLEM, REFERENCE, STAGE, STAGE.tile)[1]
    assert combination.name == (
        "M=1 N=3 K=3 A=column B=column C=column lda=4 ldb=5 ldc=4 A+1 B+1 C+1 "
        "alpha=-1.5 beta=1 integers"
    )


def test_the_plan_is_the_same_every_time() -> None:
    assert plan(PROBLEM, REFERENCE, STAGE, STAGE.tile) == plan(
        PROBLEM, REFERENCE, STAGE, STAGE.tile
    )


def test_the_plan_holds_the_directed_launches() -> None:
    combinations = plan(PROBLEM, REFERENCE, STAGE, STAGE.tile)
    sizes = [tuple(combination.size.values()) for combination in combinations]
    assert {(100, 100, 99), (2, 4, 3)} <= set(sizes)
    contents = [combination.contents for combination in combinations]
    assert contents.count(Contents.NOT_FINITE) == contents.count(Contents.CANCELLING) == 1


def whole_tiles_of_m(size: Mapping[str, int]) -> str | None:
    return None if size["M"] % 16 == 0 else "M must be a multiple of 16"


def test_a_stage_for_whole_tiles_is_checked_at_whole_tiles() -> None:
    ladder = replace(LADDER, problem=replace(PROBLEM, transposed=()))
    combinations = plan(
        ladder.problem, REFERENCE, replace(STAGE, domain=whole_tiles_of_m), STAGE.tile
    )
    assert len(combinations) == len(plan(PROBLEM, REFERENCE, STAGE, STAGE.tile))
    assert {combination.size["M"] % 16 for combination in combinations} == {0}
    assert len({combination.size["M"] for combination in combinations}) > 2


def test_a_stage_that_takes_no_size_has_no_plan() -> None:
    nothing = replace(STAGE, domain=lambda _: "takes nothing")
    assert plan(PROBLEM, REFERENCE, nothing, STAGE.tile) == ()
