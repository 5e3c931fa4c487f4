"""Freivalds' check: is a matrix the product it is said to be, at the cost of a few vectors?"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kernels.operands import Floats

_VECTORS = 8
"""A wrong row escapes one random vector of signs with probability 1/2 at most."""
_FALSE_ALARM = 1e-9
"""Probability that a result within its tolerance is refused."""

Doubles = NDArray[np.float64]


def confirm_gemm(
    inputs: Mapping[str, Floats], scalars: Mapping[str, float], result: Doubles, relative: float
) -> str:
    """Return in words which rows of ``alpha*A@B + beta*C`` are wrong; empty if none is.

    With x of random signs, ``result @ x`` and ``alpha*A@(B@x) + beta*(C@x)`` are compared in
    float64. If every element errs by at most ``e``, the two differ in row i by a sum of
    independent signs times errors, so by Hoeffding's inequality by more than ``t * ||e_i||`` with
    probability ``2*exp(-t*t/2)`` at most. ``||e_i||`` is bounded through the row's sum and its
    largest element, which take products with vectors only.

    Args:
        inputs: A [M, K], B [K, N] and C [M, N], float32, all finite where they are read.
        scalars: alpha and beta.
        result: [M, N], float64.
        relative: Accepted error of an element per unit of its condition.

    Source: R. Freivalds, Probabilistic machines can use less running time, IFIP 1977;
    W. Hoeffding, J. Amer. Statist. Assoc. 58 (1963).
    """
    alpha, beta = scalars["alpha"], scalars["beta"]
    rows, columns = result.shape
    signs = np.random.default_rng((rows, columns)).integers(0, 2, (columns, _VECTORS)) * 2.0 - 1.0
    want, total, largest = np.zeros((rows, _VECTORS)), np.zeros(rows), np.zeros(rows)
    if alpha != 0:
        a, b = (inputs[name].astype(np.float64) for name in ("A", "B"))
        want += alpha * (a @ (b @ signs))
        a, b = abs(alpha) * np.abs(a), np.abs(b)
        total += a @ b.sum(axis=1)
        largest += a @ b.max(axis=1)
    if beta != 0:
        c = beta * inputs["C"].astype(np.float64)
        want += c @ signs
        total += np.abs(c).sum(axis=1)
        largest += np.abs(c).max(axis=1)
    deviations = math.sqrt(2 * math.log(2 * rows * _VECTORS / _FALSE_ALARM))
    bound = relative * np.minimum(total, deviations * np.sqrt(total * largest))
    error = np.abs(result @ signs - want)
    # Written so that NaN fails.
    wrong = ~(error <= bound[:, None]).all(axis=1)
    if not wrong.any():
        return ""
    row = int(np.argmax(wrong))
    return (
        f"{int(wrong.sum())} of {rows} rows fail Freivalds' check in float64, the first is row "
        f"{row}: off by {error[row].max():.3g} along a vector of signs, expected at most "
        f"{bound[row]:.3g}"
    )
