"""Verdicts on results: bounds, NaN and infinities, and memory that must stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ci.check.combination import Combination, Contents
from ci.check.judge import Comparison, compare
from ci.check.plan import plain, plan
from ci.check.references import REFERENCES
from kernels.spec import Layout
from tests.check.numpy_gemm import PROBLEM, STAGE, Call, judged, right, value

PLAN = plan(PROBLEM, REFERENCES["gemm_float64"], STAGE, STAGE.tile)
SIZE = {"M": 19, "N": 11, "K": 7}
PRODUCT = {"alpha": 1.0, "beta": 0.0}


def compared(got: float, want: float, bound: float = 0.5) -> Comparison:
    return compare(*(np.array([[number]]) for number in (got, want, bound)))


def test_an_error_within_the_bound_passes_and_one_beyond_fails() -> None:
    assert not compared(1.5, 1.0).wrong.any()
    assert compared(1.6, 1.0).wrong.all()


@pytest.mark.parametrize("want", [1.0, np.inf, -np.inf])
def test_nan_fails_where_it_is_not_expected(want: float) -> None:
    assert compared(np.nan, want, np.inf).wrong.all()


@pytest.mark.parametrize("got", [1.0, np.inf])
def test_an_expected_nan_must_be_there(got: float) -> None:
    assert compared(got, np.nan).wrong.all()
    assert not compared(np.nan, np.nan).wrong.any()


def test_an_infinity_is_expected_with_its_sign() -> None:
    assert not compared(np.inf, np.inf).wrong.any()
    assert compared(-np.inf, np.inf).wrong.all()
    assert compared(np.inf, 1.0).wrong.all()


def test_the_bound_told_is_that_of_the_worst_element() -> None:
    got = np.array([[1.0, 1.0, np.nan]])
    comparison = compare(got, np.array([[1.5, 1.1, 0.0]]), np.array([[2.0, 0.2, 1.0]]))
    assert (comparison.max_error, comparison.bound) == (0.5, 0.2)


def test_a_result_without_a_finite_element_has_no_error() -> None:
    assert compared(np.nan, np.nan).max_error is None


@pytest.mark.parametrize("combination", PLAN, ids=lambda combination: combination.name)
def test_a_right_kernel_passes_every_combination(combination: Combination) -> None:
    subcheck = judged(right, combination)
    assert subcheck.detail == ""
    assert subcheck.passed
    assert (subcheck.bound is None) == (combination.contents is Contents.INTEGERS)


def test_rows_that_cancel_pass_although_their_relative_error_is_large() -> None:
    combination = next(c for c in PLAN if c.contents is Contents.CANCELLING)

    def backwards(call: Call) -> None:
        call.c[...] = np.cumsum(call.a[:, None, ::-1] * call.b.T[None, :, ::-1], axis=2)[..., -1]

    assert judged(backwards, combination).passed


def test_an_element_that_is_off_by_one_unit_fails_where_the_result_is_exact() -> None:
    combination = replace(
        plain(PROBLEM, SIZE, {"alpha": 1.0, "beta": 1.0}), contents=Contents.INTEGERS
    )

    def off(call: Call) -> None:
        right(call)
        call.c[3, 4] = np.nextafter(call.c[3, 4], np.float32(1000))

    subcheck = judged(off, combination)
    assert not subcheck.passed
    assert subcheck.detail.startswith("1 of 209 elements wrong, first C[3, 4]: got ")


def test_a_kernel_that_swallows_nan_fails() -> None:
    combination = next(c for c in PLAN if c.contents is Contents.NOT_FINITE)

    def swallow(call: Call) -> None:
        right(call)
        call.c[...] = np.where(np.isnan(call.c), 0, call.c)

    assert not judged(swallow, combination).passed


def with_slack() -> Combination:
    return replace(plain(PROBLEM, SIZE, PRODUCT), leading_dimensions={"A": 9, "B": 12, "C": 14})


def test_a_write_into_the_slack_of_c_fails() -> None:
    def spill(call: Call) -> None:
        right(call)
        call.buffers["C"][2 * 14 + 12] = 1

    subcheck = judged(spill, with_slack())
    assert not subcheck.passed
    assert subcheck.detail == ("the slack of C, 2 past the end of row 2, was overwritten with 1.0")


def test_a_write_before_c_fails() -> None:
    def before(call: Call) -> None:
        right(call)
        base = call.buffers["C"].base
        assert isinstance(base, np.ndarray)
        base.view(np.float32)[63] = 1

    assert "the guard band, 1 before the first element of C," in judged(before, with_slack()).detail


def test_a_write_to_an_operand_that_is_only_read_fails() -> None:
    def scribble(call: Call) -> None:
        right(call)
        call.buffers["A"][0] += 1

    assert judged(scribble, with_slack()).detail.startswith("A[0, 0] was overwritten with")


def test_column_major_results_are_judged_in_the_problems_own_rows_and_columns() -> None:
    combination = replace(
        plain(PROBLEM, SIZE, PRODUCT),
        layouts={"A": Layout.ROW, "B": Layout.COLUMN, "C": Layout.COLUMN},
        leading_dimensions={"A": 7, "B": 7, "C": 19},
    )
    assert judged(right, combination).passed

    def off(call: Call) -> None:
        call.c[...] = value(call)
        call.c[2, 17] += 1

    assert "first C[17, 2]" in judged(off, combination).detail
