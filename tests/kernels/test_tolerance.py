"""Tolerances against arithmetic: float32 passes in any order, TF32 and lost terms do not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ci.check.attention import NO_MASK, attention_float64
from ci.check.streams import softmax_float64
from kernels.errors import ToleranceError
from kernels.operands import Floats, normal
from kernels.tolerance import (
    FLOAT32_UNIT_ROUNDOFF,
    Tolerance,
    exact,
    softmax_row,
    zero_mean_dot_product,
)

PRODUCTS = zero_mean_dot_product(unit_roundoff=FLOAT32_UNIT_ROUNDOFF)
ROWS = softmax_row(unit_roundoff=FLOAT32_UNIT_ROUNDOFF)
TIMES = 2000


def tf32(values: Floats) -> Floats:
    """Return the values rounded to 10 bits of mantissa."""
    return ((values.view(np.uint32) + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(np.float32)


def factor_used(got: Floats, want: NDArray[np.float64], condition: NDArray[np.float64]) -> float:
    """Return the largest error in unit roundoffs of the condition."""
    return float((np.abs(got - want) / (FLOAT32_UNIT_ROUNDOFF * condition)).max())


def dot_products(a: Floats, b: Floats) -> Floats:
    """Return the dot products of rows, one fused multiply-add after the other."""
    total = np.zeros(len(a), dtype=np.float32)
    for x, y in zip(a.T, b.T, strict=True):
        # float64 holds the product exactly; its sum is rounded once more, to float32.
        total = (total + x.astype(np.float64) * y).astype(np.float32)
    return total


@pytest.mark.parametrize("terms", [64, 512, 4096])
def test_sequential_float32_uses_a_third_of_the_factor_and_tf32_many_times_it(terms: int) -> None:
    a, b = (normal((TIMES, terms), (seed,)) for seed in (0, 1))
    want = np.einsum("mk,mk->m", a.astype(np.float64), b.astype(np.float64))
    condition = np.einsum("mk,mk->m", np.abs(a).astype(np.float64), np.abs(b).astype(np.float64))
    assert 1 < factor_used(dot_products(a, b), want, condition) < PRODUCTS.factor / 3
    assert factor_used(dot_products(tf32(a), tf32(b)), want, condition) > 10 * PRODUCTS.factor


def softmax(x: Floats) -> Floats:
    """Return the softmax of rows in float32 throughout."""
    exponentials = np.exp(x - x.max(axis=1, keepdims=True))
    quotient: Floats = exponentials / exponentials.sum(axis=1, keepdims=True, dtype=np.float32)
    return quotient


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_a_float32_softmax_is_accepted_and_one_of_tf32_inputs_is_not(scale: float) -> None:
    x = np.float32(scale) * normal((64, 1000), (0,))
    expected = softmax_float64({"X": x}, {})
    assert factor_used(softmax(x), expected.value, expected.condition) < ROWS.factor / 2
    assert factor_used(softmax(tf32(x)), expected.value, expected.condition) > 10 * ROWS.factor


@pytest.mark.parametrize("length", [5, 67, 512])
def test_float32_attention_is_accepted_and_tf32_attention_is_not(length: int) -> None:
    q, k, v = (normal((length, 64), (seed,)) for seed in (0, 1, 2))
    inputs = {"Q": q, "K": k, "V": v, "Mask": np.zeros((length, length), dtype=np.float32)}
    expected = attention_float64(inputs, {"scale": 0.125, "mask": NO_MASK})
    eighth = np.float32(0.125)
    right = softmax(eighth * (q @ k.T)) @ v
    coarse = tf32(softmax(eighth * (tf32(q) @ tf32(k).T))) @ tf32(v)
    assert factor_used(right, expected.value, expected.condition) < ROWS.factor / 2
    assert factor_used(coarse, expected.value, expected.condition) > 10 * ROWS.factor


def test_moving_data_accepts_no_error() -> None:
    assert (exact().relative, exact().output_unit_roundoff) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("factor", "output"), [(-1.0, 0.0), (2.0**24, 0.0), (float("nan"), 0.0), (16.0, 1.0)]
)
def test_a_bound_that_accepts_anything_is_refused(factor: float, output: float) -> None:
    with pytest.raises(ToleranceError, match="must lie between 0 and 1"):
        Tolerance(
            factor=factor,
            unit_roundoff=FLOAT32_UNIT_ROUNDOFF,
            source="none",
            output_unit_roundoff=output,
        )
