"""The trusted computations of kernels that stream: transpose, softmax, matrix times vector."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ci.check.combination import Contents, Draft, everywhere, vector
from ci.check.reference import (
    Doubles,
    Expected,
    Inputs,
    KnownAnswer,
    Reference,
    Scalars,
    doubles,
)
from kernels.operands import Floats, Matrix
from kernels.spec import Problem

GROUP = 128
"""Weights of a row that share a scale."""
_SMALLEST_NORMAL = 2.0**-126
"""Of float32; what is below it may be flushed to zero."""


def transpose_exact(inputs: Inputs, scalars: Scalars) -> Expected:
    """Return X [R, C] transposed, element for element."""
    del scalars
    value = doubles(inputs["X"].T)
    return Expected(value=value, condition=np.zeros_like(value))


def softmax_float64(inputs: Inputs, scalars: Scalars) -> Expected:
    """Return the softmax of each row of X [R, C] in float64.

    A row of -inf alone gives zeros, as PyTorch's safe softmax does; a NaN or an infinity above
    makes its row NaN.
    """
    del scalars
    x = doubles(inputs["X"])
    value, distance = softmax_rows(x)
    return Expected(value=value, condition=value * (8 + distance) + _SMALLEST_NORMAL / 2.0**-24)


def softmax_rows(x: Doubles) -> tuple[Doubles, Doubles]:
    """Return the softmax of each row, and each element's distance from its row's largest."""
    with np.errstate(invalid="ignore", over="ignore"):
        largest = x.max(axis=1, keepdims=True)
        base = np.where(np.isneginf(largest), 0.0, largest)
        exponentials = np.exp(x - base)
        total = exponentials.sum(axis=1, keepdims=True)
        value = exponentials / np.where(total == 0, 1.0, total)
        distance = np.where(np.isfinite(x), np.abs(x - base), 0.0)
    return value, distance


def _softmax_drafts(problem: Problem, tiles: Mapping[str, int]) -> tuple[Draft, ...]:
    del tiles
    wide = everywhere(problem, vector)
    return (
        Draft(size={"R": 5, "C": 1028}, scalars={}, rules=wide),
        Draft(size={"R": 4, "C": 4100}, scalars={}, contents=Contents.NOT_FINITE),
        Draft(size={"R": 3, "C": 257}, scalars={}, contents=Contents.EXTREME),
        # flashinfer#1178: one thread's whole share is -inf.
        Draft(size={"R": 6, "C": 64}, scalars={}, contents=Contents.NOT_FINITE),
        # Longer than a block holds in registers.
        Draft(size={"R": 1, "C": 33_001}, scalars={}),
        Draft(size={"R": 2, "C": 33_004}, scalars={}, contents=Contents.EXTREME),
    )


def _not_finite_rows(matrices: Mapping[str, Matrix]) -> None:
    x = matrices["X"].logical()
    x[0] = -np.inf
    x[1 % len(x), ::2] = -np.inf
    x[2 % len(x), -1] = np.nan
    x[3 % len(x), 0] = np.inf


def _extreme_rows(matrices: Mapping[str, Matrix]) -> None:
    """Make sums of exponentials overflow unless the largest element is taken off first."""
    x = 40 * matrices["X"].numbers()
    x[0, -1] = 3.0e38
    x[-1, 0] = -3.0e38
    matrices["X"].fill(x)


def gemv_float64(inputs: Inputs, scalars: Scalars) -> Expected:
    """Return W @ x in float64, from the operands as they are stored: W [M, K], x [1, K]."""
    del scalars
    return _row_products(doubles(inputs["W"]), inputs["x"])


def gemv_int4_float64(inputs: Inputs, scalars: Scalars) -> Expected:
    """Return the product of dequantised weights and x in float64.

    Args:
        inputs: Wq [M, K/8] words of eight weights, the lowest bits first, each less 8; scales
            [M, K/128], each for 128 weights of a row; x [1, K].
        scalars: None.
    """
    del scalars
    words = inputs["Wq"].view(np.uint32)
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    weights = (words[:, :, None] >> shifts & np.uint32(15)).astype(np.int8).reshape(len(words), -1)
    scales = np.repeat(doubles(inputs["scales"]), GROUP, axis=1)
    columns = inputs["x"].shape[1]
    return _row_products((weights[:, :columns] - 8.0) * scales[:, :columns], inputs["x"])


def _row_products(weights: Doubles, x: Floats) -> Expected:
    factors = doubles(x)[0]
    with np.errstate(invalid="ignore"):
        value = np.einsum("mk,k->m", weights, factors)[None, :]
        condition = np.einsum("mk,k->m", np.abs(weights), np.abs(factors))[None, :]
    return Expected(value=value, condition=condition)


def _not_finite_vector(matrices: Mapping[str, Matrix]) -> None:
    weights = matrices["W"].numbers()
    weights[0, -1] = np.nan
    weights[-1, 0] = np.inf
    matrices["W"].fill(weights)


def _gemv_drafts(problem: Problem, tiles: Mapping[str, int]) -> tuple[Draft, ...]:
    del tiles
    wide = everywhere(problem, lambda extent: (extent // 8 + 1) * 8)
    return (
        Draft(size={"M": 3, "K": 2048}, scalars={}, rules=wide),
        # Rows made of vectors, with a rest behind them; and vectors of W alone.
        Draft(size={"M": 3, "K": 2043}, scalars={}, rules=wide),
        Draft(size={"M": 3, "K": 2048}, scalars={}, rules=wide, misalignments={"x": 1}),
        Draft(size={"M": 17, "K": 1000}, scalars={}, contents=Contents.NOT_FINITE),
    )


def _rows(*rows: list[float]) -> Floats:
    return np.array(rows, dtype=np.float32)


TRANSPOSE = Reference(
    compute=transpose_exact,
    contents=(Contents.RANDOM,),
    directed=lambda problem, tiles: (
        Draft(
            size={axis: 2 * vector(extent) for axis, extent in tiles.items()},
            scalars={},
            rules=everywhere(problem, vector),
        ),
    ),
    known=KnownAnswer(
        inputs={"X": _rows([1, 2, 3], [4, 5, 6])},
        scalars={},
        answer=np.array([[1.0, 4], [2, 5], [3, 6]]),
    ),
)
SOFTMAX = Reference(
    compute=softmax_float64,
    contents=(Contents.RANDOM,),
    extents={"C": (1, 31, 33, 128, 1023, 1028)},
    directed=_softmax_drafts,
    inject={Contents.NOT_FINITE: _not_finite_rows, Contents.EXTREME: _extreme_rows},
    known=KnownAnswer(
        inputs={"X": _rows([0, 0, -np.inf, -np.inf], [-np.inf] * 4, [20, 0, 0, 0])},
        scalars={},
        # The third row: e^20 / (e^20 + 3) and 1 / (e^20 + 3), computed with 40 decimal digits.
        answer=np.array(
            [
                [0.5, 0.5, 0, 0],
                [0, 0, 0, 0],
                [0.9999999938165392, *[2.0611536096934951e-09] * 3],
            ]
        ),
        relative=1e-15,
    ),
)
GEMV = Reference(
    compute=gemv_float64,
    extents={"K": (1, 7, 8, 257, 1000)},
    directed=_gemv_drafts,
    inject={Contents.NOT_FINITE: _not_finite_vector},
    known=KnownAnswer(
        inputs={"W": _rows([256, 1, 2**-20], [3, -1, 0]), "x": _rows([1, 2, 1])},
        scalars={},
        answer=np.array([[258 + 2.0**-20, 1.0]]),
    ),
)
GEMV_INT4 = Reference(
    compute=gemv_int4_float64,
    extents={"K": (8, 128, 136, 520, 1056)},
    # Long enough that every place of a ring of copies is used again.
    directed=lambda _problem, _tiles: (Draft(size={"M": 17, "K": 17_440}, scalars={}),),
    known=KnownAnswer(
        # Weights -8 to -1 in the first word, 0 to 7 in the second.
        inputs={
            "Wq": np.array([[0x76543210], [0xFEDCBA98]], dtype=np.uint32).view(np.float32),
            "scales": _rows([0.5], [2.0]),
            "x": _rows([1, 0, 0, 1, 0, 0, 0, 2.0**-24]),
        },
        scalars={},
        answer=np.array([[0.5 * (-13 - 2.0**-24), 2 * (3 + 7 * 2.0**-24)]]),
    ),
)
