"""References: right on what is known, refused where they are computed in lower precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ci.check.errors import UntrustedReferenceError
from ci.check.gemm import gemm_float64
from ci.check.reference import Expected, Inputs, Scalars, require_known_answer
from ci.check.references import REFERENCES, trusted_reference
from kernels.operands import Floats, integers, normal

BOTH = {"alpha": -1.5, "beta": 0.75}


def inputs(
    draw: Callable[[tuple[int, int], tuple[int, ...]], Floats] = normal,
) -> dict[str, Floats]:
    return {"A": draw((5, 7), (0,)), "B": draw((7, 3), (1,)), "C": draw((5, 3), (2,))}


def test_the_product_of_integers_is_exact() -> None:
    given = inputs(integers)
    a, b, c = (given[name].astype(int) for name in "ABC")
    assert (gemm_float64(given, BOTH).value * 4 == -6 * (a @ b) + 3 * c).all()


def test_the_condition_sums_absolute_values() -> None:
    given = inputs()
    a, b, c = (np.abs(given[name].astype(np.float64)) for name in "ABC")
    np.testing.assert_allclose(gemm_float64(given, BOTH).condition, 1.5 * a @ b + 0.75 * c)


def test_beta_zero_hides_what_c_holds() -> None:
    given = inputs()
    given["C"][...] = np.nan
    expected = gemm_float64(given, {"alpha": 1.0, "beta": 0.0})
    assert np.isfinite(expected.value).all()
    assert np.isfinite(expected.condition).all()


def test_nan_and_infinity_reach_their_row_and_column_only() -> None:
    given = inputs()
    given["A"][4, 6] = np.nan
    given["B"][0, 1] = np.inf
    got = gemm_float64(given, BOTH).value
    assert np.isnan(got[4]).all()
    assert np.isinf(got[:4, 1]).all()
    assert np.isfinite(got[:4, [0, 2]]).all()


def test_zero_times_infinity_stays_nan() -> None:
    given = inputs()
    given["A"][2] = 0
    given["B"][0, 1] = np.inf
    assert np.isnan(gemm_float64(given, BOTH).value[2, 1])


def test_the_reference_of_the_ladders_can_be_trusted() -> None:
    assert trusted_reference("gemm_float64") is REFERENCES["gemm_float64"]


def test_an_unknown_reference_is_refused_by_name() -> None:
    with pytest.raises(UntrustedReferenceError, match="'gemm_fp32' is not implemented"):
        trusted_reference("gemm_fp32")


def tf32(values: Floats) -> Floats:
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def float16(values: Floats) -> Floats:
    return values.astype(np.float16).astype(np.float32)


@pytest.mark.parametrize("rounding", [tf32, float16])
def test_a_reference_with_rounded_inputs_is_refused(rounding: Callable[[Floats], Floats]) -> None:
    def rounded(given: Inputs, scalars: Scalars) -> Expected:
        return gemm_float64({name: rounding(held) for name, held in given.items()}, scalars)

    planted = replace(REFERENCES["gemm_float64"], compute=rounded)
    with pytest.raises(UntrustedReferenceError, match="lower precision"):
        require_known_answer("planted", planted)


def test_a_reference_that_sums_in_float32_is_refused() -> None:
    def single(given: Inputs, scalars: Scalars) -> Expected:
        a, b, c = (given[name] for name in "ABC")
        value = scalars["alpha"] * (a @ b) + scalars["beta"] * c
        return Expected(value=value.astype(np.float64), condition=np.abs(value, dtype=np.float64))

    planted = replace(REFERENCES["gemm_float64"], compute=single)
    with pytest.raises(UntrustedReferenceError, match="lower precision"):
        require_known_answer("planted", planted)


def test_a_reference_of_the_transposed_result_is_refused() -> None:
    def transposed(given: Inputs, scalars: Scalars) -> Expected:
        expected = gemm_float64(given, scalars)
        return Expected(value=expected.value.T, condition=expected.condition.T)

    planted = replace(REFERENCES["gemm_float64"], compute=transposed)
    with pytest.raises(UntrustedReferenceError, match=r"shape \(4, 2\), expected \(2, 4\)"):
        require_known_answer("planted", planted)
