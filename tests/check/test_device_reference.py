"""A device's float32 product as the reference: trusted only without TF32, watched by Freivalds."""

from __future__ import annotations

import numpy as np
import pytest

from ci.check.errors import UntrustedReferenceError
from ci.check.gemm import gemm_float32
from ci.check.references import device_reference
from ci.check.run import check_case, check_stage
from ci.results.model import Status
from kernels.operands import Floats
from tests.check.numpy_gemm import BUILT, LADDER, STAGE, Call, NumpyDevice, right

SIZE = {"M": 33, "N": 17, "K": 65}


def multiply(a: Floats, b: Floats) -> Floats:
    """As a device does it: float32 all the way."""
    with np.errstate(invalid="ignore"):
        product: Floats = np.einsum("mk,kn->mn", a, b)
    return product


def tf32(values: Floats) -> Floats:
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def test_a_float32_product_is_trusted_and_passes_a_right_stage() -> None:
    reference = device_reference("gemm_float64", multiply)
    plan = check_stage(NumpyDevice(), BUILT, LADDER, STAGE, reference)
    assert (plan.status, plan.reason) == (Status.PASSED, "")
    assert check_case(NumpyDevice(), BUILT, LADDER, STAGE, SIZE, reference).status is Status.PASSED


def test_a_product_of_tf32_inputs_is_not_trusted() -> None:
    with pytest.raises(UntrustedReferenceError, match="lower precision"):
        device_reference("gemm_float64", lambda a, b: multiply(tf32(a), tf32(b)))


def test_an_unknown_reference_is_refused_on_a_device_too() -> None:
    with pytest.raises(UntrustedReferenceError, match="not implemented"):
        device_reference("no_such", multiply)


def without_the_last_summand(call: Call) -> None:
    call.a, call.b = call.a[:, :-1], call.b[:-1]
    right(call)


def test_a_wrong_stage_fails_against_the_device_product() -> None:
    reference = device_reference("gemm_float64", multiply)
    device = NumpyDevice(kernel=without_the_last_summand)
    assert check_case(device, BUILT, LADDER, STAGE, SIZE, reference).status is Status.INCORRECT


def test_a_reference_that_is_wrong_as_the_stage_is_wrong_is_found_by_freivalds() -> None:
    """Both lose the last summand: they agree, and only the float64 vectors disagree."""
    reference = gemm_float32(lambda a, b: multiply(a[:, :-1], b[:-1]))
    device = NumpyDevice(kernel=without_the_last_summand)
    check = check_case(device, BUILT, LADDER, STAGE, SIZE, reference)
    assert check.status is Status.INCORRECT
    assert "the reference of C: " in check.reason
    assert "fail Freivalds' check" in check.reason
