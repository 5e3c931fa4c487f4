"""Conversion to the floating types of 8, 16 and 19 bits that NumPy lacks.

Source: PTX ISA, "Data Movement and Conversion Instructions": cvt, and "Alternate Floating-Point
Data Formats".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.forms import F2, F4, F8, U4, UnsupportedError
from ci.simulator.ops.rounding import f32_to_bf16, f64_to_f32_odd, rectify

if TYPE_CHECKING:
    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Form, Step

_U1, _U2, _U8 = (np.dtype(name) for name in ("u1", "u2", "u8"))
_TF32_DROPPED = 13
"""Bits of an f32's mantissa that a tf32 lacks."""
_TF32_LARGEST = 0x7F7FE000
_SIGN, _INFINITY = 0x80000000, 0x7F800000
_LARGE = 1 << 53
_BELOW = 11
"""Bits of a 64-bit integer that an f64 may lack."""


def to_bf16(value: Array, mode: str) -> Array:
    """Return f64 values as bfloat16 bit patterns, rounded as a mode such as ``rz`` says."""
    odd = f64_to_f32_odd(value)
    if mode == "rn":
        return f32_to_bf16(odd)
    bits = odd.view(U4)
    negative = bits >> U4.type(31) != 0
    away = {"rz": False, "rm": negative, "rp": ~negative}[mode]
    inexact = (bits & U4.type(0xFFFF)) != 0
    rounded = (bits >> U4.type(16)) + (inexact & away)
    return np.where(np.isnan(odd), _U2.type(0x7FFF), rounded.astype(_U2))


def integers_to_double(value: Array) -> Array:
    """Return integers as f64 that round to any narrower type as the integers themselves do.

    What an f64 has no bits for is kept as one sticky bit.
    """
    if value.dtype.itemsize < F8.itemsize:
        return value.astype(F8)
    negative = value < 0
    magnitude = np.where(negative, -value.view("i8"), value.view("i8")).view(_U8)
    below = _U8.type((1 << _BELOW + 1) - 1)
    kept = magnitude & ~below | np.where(magnitude & below, _U8.type(1 << _BELOW), _U8.type(0))
    whole = np.where(magnitude >= _U8.type(_LARGE), kept, magnitude).astype(F8)
    return np.where(negative, -whole, whole)


def to_tf32(code: Code, form: Form) -> Step:
    """Decode rounding to the 10 bits of mantissa of a tf32."""
    mode = form.one_of("rna", "rn", "rz")
    relu, finite = form.flag("relu"), form.flag("satfinite")
    destination, value = form.operands(2)
    half, below = U4.type(1 << _TF32_DROPPED - 1), U4.type((1 << _TF32_DROPPED) - 1)

    def convert(x: Array) -> Array:
        bits = rectify(x).view(U4) if relu else x.view(U4)
        magnitude = bits & ~U4.type(_SIGN)
        if mode == "rna":
            # A NaN loses its low bits unrounded, as on a GPU, and may become an infinity.
            magnitude = np.where(np.isfinite(x), magnitude + half, magnitude) & ~below
        elif mode == "rn":
            even = bits >> U4.type(_TF32_DROPPED) & U4.type(1)
            magnitude = magnitude + half - U4.type(1) + even
        nan = magnitude > U4.type(_INFINITY) if mode == "rna" else np.isnan(x)
        if finite:
            magnitude = np.minimum(magnitude, U4.type(_TF32_LARGEST))
        rounded = bits & U4.type(_SIGN) | magnitude & ~below
        return np.where(nan, U4.type(0x7FFFFFFF), rounded)

    return code.compute(convert, U4, destination, [(value, F4)])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Byte:
    """A floating type of 8 bits."""

    mantissa: int
    bias: int
    largest: int
    """The pattern of the largest finite value."""
    infinity: bool
    """Whether the next pattern is an infinity; all above are NaN."""


_BYTES = {
    "e4m3x2": _Byte(mantissa=3, bias=7, largest=0x7E, infinity=False),
    "e5m2x2": _Byte(mantissa=2, bias=15, largest=0x7B, infinity=True),
}
BYTE_KINDS = tuple(_BYTES)
"""Types of two packed 8-bit values."""


@cache
def _values(kind: str) -> Array:
    """Return the value of each of the 256 patterns, as f16, which holds them all."""
    byte = _BYTES[kind]
    pattern = np.arange(128)
    exponent, fraction = pattern >> byte.mantissa, pattern & (1 << byte.mantissa) - 1
    scale = 2.0 ** (np.maximum(exponent, 1) - byte.bias - byte.mantissa)
    value = scale * (fraction + (exponent > 0) * (1 << byte.mantissa))
    value[byte.largest + 1 :] = np.nan
    if byte.infinity:
        value[byte.largest + 1] = np.inf
    return np.concatenate([value, -value]).astype(F2)


@cache
def _middles(kind: str) -> Array:
    """Return what lies halfway between the finite values that are not negative."""
    finite = _values(kind)[: _BYTES[kind].largest + 1].astype(F8)
    return np.asarray((finite[1:] + finite[:-1]) / 2)


def _encode(x: Array, kind: str) -> Array:
    """Return values as patterns: to nearest even, beyond the largest as that, NaN as 0x7f."""
    magnitude = np.abs(x.astype(F8))
    middles = _middles(kind)
    at = np.searchsorted(middles, magnitude)
    tie = (at % 2 == 1) & (middles[np.minimum(at, len(middles) - 1)] == magnitude)
    pattern = at + tie + 128 * np.signbit(x)
    return np.where(np.isnan(x), 0x7F, pattern).astype(_U1)


def from_bytes(code: Code, form: Form, kind: str) -> Step:
    """Decode a conversion of two packed 8-bit values to f16, which is exact."""
    form.one_of("rn")
    relu = form.flag("relu")
    destination, source = form.operands(2)

    def widen(x: Array) -> Array:
        values = _values(kind)[np.ascontiguousarray(x)[..., None].view(_U1)]
        values = rectify(values) if relu else values
        return np.ascontiguousarray(values).view(U4)[..., 0]

    return code.compute(widen, U4, destination, [(source, _U2)])


def to_bytes(code: Code, form: Form, kind: str, source_kind: str) -> Step:
    """Decode a conversion to two packed 8-bit values, of f16x2 or two f32, the upper one first."""
    form.one_of("rn")
    form.one_of("satfinite")
    relu = form.flag("relu")

    def narrow(x: Array) -> Array:
        return _encode(rectify(x) if relu else x, kind)

    if source_kind == "f16x2":
        destination, pair = form.operands(2)

        def both(x: Array) -> Array:
            halves = np.ascontiguousarray(x)[..., None].view(F2)
            return np.ascontiguousarray(narrow(halves)).view(_U2)[..., 0]

        return code.compute(both, _U2, destination, [(pair, U4)])
    if source_kind != "f32":
        raise UnsupportedError(form.instruction.text)
    destination, high, low = form.operands(3)

    def pack(x: Array, y: Array) -> Array:
        return np.asarray(narrow(x).astype(_U2) << _U2.type(8) | narrow(y))

    return code.compute(pack, _U2, destination, [(high, F4), (low, F4)])
