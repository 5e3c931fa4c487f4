"""What wrong elements share: each planted mistake is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ci.check.combination import Combination, Contents
from ci.check.explain import Evidence, _summed_axes, _where
from ci.check.plan import LEADING_DIMENSIONS, plain
from ci.check.references import REFERENCES
from kernels.operands import Floats, read_as
from kernels.spec import Layout
from tests.check.numpy_gemm import PROBLEM, Call, Kernel, judged, right, value

SIZE = {"M": 35, "N": 19, "K": 11}
"""Two full tiles of 16 along M and 3 rows; two of 8 along N and 3 columns; two of 4 and 3 of K."""
PRODUCT = {"alpha": 1.0, "beta": 0.0}
GENERAL = {"alpha": -1.5, "beta": 0.75}


def combination(
    scalars: dict[str, float] = GENERAL,
    contents: Contents = Contents.RANDOM,
    ld: Callable[[int], int] = LEADING_DIMENSIONS[0],
) -> Combination:
    tight = plain(PROBLEM, SIZE, scalars)
    slack = {name: ld(extent) for name, extent in tight.leading_dimensions.items()}
    return replace(tight, leading_dimensions=slack, contents=contents)


def detail(kernel: Kernel, made: Combination | None = None) -> str:
    subcheck = judged(kernel, made or combination())
    assert not subcheck.passed
    return subcheck.detail


def on(call: Call, a: Floats | None = None, b: Floats | None = None) -> None:
    """Put the result for other inputs into C."""
    if a is not None:
        call.a = a
    if b is not None:
        call.b = b
    right(call)


def add(rows: slice, columns: slice) -> Kernel:
    """Return a kernel that is wrong in one region, by no mistake that has a name."""

    def kernel(call: Call) -> None:
        right(call)
        region = call.c[rows, columns]
        region += np.arange(1, region.size + 1, dtype=np.float32).reshape(region.shape)

    return kernel


ALL = slice(None)


@pytest.mark.parametrize(
    ("rows", "columns", "where"),
    [
        (ALL, ALL, "every element"),
        (slice(32, None), ALL, "all in rows 32 to 34 (beyond the last full tile of 16)"),
        (slice(34, None), ALL, "all in row 34 (beyond the last full tile of 16)"),
        (ALL, slice(16, None), "all in columns 16 to 18 (beyond the last full tile of 8)"),
        (slice(3, 5), slice(7, 8), "all in rows 3 to 4 and column 7"),
    ],
)
def test_the_region_is_named(rows: slice, columns: slice, where: str) -> None:
    said = detail(add(rows, columns)).split("; ")
    assert said[1:] == [where]


def test_a_corner_is_named_by_its_rows_and_its_columns() -> None:
    said = detail(add(slice(32, None), slice(16, None)))
    assert "all in rows 32 to 34 (beyond the last full tile of 16) and columns 16 to 18 (" in said


def test_the_ragged_edge_of_both_axes_is_named() -> None:
    def kernel(call: Call) -> None:
        before = call.c.copy()
        right(call)
        call.c[32:] += before[32:] + 1
        call.c[:32, 16:] += before[:32, 16:] + 2

    assert "all beyond the last full tile of 16 x 8" in detail(kernel)


def test_a_packed_axis_of_the_result_has_tiles_of_its_own_and_is_not_summed() -> None:
    a, b, c = PROBLEM.operands
    wrong = np.zeros((18, 19), np.bool_)
    wrong[16:] = True
    evidence = Evidence(
        problem=replace(PROBLEM, operands=(a, b, replace(c, axes=("M/2", "N")))),
        reference=REFERENCES["gemm_float64"],
        scalars={},
        size=SIZE,
        tiles={"M": 16, "N": 8, "K": 4},
        matrices={},
        inputs={},
        got=np.zeros(wrong.shape),
        wrong=wrong,
        relative=0.0,
        output_roundoff=0.0,
    )
    assert _where(evidence) == "all in rows 16 to 17 (beyond the last full tile of 8)"
    assert _summed_axes(evidence) == ["K"]


def test_elements_nobody_wrote_are_named() -> None:
    def kernel(call: Call) -> None:
        call.c[:32] = value(call)[:32]

    assert "were not written, they still hold what they held" in detail(kernel)
    poisoned = detail(kernel, combination(PRODUCT))
    assert "all in rows 32 to 34" in poisoned
    assert "were not written, they still hold poison" in poisoned


def test_c_read_at_beta_zero_is_named() -> None:
    def kernel(call: Call) -> None:
        with np.errstate(invalid="ignore"):
            call.c[...] = call.alpha * (call.a @ call.b) + call.beta * call.c

    said = detail(kernel, combination(PRODUCT))
    assert said.endswith("every element; NaN as if the kernel had read C, although beta = 0")


def test_slack_that_was_read_is_named() -> None:
    def kernel(call: Call) -> None:
        ragged = read_as(call.buffers["A"], (call.M - 1, call.K + 1), Layout.ROW, call.lds["A"])
        with np.errstate(invalid="ignore"):
            extra = ragged[:, -1:].copy() * np.float32(0)
        right(call)
        call.c[:-1] += extra

    said = detail(kernel, combination(ld=LEADING_DIMENSIONS[1]))
    assert "NaN as if the kernel had read the slack of A (leading dimension 13)" in said


@pytest.mark.parametrize(
    ("name", "as_if", "clause"),
    [
        ("beta", 0.0, "this is the result with beta = 0 instead of 0.75"),
        ("beta", 1.0, "this is the result with beta = 1 instead of 0.75"),
        ("alpha", 1.0, "this is the result with alpha = 1 instead of -1.5"),
    ],
)
@pytest.mark.parametrize("contents", [Contents.RANDOM, Contents.INTEGERS])
def test_a_scalar_that_is_ignored_is_named(
    name: str, as_if: float, clause: str, contents: Contents
) -> None:
    def kernel(call: Call) -> None:
        setattr(call, name, np.float32(as_if))
        right(call)

    said = detail(kernel, combination(contents=contents))
    assert said.endswith(f"; {clause}")


@pytest.mark.parametrize("dropped", [3, 11 % 8])
def test_a_dropped_tail_of_k_is_named(dropped: int) -> None:
    def kernel(call: Call) -> None:
        on(call, call.a[:, :-dropped], call.b[:-dropped])

    said = detail(kernel)
    assert "this is the result of the first 8 terms of K = 11" in said
    assert "tail beyond a multiple of 4 is dropped" in said


def test_an_operand_read_in_the_other_layout_is_named() -> None:
    def kernel(call: Call) -> None:
        # Column-major with this leading dimension runs past the end; there zeros are read.
        enough = np.zeros(call.K * call.M * 2, dtype=np.float32)
        enough[: call.buffers["A"].size] = call.buffers["A"]
        on(call, read_as(enough, (call.M, call.K), Layout.COLUMN, call.lds["A"]))

    said = detail(kernel)
    assert "this is the result with A read as column-major (it is row-major)" in said


def test_a_wrong_leading_dimension_is_named() -> None:
    def kernel(call: Call) -> None:
        on(call, None, read_as(call.buffers["B"], (call.K, call.N), Layout.ROW, call.K))

    said = detail(kernel)
    assert said.endswith("this is the result with B read with leading dimension 11 (it is 19)")


def test_a_result_written_as_its_transpose_is_named() -> None:
    def kernel(call: Call) -> None:
        result = value(call)
        buffer = call.buffers["C"]
        for row, column in np.ndindex(result.shape):
            index = column * call.M + row
            buffer[index] = result[row, column]

    said = detail(kernel, combination(PRODUCT))
    assert "the right values are there with C written as column-major (it is row-major)" in said
    assert "with leading dimension 35 (it is 19)" in said


def test_inputs_rounded_to_tf32_are_named() -> None:
    def rounded(values: Floats) -> Floats:
        half = values.copy().view(np.uint32) + np.uint32(0x1000)
        return (half & np.uint32(0xFFFFE000)).view(np.float32)

    def kernel(call: Call) -> None:
        on(call, rounded(call.a), rounded(call.b))

    assert detail(kernel).endswith("this is the result with the inputs rounded to TF32")


def test_a_mistake_without_a_name_gets_none() -> None:
    said = detail(add(slice(3, 5), slice(7, 8)))
    assert said.count(";") == 1


def test_a_matrix_of_one_column_is_not_said_to_be_written_as_another_layout() -> None:
    tight = plain(PROBLEM, {"M": 19, "N": 1, "K": 11}, PRODUCT)

    def kernel(call: Call) -> None:
        right(call)
        call.c[17] += 1

    said = judged(kernel, tight).detail.split("; ")
    assert said[1:] == ["all in row 17 (beyond the last full tile of 16)"]
