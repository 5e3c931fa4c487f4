"""The trusted computations, by the name a problem declares."""

from __future__ import annotations

from collections.abc import Mapping

from ci.check.attention import ATTENTION
from ci.check.errors import UntrustedReferenceError
from ci.check.gemm import GEMM, PROJECTION, Multiply, gemm_float32, projection_float32
from ci.check.reference import Reference, require_known_answer
from ci.check.streams import GEMV, GEMV_INT4, SOFTMAX, TRANSPOSE

REFERENCES: Mapping[str, Reference] = {
    "gemm_float64": GEMM,
    "projection_float64": PROJECTION,
    "gemv_float64": GEMV,
    "gemv_int4_float64": GEMV_INT4,
    "softmax_float64": SOFTMAX,
    "transpose_exact": TRANSPOSE,
    "attention_float64": ATTENTION,
}


def device_reference(name: str, multiply: Multiply) -> Reference:
    """Return the reference of that name as a device computes it, where it can.

    Args:
        name: As a problem declares it.
        multiply: The device's trusted product, float32 without TF32.

    Raises:
        UntrustedReferenceError: There is none, or it gets its known answer wrong.
    """
    on_device = {
        "gemm_float64": lambda: gemm_float32(multiply),
        "projection_float64": lambda: projection_float32(multiply),
    }
    if name not in on_device:
        return trusted_reference(name)
    reference = on_device[name]()
    require_known_answer(f"{name} on the device", reference)
    return reference


def trusted_reference(name: str) -> Reference:
    """Return the reference of that name, once it has shown that it can be trusted.

    Raises:
        UntrustedReferenceError: There is none, or it gets its known answer wrong.
    """
    if name not in REFERENCES:
        raise UntrustedReferenceError(
            f"reference {name!r} is not implemented, expected one of {', '.join(REFERENCES)} "
            "(add it to ci/check/references.py)"
        )
    require_known_answer(name, REFERENCES[name])
    return REFERENCES[name]
