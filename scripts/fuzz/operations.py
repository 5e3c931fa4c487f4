"""The operations random kernels are made of: what CUDA C++ calls them, and what NumPy computes.

The NumPy side is written from the CUDA guide, not from the simulator: it is the second opinion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
U4, U8, F4 = np.dtype("u4"), np.dtype("u8"), np.dtype("f4")


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """An expression of one to three variables."""

    text: str
    """In C++, with {0}, {1}, {2} for the operands."""
    takes: str
    """A letter per operand: ``u`` unsigned, ``f`` float."""
    compute: Callable[..., Values]


def _signed(x: Values) -> Values:
    return x.view(np.int32)


def _back(x: Values) -> Values:
    return np.asarray(x).astype(np.int64).astype(U4)


def _shift_right(a: Values, b: Values) -> Values:
    return _back(_signed(a) >> (b & 31).astype(np.int32))


def _rotate(a: Values, b: Values) -> Values:
    pair = a.astype(U8) << U8.type(32) | a
    return np.asarray(pair << (b & 31).astype(U8) >> U8.type(32)).astype(U4)


def _bytes(a: Values, b: Values) -> Values:
    """Return bytes 1, 7, 2 and 4 of the pair, lowest first."""
    both = b.astype(U8) << U8.type(32) | a
    picked = [both >> U8.type(8 * n) & U8.type(255) for n in (1, 7, 2, 4)]
    return np.asarray(sum(p << U8.type(8 * n) for n, p in enumerate(picked))).astype(U4)


def _reversed(a: Values) -> Values:
    return np.array([int(f"{x:032b}"[::-1], 2) for x in a.tolist()], U4)


def _leading(a: Values) -> Values:
    return np.array([32 - x.bit_length() for x in a.tolist()], U4)


def _ones(a: Values) -> Values:
    return np.array([x.bit_count() for x in a.tolist()], U4)


def _to_int(x: Values) -> Values:
    whole = np.trunc(
        np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=2.0**40, neginf=-(2.0**40))
    )
    return np.clip(whole, -(2.0**31), 2.0**31 - 1).astype(np.int64).astype(U4)


def _signed_most(a: Values, b: Values) -> Values:
    return _back(np.maximum(_signed(a), _signed(b)))


def _first_if_below(a: Values, b: Values, c: Values) -> Values:
    return np.asarray(np.where(_signed(a) <= _signed(b), a, c))


def _smaller_or_third(a: Values, b: Values, c: Values) -> Values:
    return np.asarray(np.where(a < b, a, c))


def _third_if_less(a: Values, b: Values, c: Values) -> Values:
    return np.asarray(np.where(a < b, c, U4.type(7)))


def _fused(a: Values, b: Values, c: Values) -> Values:
    product, added = a.astype(np.longdouble) * b, c.astype(np.longdouble)
    total = product + added
    result = np.asarray(total.astype(F4))
    inexact = np.isfinite(total) & ((total - product != added) | (total - added != product))
    for at in np.flatnonzero(inexact):
        x, y, z = (Fraction(values[at].item()) for values in (a, b, c))
        result[at] = _nearest(x * y + z, result[at])
    return result


def _nearest(value: Fraction, near: np.float32) -> np.float32:
    """Return the f32 nearest to a number, the even one of two, given one beside it."""
    sides = [near, *(np.nextafter(near, F4.type(end)) for end in (-np.inf, np.inf))]
    finite = [x for x in sides if np.isfinite(x)]
    if len(finite) < len(sides):
        return near
    return min(finite, key=lambda x: (abs(Fraction(x.item()) - value), int(x.view(U4)) & 1))


def _least(a: Values, b: Values) -> Values:
    zeros = (a.view(U4) | b.view(U4)).view(F4)
    return np.where((a == 0) & (b == 0), zeros, np.fmin(a, b))


def _most(a: Values, b: Values) -> Values:
    zeros = (a.view(U4) & b.view(U4)).view(F4)
    return np.where((a == 0) & (b == 0), zeros, np.fmax(a, b))


def _root(a: Values) -> Values:
    return np.sqrt(np.abs(a))


def _op(text: str, takes: str, compute: Callable[..., Values]) -> Operation:
    return Operation(text=text, takes=takes, compute=compute)


UNSIGNED = (
    _op("{0} + {1}", "uu", np.add),
    _op("{0} - {1}", "uu", np.subtract),
    _op("{0} * {1}", "uu", np.multiply),
    _op("{0} * {1} + {2}", "uuu", lambda a, b, c: a * b + c),
    _op("{0} & {1}", "uu", np.bitwise_and),
    _op("{0} | {1}", "uu", np.bitwise_or),
    _op("{0} ^ {1}", "uu", np.bitwise_xor),
    _op("({0} & {1}) ^ (~{0} & {2})", "uuu", lambda a, b, c: (a & b) ^ (~a & c)),
    _op("{0} << ({1} & 31u)", "uu", lambda a, b: a << (b & U4.type(31))),
    _op("{0} >> ({1} & 31u)", "uu", lambda a, b: a >> (b & U4.type(31))),
    _op("(unsigned)((int){0} >> ({1} & 31u))", "uu", _shift_right),
    _op("__funnelshift_l({0}, {0}, {1})", "uu", _rotate),
    _op("__umulhi({0}, {1})", "uu", lambda a, b: (a.astype(U8) * b >> U8.type(32)).astype(U4)),
    _op(
        "(unsigned)__mulhi((int){0}, (int){1})",
        "uu",
        lambda a, b: _back(_signed(a).astype(np.int64) * _signed(b) >> 32),
    ),
    _op("min({0}, {1})", "uu", np.minimum),
    _op("(unsigned)max((int){0}, (int){1})", "uu", _signed_most),
    _op("({0} < {1} ? {2} : 7u)", "uuu", _third_if_less),
    _op("((int){0} <= (int){1} ? {0} : {2})", "uuu", _first_if_below),
    _op("{0} / ({1} | 1u)", "uu", lambda a, b: a // (b | U4.type(1))),
    _op("{0} % ({1} | 1u)", "uu", lambda a, b: a % (b | U4.type(1))),
    _op("(unsigned)__popc({0})", "u", _ones),
    _op("(unsigned)__clz((int){0})", "u", _leading),
    _op("__brev({0})", "u", _reversed),
    _op("__byte_perm({0}, {1}, 0x4271)", "uu", _bytes),
    _op("(unsigned)__float2int_rz({0})", "f", _to_int),
    _op("({0} < {1} ? 1u : 0u)", "ff", lambda a, b: (a < b).astype(U4)),
    _op("({0} != {1} ? 3u : 5u)", "ff", lambda a, b: np.where(a != b, U4.type(3), U4.type(5))),
)  # fmt: skip
"""Give an unsigned."""

FLOATING = (
    _op("{0} + {1}", "ff", np.add),
    _op("{0} - {1}", "ff", np.subtract),
    _op("{0} * {1}", "ff", np.multiply),
    _op("{0} / {1}", "ff", np.divide),
    _op("fmaf({0}, {1}, {2})", "fff", _fused),
    _op("fminf({0}, {1})", "ff", _least),
    _op("fmaxf({0}, {1})", "ff", _most),
    _op("sqrtf(fabsf({0}))", "f", _root),
    _op("-{0}", "f", np.negative),
    _op("floorf({0})", "f", np.floor),
    _op("(float)(int){0}", "u", lambda a: _signed(a).astype(F4)),
    _op("(float){0}", "u", lambda a: a.astype(F4)),
    _op("({0} < {1} ? {0} : {2})", "fff", _smaller_or_third),
)
"""Give a float; all of them are rounded to nearest, so every bit is determined."""
