"""What the planted kernels should compute, in float64 or exactly, and what they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ci.check.reference import Doubles, Inputs, doubles
from kernels.operands import Matrix

Parts = tuple[Doubles, Doubles]
"""Value and condition, [rows, columns] each."""

_WORD = 2.0**32
BINS = 32


def _summed(terms: Doubles, axis: int) -> Parts:
    return terms.sum(axis=axis), np.abs(terms).sum(axis=axis)


def _exactly(value: Doubles) -> Parts:
    return value, np.zeros_like(value)


def product(inputs: Inputs) -> Parts:
    """Return A [M, K] times B [K, N]."""
    a, b = doubles(inputs["A"]), doubles(inputs["B"])
    return np.einsum("mk,kn->mn", a, b), np.einsum("mk,kn->mn", np.abs(a), np.abs(b))


def row_products(inputs: Inputs) -> Parts:
    """Return A [M, K] times x [1, K]."""
    return _summed((doubles(inputs["A"]) * doubles(inputs["x"]))[None], 2)


def block_sums(threads: int) -> Callable[[Inputs], Parts]:
    """Return the sums [1, G] of what each of G blocks meets in a grid-stride loop over x."""

    def compute(inputs: Inputs) -> Parts:
        x, blocks = doubles(inputs["x"])[0], inputs["sums"].shape[1]
        block = np.arange(x.size) // threads % blocks
        return _summed(np.where(block == np.arange(blocks)[:, None], x, 0.0)[None], 2)

    return compute


def row_sums(inputs: Inputs) -> Parts:
    """Return the sums of the rows of x."""
    return _summed(doubles(inputs["x"])[None], 2)


def fresh_total(inputs: Inputs) -> Parts:
    """Return the sum of x as [1, 1]."""
    return _summed(doubles(inputs["x"])[None], 2)


def total(inputs: Inputs) -> Parts:
    """Return the sum of x and of what was there."""
    return _summed(np.concatenate([doubles(inputs["x"]), doubles(inputs["total"])], 1)[None], 2)


def row_scan(inputs: Inputs) -> Parts:
    """Return the inclusive sums of each row, modulo 2^32."""
    return _exactly(np.cumsum(doubles(inputs["x"]), axis=1) % _WORD)


def scan(inputs: Inputs) -> Parts:
    """Return the inclusive sums of all of x, row after row, modulo 2^32."""
    x = doubles(inputs["x"])
    return _exactly((np.cumsum(x) % _WORD).reshape(x.shape))


def histogram(inputs: Inputs) -> Parts:
    """Return what was there and how many elements lie in each part of [0, 1], modulo 2^32."""
    x = doubles(inputs["x"])[0]
    part = np.minimum(np.floor(x[np.isfinite(x)] * BINS), BINS - 1)
    found = (part == np.arange(BINS)[:, None]).sum(axis=1)
    return _exactly((doubles(inputs["counts"]) + found) % _WORD)


def neighbours(radius: int) -> Callable[[Inputs], Parts]:
    """Return the sum of each element of x and its neighbours up to a distance."""

    def compute(inputs: Inputs) -> Parts:
        x = np.pad(doubles(inputs["x"])[0], radius)
        return _summed(np.lib.stride_tricks.sliding_window_view(x, 2 * radius + 1)[None], 2)

    return compute


def heat(inputs: Inputs) -> Parts:
    """Return half of each element and an eighth of its neighbours."""
    x = doubles(inputs["x"])
    wide = np.pad(x, 1)
    around = np.stack([wide[1:-1, :-2], wide[1:-1, 2:], wide[:-2, 1:-1], wide[2:, 1:-1]])
    return _summed(np.concatenate([0.5 * x[None], 0.125 * around]), 0)


def trailing_rows(inputs: Inputs) -> Parts:
    """Return the sum of each row and the four above it, 0 where there are not as many."""
    x = doubles(inputs["x"])
    terms = np.lib.stride_tricks.sliding_window_view(x, 5, axis=0)
    padded = np.pad(terms, ((4, 0), (0, 0), (0, 0)))
    return _summed(padded, 2)


def doubled(inputs: Inputs) -> Parts:
    """Return 2 x."""
    return _exactly(2 * doubles(inputs["x"]))


def partition(inputs: Inputs) -> Parts:
    """Return 32 elements a row, the positive ones first; missing ones are 0."""
    x = doubles(inputs["x"])[0]
    rows = np.pad(x, (0, -x.size % 32)).reshape(-1, 32)
    order = np.argsort(~(rows > 0), axis=1, kind="stable")
    return _exactly(np.take_along_axis(rows, order, axis=1))


def odd_squares(inputs: Inputs) -> Parts:
    """Return the sum of the squares of each row's odd elements, modulo 2^32."""
    x = inputs["x"].astype(np.uint32)
    odd = np.where(x % 2 == 1, x, np.uint32(0))
    return _exactly((odd * odd).sum(axis=1, dtype=np.uint32).astype(np.float64)[None])


