"""The Python call: right results for every input it takes, one clear line for every other."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci.arrays import described, sizes
from ci.call import CallFailedError, call
from ci.check.references import REFERENCES
from ci.devices.errors import NoGpuError
from ci.devices.opening import usable_gpu
from ci.errors import UsageError
from kernels.dtypes import numbers, stored
from kernels.operands import read_as
from tests.check.numpy_gemm import PROBLEM

RANDOM = np.random.default_rng(1)
A, B = (RANDOM.standard_normal(shape, dtype=np.float32) for shape in ((70, 33), (33, 41)))
C = RANDOM.standard_normal((70, 41), dtype=np.float32)
HEADS = [RANDOM.standard_normal((1, 2, 37, 64), dtype=np.float32) for _ in range(3)]


def sgemm(*arrays: Any, **named: Any) -> Any:  # noqa: ANN401
    return call("sgemm/09_warp_tile", *arrays, device="simulator", **named)


def test_a_product_of_plain_arrays_is_a_plain_array() -> None:
    got = sgemm(A, B, alpha=2.0)
    assert (got.dtype, got.shape, got.flags.c_contiguous) == (np.float32, (70, 41), True)
    np.testing.assert_allclose(got, 2 * A @ B, atol=1e-4)


def test_views_that_have_a_leading_dimension_are_taken_as_they_are() -> None:
    np.testing.assert_allclose(sgemm(A[:, 3:20], B[3:20]), A[:, 3:20] @ B[3:20], atol=1e-4)
    np.testing.assert_allclose(sgemm(A.T.copy().T, np.asfortranarray(B)), A @ B, atol=1e-4)
    np.testing.assert_allclose(sgemm(A[::2], B), A[::2] @ B, atol=1e-4)


def test_an_operand_that_is_updated_is_not_changed() -> None:
    before = C.copy()
    got = sgemm(A, B, C=C, beta=0.5)
    np.testing.assert_allclose(got, A @ B + 0.5 * C, atol=1e-4)
    np.testing.assert_array_equal(C, before)


def test_bfloat16_comes_and_goes_as_bits() -> None:
    weights, x = RANDOM.standard_normal((9, 40)), RANDOM.standard_normal(40)
    kept = [stored(values.astype(np.float32), "bfloat16") for values in (weights, x)]
    got: Any = numbers(call("gemv/03_vectorized", *kept, device="simulator"), "bfloat16")
    rounded: list[Any] = [numbers(each, "bfloat16") for each in kept]
    np.testing.assert_allclose(got, rounded[0] @ rounded[1], rtol=2**-8, atol=1e-4)


@pytest.mark.parametrize("mask", [0, 2])
def test_attention_of_any_length_is_three_kernels_in_one_call(mask: int) -> None:
    got = call("attention/05_double_buffer", *HEADS, mask=mask, device="simulator")
    rows = [each.reshape(-1, 64) for each in HEADS]
    inputs = dict(zip("QKV", rows, strict=True)) | {"Mask": np.zeros((37, 37), np.float32)}
    want = REFERENCES["attention_float64"].compute(inputs, {"scale": 0.125, "mask": mask})
    np.testing.assert_allclose(got.reshape(-1, 64), want.value, atol=1e-5)


REFUSED = {
    "there is no stage 'sgemm/99'": lambda: call("sgemm/99", A, B),
    "device 'tpu', expected one of auto, cuda": lambda: call("sgemm/01_naive", A, B, device="tpu"),
    "B is float64, expected float32": lambda: sgemm(A, B.astype(np.float64)),
    "B: K = 5, expected 33 as A has": lambda: sgemm(A, B[:5]),
    "strides (-164, 4) bytes": lambda: sgemm(A, B[::-1]),
    "strides (164, 8) bytes": lambda: sgemm(A, B[:, ::2]),
    "strides (0, 4) bytes": lambda: sgemm(np.broadcast_to(A[0], (70, 33)), B),
    "B: N = 0, expected 1 to": lambda: sgemm(A, B[:, :0]),
    "B has 1 axes, expected 2: [K, N]": lambda: sgemm(A, B[:, 0]),
    "B is missing": lambda: sgemm(A),
    "C is missing, and is read for these scalars": lambda: sgemm(A, B, beta=1.0),
    "3 arrays, expected at most 2: A, B": lambda: sgemm(A, B, C),
    "A is given twice": lambda: sgemm(A, B, A=A),
    "sgemm has no 'gamma', expected A, B, C, alpha, beta": lambda: sgemm(A, B, gamma=1),
    "B is a list, expected a NumPy or CuPy array": lambda: sgemm(A, [[1.0]]),
    "D = 32, expected one of 64, 128": lambda: call(
        "attention/01_shared_tile", *(np.ascontiguousarray(each[..., :32]) for each in HEADS)
    ),
    "expected row-major, one axis": lambda: call("softmax/01_shared", np.asfortranarray(A)),
    "begins 4 bytes past a multiple of 16": lambda: call(
        "attention/01_shared_tile", past_a_boundary(HEADS[0], 1), *HEADS[1:]
    ),
    "scales has shape (3, 2), expected (3, 1)": lambda: call(
        "gemv_int4/01_warp_per_row", np.zeros((3, 4), np.uint32), np.zeros((3, 2), np.uint16),
        np.zeros(32, np.uint16),
    ),
}  # fmt: skip


def past_a_boundary(values: np.ndarray[Any, Any], elements: int) -> np.ndarray[Any, Any]:
    """Return a copy that begins so many elements past a multiple of 64 bytes."""
    memory = np.empty(values.size + 32, dtype=values.dtype)
    start = -memory.ctypes.data % 64 // values.itemsize + elements
    copied = memory[start : start + values.size].reshape(values.shape)
    copied[...] = values
    return copied


@pytest.mark.parametrize("said", REFUSED)
def test_an_input_that_cannot_be_taken_is_refused_in_one_line(said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as refused:
        REFUSED[said]()
    assert "\n" not in str(refused.value)


def test_a_gpu_that_was_asked_for_and_is_not_there_is_said() -> None:
    try:
        usable_gpu()
    except NoGpuError as missing:
        with pytest.raises(NoGpuError, match=re.escape(str(missing))):
            call("sgemm/01_naive", A, B, device="cuda")
    else:
        np.testing.assert_allclose(call("sgemm/01_naive", A, B), A @ B, atol=1e-4)


def test_a_hazard_on_the_simulator_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    # A grid twice too large in a kernel without a guard: the element behind the row is read.
    from ci import call as module  # noqa: PLC0415
    from kernels.spec import Launch  # noqa: PLC0415

    suite, ladder, stage = module._stage("softmax/01_shared")
    wide = Launch(grid=(6, 1, 1), block=(256, 1, 1))
    from dataclasses import replace  # noqa: PLC0415

    broken = replace(stage, launch=lambda *_: wide)
    monkeypatch.setattr(module, "_stage", lambda _: (suite, ladder, broken))
    with pytest.raises(CallFailedError, match=r"out-of-bounds .* at softmax/01_shared\.cu"):
        call("softmax/01_shared", A[:5], device="simulator")


@settings(deadline=None)
@given(
    rows=st.integers(1, 5),
    columns=st.integers(1, 5),
    pad=st.integers(0, 3),
    step=st.integers(1, 3),
    turned=st.booleans(),
)
def test_a_view_that_is_taken_is_read_as_numpy_reads_it(
    rows: int, columns: int, pad: int, step: int, *, turned: bool
) -> None:
    memory = np.arange(400, dtype=np.float32).reshape(20, 20)
    view = memory[: rows * step : step, : columns + pad][:, :columns]
    view = view.T if turned else view
    given = {"A": view, "B": np.zeros((view.shape[1], 2), dtype=np.float32)}
    assert sizes(PROBLEM, given)["M"] == view.shape[0]
    matrix = described(PROBLEM, PROBLEM.operands[0], view)
    again = read_as(memory.reshape(-1), matrix.shape, matrix.layout, matrix.leading_dimension)
    np.testing.assert_array_equal(again, view)
