"""Freivalds' check passes right products of every precision asked for and refuses wrong ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ci.check.freivalds import confirm_gemm
from kernels.operands import Floats, normal
from kernels.tolerance import FLOAT32_UNIT_ROUNDOFF, zero_mean_dot_product

RELATIVE = zero_mean_dot_product(unit_roundoff=FLOAT32_UNIT_ROUNDOFF).relative
SCALARS = {"alpha": -1.5, "beta": 0.75}


def operands(m: int = 96, n: int = 80, k: int = 512) -> dict[str, Floats]:
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n)}
    return {name: normal(shape, (i,)) for i, (name, shape) in enumerate(shapes.items())}


def product(inputs: dict[str, Floats]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = (
        np.float32(SCALARS["alpha"]) * (inputs["A"] @ inputs["B"])
        + np.float32(SCALARS["beta"]) * inputs["C"]
    ).astype(np.float64)
    return result


def tf32(values: Floats) -> Floats:
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.parametrize("size", [(1, 1, 1), (33, 17, 5), (96, 80, 512), (300, 2, 1000)])
def test_a_float32_product_is_confirmed(size: tuple[int, int, int]) -> None:
    inputs = operands(*size)
    assert confirm_gemm(inputs, SCALARS, product(inputs), RELATIVE) == ""


def test_a_product_of_tf32_inputs_is_refused() -> None:
    inputs = operands()
    rounded = {**inputs, "A": tf32(inputs["A"]), "B": tf32(inputs["B"])}
    assert "rows fail" in confirm_gemm(inputs, SCALARS, product(rounded), RELATIVE)


def test_a_lost_summand_is_refused() -> None:
    inputs = operands()
    short = {**inputs, "A": inputs["A"][:, :-1], "B": inputs["B"][:-1]}
    assert "rows fail" in confirm_gemm(inputs, SCALARS, product(short), RELATIVE)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_one_wrong_element_is_refused_in_its_row(value: float) -> None:
    inputs = operands()
    result = product(inputs)
    result[41, 7] = value
    with np.errstate(invalid="ignore"):
        said = confirm_gemm(inputs, SCALARS, result, RELATIVE)
    assert said.startswith("1 of 96 rows fail")
    assert "row 41" in said


def test_what_the_scalars_leave_unread_may_hold_nan() -> None:
    inputs = operands()
    inputs["C"][...] = np.nan
    result = (inputs["A"] @ inputs["B"]).astype(np.float64)
    assert confirm_gemm(inputs, {"alpha": 1.0, "beta": 0.0}, result, RELATIVE) == ""