def positive_first(inputs: Inputs) -> Parts:
    """Return y with its first elements replaced by the positive ones of x."""
    x, y = doubles(inputs["x"]), doubles(inputs["y"])
    kept = x[x > 0]
    y[0, : kept.size] = kept
    return _exactly(y)


def sums_backwards(inputs: Inputs) -> Parts:
    """Return the sum of the rows of x, last column first."""
    return _summed(doubles(inputs["x"])[None, :, ::-1], 1)


def sums_of_lengths(inputs: Inputs) -> Parts:
    """Return the sum of the first elements of each row, as many as its length."""
    x, count = doubles(inputs["x"]), inputs["lengths"][0][:, None]
    return _summed(np.where(np.arange(x.shape[1]) < count, x, 0.0)[None], 2)


def centred(inputs: Inputs) -> Parts:
    """Return each row less its mean."""
    x = doubles(inputs["X"])
    return x - x.mean(axis=1, keepdims=True), np.abs(x) + np.abs(x).mean(axis=1, keepdims=True)


def transposed(inputs: Inputs) -> Parts:
    """Return X transposed."""
    return _exactly(doubles(inputs["X"].T))


def zeros(name: str) -> Callable[[Mapping[str, Matrix]], None]:
    """Return what sets one operand to 0."""
    return lambda matrices: matrices[name].fill(np.zeros(matrices[name].shape))


def steps_of_2048(matrices: Mapping[str, Matrix]) -> None:
    """Fill x with 2048 and 2049 in turn, so that sums pass 2^16 at the 32nd element of a row."""
    x = matrices["x"]
    x.fill(np.broadcast_to(2048 + np.arange(x.shape[1]) % 2, x.shape))


def between_0_and_1(matrices: Mapping[str, Matrix]) -> None:
    """Fill x with numbers from 0 to 1, the last of them 1."""
    x = matrices["x"]
    values = np.random.default_rng(x.shape).random(x.shape, dtype=np.float32)
    values[0, -1] = 1.0
    x.fill(values)


def taps(matrices: Mapping[str, Matrix]) -> None:
    """Fill taps with 0 to 4."""
    matrices["taps"].fill(np.arange(5)[None])


def mostly_odd(matrices: Mapping[str, Matrix]) -> None:
    """Make seven of eight elements of x odd."""
    x = matrices["x"]
    x.fill(x.numbers() | np.uint32(1) * (np.arange(x.shape[1]) % 8 != 0))


def lengths(matrices: Mapping[str, Matrix]) -> None:
    """Give rows of x as many elements as there are, 5 and 10 fewer, in turn."""
    rows, columns = matrices["x"].shape
    matrices["lengths"].fill(np.maximum(columns - 5 * (np.arange(rows) % 3), 0)[None])
