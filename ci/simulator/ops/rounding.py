"""Floating types that NumPy lacks, and roundings it does not do."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import F2, F4, F8, U4, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.forms import Array

FLOATS = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"})
"""Types whose instructions are floating-point ones."""

_U2 = np.dtype("u2")
_BF16_NAN = 0x7FFF
_I8 = np.dtype("i8")
_SMALL, _LARGE = 2.0**-900, 2.0**900
"""Between these an f64 product has an exact rounding error."""
_SPLITTER = 134217729.0
"""2**27 + 1: cuts an f64 into two halves whose products are exact."""


def bf16_to_f32(bits: Array) -> Array:
    """Return bfloat16 bit patterns as f32, exactly."""
    return np.asarray(bits.astype(U4) << U4.type(16)).view(F4)


def f32_to_bf16(value: Array, *, toward_zero: bool = False) -> Array:
    """Return the bfloat16 bit patterns of f32 values, rounded to nearest even by default."""
    bits = value.view(U4)
    even = 0 if toward_zero else (bits >> U4.type(16) & U4.type(1)) + U4.type(0x7FFF)
    rounded = np.asarray((bits + even) >> U4.type(16)).astype(_U2)
    return np.where(np.isnan(value), _U2.type(_BF16_NAN), rounded)


def f64_to_f32_odd(value: Array) -> Array:
    """Return f64 as f32, an inexact one as its odd neighbour, to be rounded once more."""
    near = value.astype(F4)
    back = near.astype(F8)
    bits = near.view(np.int32)
    step = np.where(np.abs(back) < np.abs(value), np.int32(1), np.int32(-1))
    # The pattern of an infinity is even: one that comes of a finite value becomes the largest f32.
    even = (back != value) & ~np.isnan(near) & (bits & 1 == 0)
    return np.where(even, bits + step, bits).view(F4)


def _on_pairs(function: Callable[..., Array], half: np.dtype[Any]) -> Callable[..., Array]:
    """Return ``function``, which acts on arrays of ``half``, for two packed values a word."""

    def apply(*words: Array) -> Array:
        result = function(*[word[..., None].view(half) for word in words])
        return np.ascontiguousarray(result).view(U4)[..., 0]

    return apply


def _on_bf16(function: Callable[..., Array]) -> Callable[..., Array]:
    def apply(*values: Array) -> Array:
        result = function(*[bf16_to_f32(value).astype(F8) for value in values])
        return f32_to_bf16(f64_to_f32_odd(result))

    return apply


def lift(kind: str, function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function on plain floats as one on the bits of a PTX type.

    Args:
        kind: The type, such as ``bf16x2``.
        function: Acts on arrays of f16, f32 or f64; bf16 is computed in f64.
    """
    if kind == "f16x2":
        return _on_pairs(function, F2)
    if kind == "bf16":
        return _on_bf16(function)
    if kind == "bf16x2":
        return _on_pairs(_on_bf16(function), _U2)
    return function


def flush(value: Array, least: np.floating[Any] | None = None) -> Array:
    """Return subnormals, or what is below ``least``, as zeros of their sign."""
    tiny = np.abs(value) < (np.finfo(value.dtype).tiny if least is None else least)
    return np.where(tiny, np.copysign(value.dtype.type(0), value), value)


def saturate(value: Array) -> Array:
    """Return values clamped to 0 to 1, NaN and -0 as 0."""
    clamped = np.minimum(value, value.dtype.type(1))
    return np.asarray(np.where(value > 0, clamped, value.dtype.type(0)))


def rectify(value: Array) -> Array:
    """Return negative values and -0 as 0; a NaN stays one."""
    return np.asarray(np.where(value <= 0, value.dtype.type(0), value))


def round_directed(value: Array, dtype: np.dtype[Any], mode: str) -> Array:
    """Return f64 values in a narrower type, rounded as ``rn``, ``rz``, ``rm`` or ``rp`` says."""
    near = value.astype(dtype)
    if mode == "rn":
        return near
    back = near.astype(F8)
    # An infinity that came from overflow is one step beyond the largest finite value.
    down, up = dtype.type(-np.inf), dtype.type(np.inf)
    below, above = np.nextafter(near, down), np.nextafter(near, up)
    if mode == "rm":
        return np.where(back > value, below, near)
    if mode == "rp":
        return np.where(back < value, above, near)
    if mode == "rz":
        return np.where(np.abs(back) > np.abs(value), np.where(value > 0, below, above), near)
    raise UnsupportedError(mode)


def _exact_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a product and its rounding error (Dekker, 1971)."""
    product = a * b
    x, y = a * _SPLITTER, b * _SPLITTER
    a1, b1 = x - (x - a), y - (y - b)
    a2, b2 = a - a1, b - b1
    return product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)


def _exact_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a sum and its rounding error (Knuth's two-sum)."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)


def odd_sum(a: Array, b: Array) -> Array:
    """Return a + b of f64, rounded to odd: an inexact sum becomes its odd neighbour.

    What is rounded once more, to a type of at most 51 bits, is then as if rounded once.

    Source: S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008.
    """
    total, error = _exact_sum(a, b)
    bits = total.view(_I8)
    # The step that goes away from zero adds one to the bit pattern, for both signs.
    step = np.where((error > 0) == (total > 0), _I8.type(1), _I8.type(-1))
    even = (error != 0) & np.isfinite(total) & np.isfinite(error) & (bits & 1 == 0)
    return np.where(even, bits + step, bits).view(F8)


def double_fma(a: Array, b: Array, c: Array) -> Array:
    """Return a*b + c of f64, rounded once.

    Source: as ``odd_sum``; operands beyond its range are computed as fractions.
    """
    product, low = _exact_product(a, b)
    middle, lowest = _exact_sum(c, low)
    high, lost = _exact_sum(product, middle)
    fused = high + odd_sum(lowest, lost)
    plain = np.asarray(a * b + c)
    safe = (np.abs(plain) < _LARGE) & (np.abs(product) > _SMALL) & (np.abs(product) < _LARGE)
    safe &= (np.abs(a) < _LARGE) & (np.abs(b) < _LARGE)
    exact = (a == 0) | (b == 0) | ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c))
    # A product of finite factors is finite, even where an f64 cannot hold it.
    plain = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, plain)
    result = np.where(safe, fused, plain)
    for index in np.argwhere(~safe & ~exact):
        place = tuple(index)
        factors = (np.broadcast_to(x, result.shape)[place].item() for x in (a, b, c))
        result[place] = _fraction_fma(*factors)
    return result


def _fraction_fma(a: float, b: float, c: float) -> float:
    value = Fraction(a) * Fraction(b) + Fraction(c)
    if value == 0:
        return a * b + c
    try:
        return float(value) or math.copysign(0.0, value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
