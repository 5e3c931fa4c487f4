"""References beside the matrix product: right by the plainest loops, refused in lower precision."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from ci.check.attention import ADDITIVE, CAUSAL, NO_MASK, attention_float64
from ci.check.errors import UntrustedReferenceError
from ci.check.reference import Expected, Inputs, Scalars, require_known_answer
from ci.check.references import REFERENCES, device_reference, trusted_reference
from ci.check.streams import GROUP, gemv_int4_float64, softmax_float64, transpose_exact
from kernels.operands import Floats, normal


def single(values: Floats) -> Floats:
    """As a device multiplies that has no float64: one rounding more."""
    return values.astype(np.float32)


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_knows_its_known_answer(name: str) -> None:
    assert trusted_reference(name) is REFERENCES[name]


@pytest.mark.parametrize("name", [name for name in REFERENCES if name != "transpose_exact"])
def test_a_reference_that_returns_float32_is_refused(name: str) -> None:
    def rounded(given: Inputs, scalars: Scalars) -> Expected:
        expected = REFERENCES[name].compute(given, scalars)
        return replace(expected, value=expected.value.astype(np.float32).astype(np.float64))

    with pytest.raises(UntrustedReferenceError, match="lower precision"):
        require_known_answer("planted", replace(REFERENCES[name], compute=rounded))


def test_a_projection_that_reads_w_as_in_by_out_is_refused() -> None:
    def transposed(given: Inputs, scalars: Scalars) -> Expected:
        square = {**given, "W": np.ascontiguousarray(given["W"][:2].T), "b": given["b"][:, :2]}
        return REFERENCES["projection_float64"].compute(square, scalars)

    known = REFERENCES["projection_float64"].known
    cut = {**known.inputs, "W": known.inputs["W"][1:], "b": known.inputs["b"][:, 1:]}
    planted = replace(
        REFERENCES["projection_float64"],
        compute=transposed,
        known=replace(known, inputs=cut, answer=known.answer[:, 1:]),
    )
    with pytest.raises(UntrustedReferenceError, match="computes its known answer wrongly"):
        require_known_answer("planted", planted)


def test_a_device_computes_projections_by_its_product() -> None:
    calls = []

    def multiply(a: Floats, b: Floats) -> Floats:
        calls.append((a.shape, b.shape))
        return single(a @ b)

    device_reference("projection_float64", multiply)
    assert ((2, 2), (2, 3)) in calls


@pytest.mark.parametrize("name", ["gemv_float64", "softmax_float64", "attention_float64"])
def test_what_a_device_has_no_product_for_is_computed_in_float64(name: str) -> None:
    assert device_reference(name, lambda a, b: a @ b) is REFERENCES[name]


def test_a_transpose_moves_every_bit_pattern_but_poisons_meaning() -> None:
    x = np.array([[1.0, np.inf], [-0.0, np.nan]], dtype=np.float32)
    value = transpose_exact({"X": x}, {}).value
    np.testing.assert_array_equal(value, [[1.0, -0.0], [np.inf, np.nan]])


def test_softmax_knows_masked_rows_and_special_values() -> None:
    rows = [[-np.inf] * 3, [np.nan, 0, 0], [np.inf, 0, 0], [3e38, 0, -3e38], [-np.inf, 0, 0]]
    value = softmax_float64({"X": np.array(rows, dtype=np.float32)}, {}).value
    np.testing.assert_array_equal(value[0], [0, 0, 0])
    assert np.isnan(value[1]).all()
    assert np.isnan(value[2]).any()
    np.testing.assert_array_equal(value[3], [1, 0, 0])
    np.testing.assert_array_equal(value[4], [0, 0.5, 0.5])


def test_softmax_is_a_ratio_of_exponentials() -> None:
    x = normal((4, 33), (0,))
    value = softmax_float64({"X": x}, {}).value
    for row, got in zip(x, value, strict=True):
        total = math.fsum(math.exp(each) for each in row)
        np.testing.assert_allclose(got, [math.exp(each) / total for each in row], rtol=1e-14)


def test_packed_weights_are_nibbles_less_8_times_the_scale_of_their_group() -> None:
    generator = np.random.default_rng(0)
    rows, columns = 3, GROUP + 16
    weights = generator.integers(0, 16, (rows, columns))
    words = np.zeros((rows, columns // 8), dtype=np.uint32)
    for k in range(columns):
        words[:, k // 8] |= (weights[:, k].astype(np.uint32)) << np.uint32(4 * (k % 8))
    scales, x = normal((rows, 2), (1,)), normal((1, columns), (2,))
    inputs = {"Wq": words.view(np.float32), "scales": scales, "x": x}
    got = gemv_int4_float64(inputs, {}).value
    for m in range(rows):
        terms = [
            (int(weights[m, k]) - 8) * float(scales[m, k // GROUP]) * float(x[0, k])
            for k in range(columns)
        ]
        assert got[0, m] == pytest.approx(math.fsum(terms), rel=1e-13)


def attend(inputs: Inputs, scalars: Scalars) -> list[list[float]]:
    """Return the attention of one head by the plainest loops."""
    q, k, v, mask = (inputs[name].astype(float) for name in ("Q", "K", "V", "Mask"))
    rows = []
    for i in range(len(q)):
        scores = {}
        for j in range(len(k)):
            added = {ADDITIVE: mask[i, j], CAUSAL: -math.inf if j > i else 0.0}
            by = added.get(int(scalars["mask"]), 0.0)
            if by != -math.inf:
                scores[j] = scalars["scale"] * math.fsum(q[i] * k[j]) + by
        weights = {j: math.exp(s - max(scores.values())) for j, s in scores.items()}
        total = math.fsum(weights.values())
        rows.append(
            [
                math.fsum(weight * v[j, d] for j, weight in weights.items()) / total
                if weights
                else 0.0
                for d in range(v.shape[1])
            ]
        )
    return rows


def one_head(length: int) -> dict[str, Floats]:
    generator = np.random.default_rng(3)
    mask = normal((length, length), (4,))
    mask[generator.random(mask.shape) < 0.3] = -np.inf
    mask[1] = -np.inf
    return {
        **{name: normal((length, 4), (seed,)) for seed, name in enumerate("QKV")},
        "Mask": mask,
    }


@pytest.mark.parametrize("mask", [NO_MASK, ADDITIVE, CAUSAL])
def test_attention_is_what_the_plainest_loops_give(mask: int) -> None:
    inputs, scalars = one_head(7), {"scale": 0.5, "mask": mask}
    got = attention_float64(inputs, scalars).value
    np.testing.assert_allclose(got, attend(inputs, scalars), rtol=1e-13, atol=1e-15)


def test_a_query_that_sees_no_key_gets_zeros() -> None:
    got = attention_float64(one_head(5), {"scale": 0.5, "mask": ADDITIVE}).value
    assert (got[1] == 0).all()


@pytest.mark.parametrize("mask", [ADDITIVE, CAUSAL])
def test_nan_behind_a_mask_reaches_nobody_and_in_sight_reaches_its_column(mask: int) -> None:
    inputs = one_head(6)
    inputs["Mask"][:5, 5] = -np.inf
    inputs["Mask"][5] = 0
    inputs["V"][5, 2] = np.nan
    got = attention_float64(inputs, {"scale": 0.5, "mask": mask}).value
    assert np.isfinite(got[:5]).all()
    assert np.isnan(got[5]).tolist() == [False, False, True, False]


def test_of_a_large_problem_the_first_and_the_last_head_stand_for_all() -> None:
    heads, length = 40, 1024
    inputs = {name: normal((heads * length, 1), (seed,)) for seed, name in enumerate("QKV")}
    inputs["Mask"] = np.zeros((length, length), dtype=np.float32)
    expected = attention_float64(inputs, {"scale": 1.0, "mask": NO_MASK})
    assert expected.rows is not None
    chosen = np.flatnonzero(expected.rows.reshape(heads, length).any(axis=1))
    assert chosen.tolist() == [0, heads - 1]
