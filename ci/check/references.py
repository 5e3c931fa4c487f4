"""The trusted computations, by the name a problem declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ci.check.errors import UntrustedReferenceError
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
