"""Declarations of operands and kernels: extents, parameters, template arguments, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernels.errors import DeclarationError
from kernels.spec import (
    Access,
    CudaStage,
    Launch,
    Layout,
    Operand,
    Problem,
    Size,
    Step,
    Tile,
    check,
)
from kernels.tolerance import exact

SIZE = {"B": 2, "H": 3, "S": 5, "K": 17}


def one_block(size: Size, tile: Tile) -> Launch:
    del size, tile
    return Launch(grid=(1, 1, 1), block=(32, 1, 1))


PROBLEM = Problem(
    name="mean",
    title="y[S] = mean of X[S,K]",
    axes=("S", "K"),
    operands=(
        Operand(name="X", axes=("S", "K"), layouts=(Layout.ROW, Layout.COLUMN)),
        Operand(name="P", axes=("S", "K/8"), access=Access.SCRATCH),
        Operand(name="y", axes=("S",), access=Access.WRITE),
    ),
    parameters=("S", "K", "X", "ldx", "y"),
    flops=lambda size: size["S"] * size["K"],
    compulsory_bytes=lambda size: 4 * (size["S"] * size["K"] + size["S"]),
    reference="mean",
    baseline="",
    tolerance=exact(),
    sizes=(check(S=5, K=17),),
)
STAGE = CudaStage(
    source="01_two.cu",
    entry="first",
    launch=one_block,
    idea="sums wait in memory",
    tile={"BS": 4, "BK": 8},
    entry_tile=("BK",),
    parameters=("S", "K", "X", "ldx", "P"),
    then=(Step(entry="second", launch=one_block, parameters=("S", "K", "P", "y")),),
)


@pytest.mark.parametrize(
    ("axes", "extents", "shape"),
    [
        (("S",), (5,), (1, 5)),
        (("S", "K"), (5, 17), (5, 17)),
        (("S", "K/8"), (5, 3), (5, 3)),
        (("K/17",), (1,), (1, 1)),
        (("B", "H", "S", "K"), (2, 3, 5, 17), (30, 17)),
    ],
)
def test_an_operand_is_a_matrix_of_its_last_axis(
    axes: tuple[str, ...], extents: tuple[int, ...], shape: tuple[int, int]
) -> None:
    operand = Operand(name="X", axes=axes)
    assert operand.extents(SIZE) == extents
    assert operand.shape(SIZE) == shape


def test_kernels_are_told_a_leading_dimension_only_where_it_is_a_parameter() -> None:
    told = {o.name for o in PROBLEM.operands if PROBLEM.has_leading_dimension(o)}
    assert told == {"X"}


def test_a_stage_of_one_kernel_takes_the_problems_parameters() -> None:
    (step,) = replace(STAGE, parameters=(), then=()).steps(PROBLEM)
    assert step.parameters == PROBLEM.parameters


def test_each_kernel_of_a_stage_has_its_own_parameters_and_template_arguments() -> None:
    first, second = STAGE.steps(PROBLEM)
    flags = {"X": Layout.COLUMN}
    assert (first.parameters[-1], second.parameters[-1]) == ("P", "y")
    assert STAGE.name_expression(first, "sm_90", flags) == "first<8, true>"
    assert STAGE.name_expression(second, "sm_90", flags) == "second<4, 8, true>"
    plain = replace(second, tile=())
    assert STAGE.name_expression(plain, "sm_90", {}) == "second"


@pytest.mark.parametrize("axis", ["K/0", "K/-8", "K/8.0", "K/", "K/M"])
def test_an_axis_is_divided_by_a_whole_number(axis: str) -> None:
    with pytest.raises(DeclarationError, match=r"X: axis 'K/.* whole number above 0"):
        Operand(name="X", axes=("S", axis))


def test_an_operand_without_axes_is_refused() -> None:
    with pytest.raises(DeclarationError, match="X: has no axes"):
        Operand(name="X", axes=())


def test_an_operand_that_no_address_fits_is_refused() -> None:
    with pytest.raises(DeclarationError, match="X: alignment 0 must be at least 1 element"):
        Operand(name="X", axes=("K",), alignment=0)


def test_an_unknown_element_type_is_refused() -> None:
    with pytest.raises(DeclarationError, match="mean: X is bf16, expected one of float32"):
        replace(PROBLEM, operands=(Operand(name="X", axes=("K",), dtype="bf16"),))


def test_an_operand_of_an_axis_the_problem_lacks_is_refused() -> None:
    with pytest.raises(DeclarationError, match="mean: X has axis Q, expected S, K"):
        replace(PROBLEM, operands=(Operand(name="X", axes=("Q/8",)),))


def test_a_kernel_whose_tile_the_stage_does_not_declare_is_refused() -> None:
    step = replace(STAGE.then[0], tile=("BN",))
    with pytest.raises(DeclarationError, match="01_two: a kernel's tile names BN"):
        replace(STAGE, then=(step,))
