"""The trusted computations, by the name a problem declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ci.check.errors import UntrustedReferenceError
from ci.check.freivalds import confirm_gemm
from kernels.operands import Floats

Doubles = NDArray[np.float64]
Inputs = Mapping[str, Floats]
"""Operand name → its elements before the launch, [rows, columns] float32."""
Scalars = Mapping[str, float]
"""Scalar parameter → value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """What a launch should leave in the output."""

    value: Doubles
    """[rows, columns]."""
    condition: Doubles
    """What was summed in absolute value, which a tolerance multiplies; [rows, columns]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownAnswer:
    """A problem whose exact answer is known, and which only float64 gets right."""

    inputs: Inputs
    scalars: Scalars
    answer: Doubles


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """A trusted computation and what the plan must know of it."""

    compute: Callable[[Inputs, Scalars], Expected]
    scalars: Mapping[str, tuple[float, ...]]
    """Scalar parameter → the levels a plan tries; the first is what a case is run with."""
    unread: Callable[[Scalars], frozenset[str]]
    """The operands whose contents must not matter, given the scalars."""
    masking: Mapping[str, float]
    """Scalar → the level at which most of the operation is not done, and so not tested."""
    known: KnownAnswer
    confirm: Callable[[Inputs, Scalars, Doubles, float], str] | None = None
    """A second look, by another way, at a result [rows, columns] within a relative tolerance:
    what is wrong in words, empty if nothing is. For references that round themselves."""


def gemm_float64(inputs: Inputs, scalars: Scalars) -> Expected:
    """Return ``alpha*A@B + beta*C`` in float64, with NaN and infinities where IEEE 754 has them.

    As in BLAS, beta = 0 means that C is not read and alpha = 0 that A and B are not.

    Args:
        inputs: A [M, K], B [K, N] and C [M, N], float32.
        scalars: alpha and beta.
    """
    alpha, beta = scalars["alpha"], scalars["beta"]
    with np.errstate(invalid="ignore"):
        a, b, c = (inputs[name].astype(np.float64) for name in ("A", "B", "C"))
        value, condition = np.zeros_like(c), np.zeros_like(c)
        if alpha != 0:
            value += alpha * _product(a, b)
            condition += abs(alpha) * _product(np.abs(a), np.abs(b))
        if beta != 0:
            value += beta * c
            condition += np.abs(beta * c)
    return Expected(value=value, condition=condition)


def _product(a: Doubles, b: Doubles) -> Doubles:
    # Not a @ b: BLAS libraries may skip zeros, and 0 * NaN must stay NaN.
    product: Doubles = np.einsum("mk,kn->mn", a, b)
    return product


_GEMM_KNOWN = KnownAnswer(
    # 1024.5 needs more bits than TF32 or float16 keep; the sums need more than float32 keeps.
    inputs={
        "A": np.array([[1024.5, 2.0**-20, 1.0], [3.0, -1024.5, 2.0**-20]], dtype=np.float32),
        "B": np.array([[1.0, 0.0, 2.0, 1.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]],
                      dtype=np.float32),
        "C": np.array([[2.0, 4.0, 6.0, 8.0], [1.0, 3.0, 5.0, 7.0]], dtype=np.float32),
    },
    scalars={"alpha": 2.0, "beta": 0.5},
    answer=np.array(
        [
            [2050 + 2.0**-19, 2 + 2.0**-19, 4103, 2057],
            [-2042.5, -2047.5, 14.5 + 2.0**-19, 9.5 + 2.0**-18],
        ]
    ),
)  # fmt: skip

REFERENCES: Mapping[str, Reference] = {
    "gemm_float64": Reference(
        compute=gemm_float64,
        scalars={"alpha": (1.0, 0.0, -1.5), "beta": (0.0, 1.0, 0.75)},
        unread=lambda scalars: frozenset({"C"} if scalars["beta"] == 0 else ()),
        masking={"alpha": 0.0},
        known=_GEMM_KNOWN,
    ),
}


_GEMM_FLOAT32_KNOWN = KnownAnswer(
    # 1024.5 and 1 + 2**-12 need more bits than TF32 or float16 keep; every sum fits float32.
    inputs={
        "A": np.array([[1024.5, 1.0], [0.5, -1024.5]], dtype=np.float32),
        "B": np.array([[1.0, 0.0, 2.0], [0.0, 1.0 + 2.0**-12, 1.0]], dtype=np.float32),
        "C": np.array([[2.0, 4.0, 6.0], [1.0, 3.0, 5.0]], dtype=np.float32),
    },
    scalars={"alpha": 2.0, "beta": 0.5},
    answer=np.array([[2050, 4 + 2.0**-11, 4103], [1.5, -2048 - 2.0**-12, -2044.5]]),
)


def gemm_float32(multiply: Callable[[Floats, Floats], Floats]) -> Reference:
    """Return the reference for a matrix product whose product is a device's, in float32.

    The result under test and this one both round, each by at most about 3.1 u of the condition
    for zero-mean data (``kernels.tolerance.zero_mean_dot_product``), so that they differ by 6.2 u
    at most: the factor of 16 covers two float32 sides as it covers one, and still rejects TF32.

    Args:
        multiply: Returns ``a @ b`` in float32 without TF32.
    """

    def compute(inputs: Inputs, scalars: Scalars) -> Expected:
        alpha, beta = scalars["alpha"], scalars["beta"]
        a, b, c = (inputs[name] for name in ("A", "B", "C"))
        value, condition = np.zeros(c.shape), np.zeros(c.shape)
        with np.errstate(invalid="ignore"):
            if alpha != 0:
                value += alpha * multiply(a, b).astype(np.float64)
                condition += abs(alpha) * multiply(np.abs(a), np.abs(b)).astype(np.float64)
            if beta != 0:
                value += beta * c.astype(np.float64)
                condition += np.abs(beta * c.astype(np.float64))
        return Expected(value=value, condition=condition)

    float64 = REFERENCES["gemm_float64"]
    return replace(float64, compute=compute, known=_GEMM_FLOAT32_KNOWN, confirm=confirm_gemm)


def device_reference(name: str, multiply: Callable[[Floats, Floats], Floats]) -> Reference:
    """Return the reference of that name as a device computes it, where it can.

    Args:
        name: As a problem declares it.
        multiply: The device's trusted product, float32 without TF32.

    Raises:
        UntrustedReferenceError: There is none, or it gets its known answer wrong.
    """
    if name != "gemm_float64":
        return trusted_reference(name)
    reference = gemm_float32(multiply)
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


def require_known_answer(name: str, reference: Reference) -> None:
    """Refuse a reference that computes its known answer other than exactly.

    A reference in lower precision, TF32 switched on by accident above all, would pass wrong
    kernels and fail right ones without a word.

    Raises:
        UntrustedReferenceError: With the first element that differs.
    """
    known = reference.known
    got = reference.compute(known.inputs, known.scalars).value
    if got.shape != known.answer.shape:
        raise UntrustedReferenceError(
            f"reference {name!r} returned shape {got.shape}, expected {known.answer.shape}"
        )
    wrong = np.argwhere(got != known.answer)
    if wrong.size:
        row, column = (int(i) for i in wrong[0])
        raise UntrustedReferenceError(
            f"reference {name!r} computes its known answer wrongly at [{row}, {column}]: got "
            f"{float(got[row, column])!r}, want {float(known.answer[row, column])!r} "
            "(is it computed in lower precision?)"
        )
