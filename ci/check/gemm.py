"""The trusted matrix products: ``alpha*A@B + beta*C``, and the projection ``X @ W.T + b``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ci.check.combination import VECTOR, Contents, Draft, everywhere, vector
from ci.check.freivalds import confirm_gemm
from ci.check.reference import Doubles, Expected, Inputs, KnownAnswer, Reference, Scalars
from kernels.operands import Floats, Matrix
from kernels.spec import Layout, Problem

Multiply = Callable[[Floats, Floats], Floats]
"""``a @ b`` in float32 without TF32, as a device computes it."""


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


def _directed(problem: Problem, tiles: Mapping[str, int]) -> tuple[Draft, ...]:
    """Return the combinations of a matrix product that no pair of levels stands for."""
    row, column = Layout.ROW, Layout.COLUMN
    product, both = {"alpha": 1.0, "beta": 0.0}, {"alpha": -1.5, "beta": 0.75}
    ragged = {axis: extent + 1 for axis, extent in tiles.items()}
    # Whole vectors, but no whole tile: all a stage needs to take its widest accesses everywhere.
    vectors = {axis: vector(extent) for axis, extent in tiles.items()}
    vectors["N"] += VECTOR
    layouts = [(row, column, column), (column, row, column)]
    rules = everywhere(problem, vector)

    def of(a: Layout, b: Layout, c: Layout) -> dict[str, Layout]:
        return {"A": a, "B": b, "C": c}

    return (
        Draft(size=vectors, scalars=product, contents=Contents.CANCELLING),
        *(Draft(size=vectors, scalars=both, layouts=of(*each), rules=rules) for each in layouts),
        Draft(size=vectors, scalars=product, layouts=of(column, column, row), rules=rules),
        Draft(size=ragged, scalars=both, contents=Contents.NOT_FINITE),
        # CUDA_gemm#6, tilelang#2381: the tail of K dropped silently, K = 8n + 3.
        Draft(size={"M": 100, "N": 100, "K": 99}, scalars=both),
        # NVIDIA/cutlass#49: misaligned accesses at odd extents.
        Draft(size={"M": 2, "N": 4, "K": 3}, scalars=product),
    )


def _not_finite(matrices: Mapping[str, Matrix]) -> None:
    a, b, c = (matrices[name].logical() for name in ("A", "B", "C"))
    a[-1, -1] = np.nan
    a[0, 0] = -np.inf
    b[-1, 0] = np.inf
    c[1, -1] = np.nan


def _cancel(matrices: Mapping[str, Matrix]) -> None:
    """Make the second half of the summed axis undo the first, up to a small rest."""
    a, b = (matrices[name].numbers() for name in ("A", "B"))
    half = a.shape[1] // 2
    a[:, half : 2 * half] = -a[:, :half]
    b[half : 2 * half] = b[:half]
    a[:, -1] += np.float32(2.0**-12)
    matrices["A"].fill(a)
    matrices["B"].fill(b)


GEMM = Reference(
    compute=gemm_float64,
    scalars={"alpha": (1.0, 0.0, -1.5), "beta": (0.0, 1.0, 0.75)},
    unread=lambda scalars: frozenset({"C"} if scalars["beta"] == 0 else ()),
    masking={"alpha": 0.0},
    directed=_directed,
    inject={Contents.NOT_FINITE: _not_finite, Contents.CANCELLING: _cancel},
    known=KnownAnswer(
        # 1024.5 needs more bits than TF32 or float16 keep; the sums more than float32 keeps.
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
    ),
)  # fmt: skip

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


def gemm_float32(multiply: Multiply) -> Reference:
    """Return the reference for a matrix product whose product is a device's, in float32.

    The result under test and this one both round, each by at most about 4 u of the condition
    for zero-mean data (``kernels.tolerance.zero_mean_dot_product``), so that they differ by 8 u
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

    return replace(GEMM, compute=compute, known=_GEMM_FLOAT32_KNOWN, confirm=confirm_gemm)


