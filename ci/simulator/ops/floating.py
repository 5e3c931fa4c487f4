"""Floating-point instructions.

Every operation is computed in a wider type and rounded once more, or by NumPy where that rounds
correctly. A fused multiply-add goes through f64, where the product is exact and the sum is rounded
to odd, so that rounding once more gives what rounding once would.

Source: PTX ISA, "Floating Point Instructions", "Half Precision Floating Point Instructions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import F2, F4, F8, U8, Form, UnsupportedError, dtype_of
from ci.simulator.ops.comparison import FLOAT_DECODERS
from ci.simulator.ops.directed import directed_double
from ci.simulator.ops.integer import select
from ci.simulator.ops.rounding import (
    double_fma,
    flush,
    lift,
    odd_sum,
    rectify,
    round_directed,
    saturate,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Mask, Step

DType = np.dtype[Any]

_BELOW_F32 = U8.type(35)
"""Shifts the 29 bits that an f64 has more than an f32 to the top."""
_HALF_F32 = U8.type(1 << 63)
_DIVISOR_MAX = 2.0**126


def _finish(code: Code, form: Form, kind: str, function: Callable[..., Array], count: int) -> Step:
    """Decode the modifiers every arithmetic instruction may have, and the operands."""
    ftz, sat, relu = form.flag("ftz"), form.flag("sat"), form.flag("relu")
    dtype = dtype_of(kind)
    destination, *sources = form.operands(count + 1)
    if ftz or sat or relu:
        function = _modified(function, kind, ftz=bool(ftz), sat=bool(sat), relu=bool(relu))
    return code.compute(lift(kind, function), dtype, destination, [(s, dtype) for s in sources])


def _modified(
    function: Callable[..., Array], kind: str, *, ftz: bool, sat: bool, relu: bool
) -> Callable[..., Array]:
    """Return an operation on plain floats with flushed subnormals, or a bounded result."""
    # A bfloat is computed in f64 but has the exponents of an f32.
    least = np.finfo(F2 if kind.startswith("f16") else F8 if kind == "f64" else F4).tiny

    def whole(*values: Array) -> Array:
        if ftz:
            values = tuple(flush(value, least) for value in values)
        result = function(*values)
        result = flush(result, least) if ftz else result
        result = saturate(result) if sat else result
        return rectify(result) if relu else result

    return whole


def _rounded(
    exact: Callable[..., Array],
    native: Callable[..., Array],
    count: int,
    down: Callable[..., Array] | None = None,
) -> Callable[[Code, Form], Step]:
    """Return a decoder of an operation that may name a rounding mode.

    Args:
        exact: The operation in f64, to be rounded once more; of bfloats too.
        native: The operation in the type itself, rounded to nearest even.
        count: How many operands it has.
        down: As ``exact``, where rounding down gives a zero of another sign.
    """

    def decode(code: Code, form: Form) -> Step:
        kind = form.last()
        mode = form.flag("rn", "rz", "rm", "rp")
        form.flag("approx", "full", "noftz")
        if mode in ("", "rn"):
            chosen = exact if kind in ("bf16", "bf16x2") else native
            return _finish(code, form, kind, chosen, count)
        if kind == "f64":
            opcode = {"mad": "fma"}.get(form.instruction.opcode, form.instruction.opcode)
            return _finish(code, form, kind, directed_double(opcode, native, mode), count)
        if kind != "f32":
            raise UnsupportedError(form.instruction.text)

        chosen = down if down and mode == "rm" else exact

        def directed(*values: Array) -> Array:
            return round_directed(chosen(*[v.astype(F8) for v in values]), F4, mode)

        return _finish(code, form, kind, directed, count)

    return decode


def _sum_down(a: Array, b: Array) -> Array:
    """Return a sum whose zero is negative unless both addends are positive zeros."""
    return -odd_sum(-a, -b)


def _fma_exact(a: Array, b: Array, c: Array) -> Array:
    return odd_sum(a * b, c)


def _fma_down(a: Array, b: Array, c: Array) -> Array:
    return _sum_down(a * b, c)


def _fma_native(a: Array, b: Array, c: Array) -> Array:
    if a.dtype == F8:
        return double_fma(a, b, c)
    return _sum_for_f32(a.astype(F8) * b, c.astype(F8)).astype(a.dtype)


def _sum_for_f32(product: Array, added: Array) -> Array:
    """Return a sum in f64 that rounds to f32 as the exact one does.

    Halfway between two f32 the rounding of the sum decides, so there it must not be lost. Below
    the normal f32, where halves look different, the result may be one unit off. An f16 has no
    such cases: what decides is never beyond an f64.
    """
    total = product + added
    if (total.view(U8) << _BELOW_F32 == _HALF_F32).any():
        total = odd_sum(product, added)
    return np.asarray(total)


_general_fma = _rounded(_fma_exact, _fma_native, 3, _fma_down)


def _fma(code: Code, form: Form) -> Step:
    """Decode fma and mad; ``fma.rn.f32`` on registers is what kernels spend their time on."""
    general = _general_fma(code, form)
    operands = form.instruction.operands
    places = code.direct([(operand, F4) for operand in operands])
    if form.instruction.modifiers not in (("rn", "f32"), ("f32",)) or places is None:
        return general
    d, a, b, c = places
    slots, wide, wide_of = code.slots, code.wide, code.wide_of

    def step(_: Mask) -> None:
        # A factor is usually read by several instructions: its f64 form is kept beside it,
        # good for as long as the slot holds the very array it was made from.
        x = slots[a]
        if wide_of[a] is not x:
            wide_of[a] = x
            wide[a] = x.astype(F8)
        y = slots[b]
        if wide_of[b] is not y:
            wide_of[b] = y
            wide[b] = y.astype(F8)
        slots[d] = _sum_for_f32(wide[a] * wide[b], slots[c].astype(F8)).astype(F4)

    return step


def _plain(function: Callable[..., Array], count: int) -> Callable[[Code, Form], Step]:
    """Return a decoder of an operation without rounding."""

    def decode(code: Code, form: Form) -> Step:
        return _finish(code, form, form.last(), function, count)

    return decode


def _through_double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def apply(x: Array) -> Array:
        return function(x.astype(F8)).astype(x.dtype)

    return apply


def _upper_word(value: Array) -> Array:
    """Return f64 values with a lower word of zero: gross approximations take and give no other."""
    return np.asarray(value.view(U8) & U8.type(0xFFFFFFFF00000000)).view(F8)


def _approximate(function: Callable[[Array], Array]) -> Callable[[Code, Form], Step]:
    """Return a decoder of an ``.approx`` function; the result here is the rounded exact one."""
    narrow = _through_double(function)

    def decode(code: Code, form: Form) -> Step:
        kind = form.last()
        form.flag("approx", "rn")
        if kind == "f64" and "ftz" in form.instruction.modifiers:
            return _finish(code, form, kind, lambda x: _upper_word(function(_upper_word(x))), 1)
        return _finish(code, form, kind, narrow, 1)

    return decode


def _extremum(code: Code, form: Form) -> Step:
    """Decode min and max: the operand that is not NaN, unless NaN is asked for."""
    least = form.instruction.opcode == "min"
    kind = form.last()
    quiet, loud = (np.fmin, np.minimum) if least else (np.fmax, np.maximum)
    pick = loud if form.flag("NaN") else quiet
    by_magnitude = form.flag("xorsign")
    if by_magnitude:
        form.one_of("abs")
    zero = np.bitwise_or if least else np.bitwise_and

    def extremum(a: Array, b: Array) -> Array:
        result = pick(a, b)
        # -0 is below +0, which NumPy leaves open.
        zeros = (a == 0) & (b == 0)
        if zeros.any():
            bits = np.dtype(f"u{a.dtype.itemsize}")
            result = np.where(zeros, zero(a.view(bits), b.view(bits)).view(a.dtype), result)
        return np.asarray(result)

    def of_magnitudes(a: Array, b: Array) -> Array:
        result = pick(np.abs(a), np.abs(b))
        return np.where(np.signbit(a) != np.signbit(b), -result, result)

    return _finish(code, form, kind, of_magnitudes if by_magnitude else extremum, 2)


def _copysign(code: Code, form: Form) -> Step:
    """Decode copysign: the sign of the first operand on the second."""
    return _finish(code, form, form.last(), lambda a, b: np.copysign(b, a), 2)


def _sign_bit(function: Callable[[Array, Array], Array]) -> Callable[[Array], Array]:
    """Return an operation on the sign bit, which leaves NaN payloads alone."""

    def apply(x: Array) -> Array:
        bits = np.dtype(f"u{x.dtype.itemsize}")
        sign = bits.type(1 << 8 * x.dtype.itemsize - 1)
        return function(x.view(bits), sign).view(x.dtype)

    return apply


def _clear(bits: Array, sign: Array) -> Array:
    return np.asarray(bits & ~sign)


_divided = _rounded(np.divide, np.divide, 2)


def _divide(code: Code, form: Form) -> Step:
    """Decode div; by more than 2**126 its approximation gives 0, or NaN for an infinity."""
    if not form.flag("approx"):
        return _divided(code, form)

    def approximate(a: Array, b: Array) -> Array:
        large = np.isfinite(b) & (np.abs(b) > _DIVISOR_MAX)
        return np.asarray(np.where(large, a * F4.type(0), a / b))

    return _finish(code, form, form.last(), approximate, 2)


def _inverse(code: Code, form: Form) -> Step:
    """Decode rcp, which has an approximation in f64 of its own."""
    if form.instruction.modifiers[-1] == "f64" and "approx" in form.instruction.modifiers:
        return _approximate(_exact_reciprocal)(code, form)
    return _inverted(code, form)


def _reciprocal(x: Array) -> Array:
    return np.asarray(x.dtype.type(1) / x)


def _exact_reciprocal(x: Array) -> Array:
    return np.asarray(1.0 / x)


_inverted = _rounded(_exact_reciprocal, _reciprocal, 1)

DECODERS: dict[str, Callable[[Code, Form], Step]] = {
    "add": _rounded(odd_sum, np.add, 2, _sum_down),
    "sub": _rounded(lambda a, b: odd_sum(a, -b), np.subtract, 2, lambda a, b: _sum_down(a, -b)),
    "mul": _rounded(np.multiply, np.multiply, 2),
    "div": _divide,
    "sqrt": _rounded(np.sqrt, np.sqrt, 1),
    "rcp": _inverse,
    "fma": _fma,
    "mad": _fma,
    "abs": _plain(_sign_bit(_clear), 1),
    "neg": _plain(_sign_bit(np.bitwise_xor), 1),
    "min": _extremum,
    "max": _extremum,
    "copysign": _copysign,
    "rsqrt": _approximate(lambda x: 1.0 / np.sqrt(x)),
    "ex2": _approximate(np.exp2),
    "lg2": _approximate(np.log2),
    "sin": _approximate(np.sin),
    "cos": _approximate(np.cos),
    "tanh": _approximate(np.tanh),
    "selp": select,
    **FLOAT_DECODERS,
}
"""Opcode → decoder, for the floating types in ``FLOATS``."""