def _as_gemm(inputs: Inputs) -> Inputs:
    """Return a projection's operands as those of a product: B is W.T, and C repeats b in rows."""
    rows = inputs["X"].shape[0]
    bias = np.repeat(inputs["b"], rows, axis=0)
    return {"A": inputs["X"], "B": np.ascontiguousarray(inputs["W"].T), "C": bias}


_ONE = {"alpha": 1.0, "beta": 1.0}


def projection(gemm: Reference, known: KnownAnswer) -> Reference:
    """Return the reference of ``Y = X @ W.T + b``, from one of a matrix product.

    W is [out, in], as linear layers keep it: read as [in, out] it gives another result, or, where
    in = out, a wrong one of the right shape.

    Args:
        gemm: The trusted product.
        known: What a projection by that product must get right.
    """

    def compute(inputs: Inputs, scalars: Scalars) -> Expected:
        del scalars
        return gemm.compute(_as_gemm(inputs), _ONE)

    def confirm(inputs: Inputs, scalars: Scalars, result: Doubles, relative: float) -> str:
        del scalars
        return gemm.confirm(_as_gemm(inputs), _ONE, result, relative) if gemm.confirm else ""

    return Reference(
        compute=compute,
        directed=_projections,
        inject={Contents.NOT_FINITE: _not_finite_projection},
        confirm=confirm if gemm.confirm else None,
        known=known,
    )


def _projections(problem: Problem, tiles: Mapping[str, int]) -> tuple[Draft, ...]:
    vectors = {axis: vector(extent) for axis, extent in tiles.items()}
    ragged = {axis: extent + 1 for axis, extent in tiles.items()}
    return (
        Draft(size=vectors, scalars={}, rules=everywhere(problem, vector)),
        Draft(size=ragged, scalars={}, contents=Contents.NOT_FINITE),
        # Square, where a W read as [in, out] has the right shape and the wrong values.
        Draft(size=dict.fromkeys(tiles, max(tiles.values())), scalars={}),
        Draft(size={"M": 100, "N": 100, "K": 99}, scalars={}),
    )


def _not_finite_projection(matrices: Mapping[str, Matrix]) -> None:
    x, w, b = (matrices[name].logical() for name in ("X", "W", "b"))
    x[-1, -1] = np.nan
    w[0, 0] = np.inf
    b[0, -1] = np.nan


_BIAS = np.array([[1.0, 2.0, 3.0]], dtype=np.float32)
_LINEAR = np.array([[1.0, 0.0], [0.0, 1.0 + 2.0**-12], [2.0, 1.0]], dtype=np.float32)
_PROJECTION_KNOWN = KnownAnswer(
    inputs={
        "X": np.array([[1024.5, 2.0**-20], [0.5, -1024.5]], dtype=np.float32),
        "W": _LINEAR,
        "b": _BIAS,
    },
    scalars={},
    answer=np.array(
        [
            [1025.5, 2 + 2.0**-20 + 2.0**-32, 2052 + 2.0**-20],
            [1.5, -1022.5 - 1024.5 * 2.0**-12, -1020.5],
        ]
    ),
)
_PROJECTION_FLOAT32_KNOWN = KnownAnswer(
    # Every sum fits float32, no product TF32.
    inputs={
        "X": np.array([[1024.5, 1.0], [0.5, -1024.5]], dtype=np.float32),
        "W": _LINEAR,
        "b": _BIAS,
    },
    scalars={},
    answer=np.array([[1025.5, 3 + 2.0**-12, 2053], [1.5, -1022.5 - 1024.5 * 2.0**-12, -1020.5]]),
)

PROJECTION = projection(GEMM, _PROJECTION_KNOWN)


def projection_float32(multiply: Multiply) -> Reference:
    """Return the reference of a projection whose product is a device's, in float32.

    Args:
        multiply: Returns ``a @ b`` in float32 without TF32.
    """
    return projection(gemm_float32(multiply), _PROJECTION_FLOAT32_KNOWN)
