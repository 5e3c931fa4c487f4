"""Logic, shifts and bit fields.

Source: PTX ISA, "Logic and Shift Instructions", "Integer Arithmetic Instructions" (bfe, bfi, prmt,
brev, popc, clz, bfind, dp4a).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import I4, U4, U8, Form, UnsupportedError, dtype_of, unsigned
from ci.simulator.ops.integer import elementwise, integer_type
from ci.simulator.ptx import Immediate

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Step


def _shift(code: Code, form: Form) -> Step:
    """Decode shl and shr; counts from the width on give 0 or the sign."""
    left = form.instruction.opcode == "shl"
    dtype = integer_type(form)
    destination, value, count = form.operands(3)
    bits = 8 * dtype.itemsize
    shift = np.left_shift if left else np.right_shift
    if isinstance(count, Immediate):
        fixed = np.full((1, 1), min(count.bits & 0xFFFFFFFF, bits), dtype)
        return code.compute(lambda x: shift(x, fixed), dtype, destination, [(value, dtype)])

    def by(x: Array, n: Array) -> Array:
        return np.asarray(shift(x, np.minimum(n, bits).astype(dtype)))

    return code.compute(by, dtype, destination, [(value, dtype), (count, U4)])


def _funnel(code: Code, form: Form) -> Step:
    """Decode shf: 32 bits of the pair (high, low), shifted."""
    form.one_of("b32")
    left = form.one_of("l", "r") == "l"
    wrap = form.one_of("wrap", "clamp") == "wrap"
    destination, *sources = form.operands(4)

    def funnel(low: Array, high: Array, count: Array) -> Array:
        n = (count & 31 if wrap else np.minimum(count, 32)).astype(U8)
        pair = high.astype(U8) << U8.type(32) | low
        moved = pair << n >> U8.type(32) if left else pair >> n
        return np.asarray(moved).astype(U4)

    return code.compute(funnel, U4, destination, [(s, U4) for s in sources])


def _look_up(code: Code, form: Form) -> Step:
    """Decode lop3: any logical function of three operands, given as its truth table."""
    form.one_of("b32")
    destination, *sources, table = form.operands(5)
    if not isinstance(table, Immediate):
        raise UnsupportedError(form.instruction.text)
    rows = [row for row in range(8) if table.bits >> row & 1]

    def look_up(a: Array, b: Array, c: Array) -> Array:
        result = np.zeros((1, 1), U4)
        for row in rows:
            terms = [x if row & bit else ~x for x, bit in ((a, 4), (b, 2), (c, 1))]
            result = result | terms[0] & terms[1] & terms[2]
        return result

    return code.compute(look_up, U4, destination, [(s, U4) for s in sources])


def _position_mask(dtype: np.dtype[Any]) -> np.integer[Any]:
    """Return which bits of a field's position and length count; of 64-bit fields all do."""
    return np.uint32(0xFF if dtype.itemsize == U4.itemsize else 0xFFFFFFFF)


def _extract(code: Code, form: Form) -> Step:
    """Decode bfe: a bit field, extended by its sign for signed types."""
    dtype = integer_type(form)
    destination, value, start, length = form.operands(4)
    bits = 8 * dtype.itemsize
    raw = unsigned(dtype)
    kept_bits = _position_mask(dtype)

    def extract(x: Array, first: Array, count: Array) -> Array:
        pos, size = ((n & kept_bits).astype(raw) for n in (first, count))
        word = x.view(raw)
        ones = (raw.type(1) << np.minimum(size, raw.type(bits))) - raw.type(1)
        ones = np.where(size >= bits, ~raw.type(0), ones)
        field = np.where(pos < bits, word >> np.minimum(pos, raw.type(bits - 1)), raw.type(0))
        field = field & ones
        if dtype.kind == "i":
            last = np.minimum(pos + size - raw.type(1), raw.type(bits - 1))
            negative = (word >> last & raw.type(1)).astype(np.bool_) & (size > 0)
            present = np.minimum(size, raw.type(bits) - np.minimum(pos, raw.type(bits)))
            kept = (raw.type(1) << np.minimum(present, raw.type(bits - 1))) - raw.type(1)
            kept = np.where(present >= bits, ~raw.type(0), kept)
            field = np.where(negative, field | ~kept, field)
        return np.asarray(field).view(dtype)

    return code.compute(extract, dtype, destination, [(value, dtype), (start, U4), (length, U4)])


def _insert(code: Code, form: Form) -> Step:
    """Decode bfi: put the low bits of a into b."""
    dtype = integer_type(form)
    destination, a, b, start, length = form.operands(5)
    bits = 8 * dtype.itemsize
    kept_bits = _position_mask(dtype)

    def insert(x: Array, y: Array, first: Array, count: Array) -> Array:
        pos = np.minimum(first & kept_bits, bits).astype(dtype)
        size = np.minimum(count & kept_bits, bits).astype(dtype)
        ones = np.where(size < bits, (dtype.type(1) << size) - dtype.type(1), ~dtype.type(0))
        field = ones << pos
        return np.asarray(y & ~field | x << pos & field)

    sources = [(a, dtype), (b, dtype), (start, U4), (length, U4)]
    return code.compute(insert, dtype, destination, sources)


_PICKS = {
    "f4e": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
    "b4e": [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
    "rc8": [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]],
    "ecl": [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
    "ecr": [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
    "rc16": [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
}
"""Mode of prmt → for each value of the low two bits of the selector, the bytes picked."""


def _permute(code: Code, form: Form) -> Step:
    """Decode prmt: pick four of eight bytes, by nibbles of the selector or in a fixed pattern."""
    mode = form.flag(*_PICKS)
    form.one_of("b32")
    destination, *sources = form.operands(4)

    def permute(a: Array, b: Array, selector: Array) -> Array:
        pair = b.astype(U8) << U8.type(32) | a
        result = np.zeros((1, 1), U4)
        for byte in range(4):
            nibble = selector >> U4.type(4 * byte)
            if mode:
                nibble = np.array(_PICKS[mode], U4)[selector & U4.type(3), byte]
            picked = (pair >> ((nibble & U4.type(7)) * U4.type(8)).astype(U8)).astype(np.uint8)
            sign = np.where(picked & 0x80, np.uint8(0xFF), np.uint8(0))
            chosen = np.where(nibble & U4.type(8), sign, picked)
            result = result | chosen.astype(U4) << U4.type(8 * byte)
        return result

    return code.compute(permute, U4, destination, [(s, U4) for s in sources])


def _reverse(x: Array) -> Array:
    """Return the bits in reverse order."""
    swapped = x.astype(x.dtype.newbyteorder(">"))[..., None].view(np.uint8)
    reversed_bytes = np.packbits(
        np.unpackbits(swapped, axis=-1).reshape(*x.shape, -1)[..., ::-1], axis=-1
    )
    return np.asarray(reversed_bytes.view(x.dtype.newbyteorder(">"))[..., 0].astype(x.dtype))


def _highest(x: Array) -> Array:
    """Return the position of the highest set bit, -1 where there is none."""
    position = np.full(x.shape, -1, I4)
    rest = x.copy()
    for step in (32, 16, 8, 4, 2, 1):
        if step >= 8 * x.dtype.itemsize:
            continue
        above = rest >> x.dtype.type(step) != 0
        position = position + np.where(above, I4.type(step), I4.type(0))
        rest = np.where(above, rest >> x.dtype.type(step), rest)
    return np.where(rest != 0, position + I4.type(1), I4.type(-1))


def _count(function: Callable[[Array], Array]) -> Callable[[Code, Form], Step]:
    """Return a decoder of instructions that count or find bits: the result is 32 bits wide."""

    def decode(code: Code, form: Form) -> Step:
        dtype = integer_type(form)
        destination, source = form.operands(2)
        return code.compute(lambda x: function(x).astype(U4), U4, destination, [(source, dtype)])

    return decode


def _leading_zeros(x: Array) -> Array:
    return np.asarray(8 * x.dtype.itemsize - 1 - _highest(x))


def _find(code: Code, form: Form) -> Step:
    """Decode bfind: the highest bit that differs from the sign; all ones if there is none."""
    dtype = integer_type(form)
    as_shift = form.flag("shiftamt")
    destination, source = form.operands(2)

    def find(x: Array) -> Array:
        word = (np.where(x < 0, ~x, x) if dtype.kind == "i" else x).view(unsigned(dtype))
        at = _highest(word)
        if as_shift:
            at = np.where(at >= 0, 8 * dtype.itemsize - 1 - at, at)
        return np.asarray(at.astype(I4)).view(U4)

    return code.compute(find, U4, destination, [(source, dtype)])


def _dot(code: Code, form: Form) -> Step:
    """Decode dp4a and dp2a: products of four bytes, or of two halves and two bytes, added up."""
    kinds = [form.last(), form.last()]
    halves = form.instruction.opcode == "dp2a"
    upper = form.one_of("lo", "hi") == "hi" if halves else False
    destination, a, b, c = form.operands(4)
    if any(kind not in ("s32", "u32") for kind in kinds):
        raise UnsupportedError(form.instruction.text)
    second, first = (np.dtype("i1" if kind == "s32" else "u1") for kind in kinds)
    left_type = np.dtype(f"{first.kind}2") if halves else first
    result = I4 if I4.kind in (first.kind, second.kind) else U4

    def dot(x: Array, y: Array, z: Array) -> Array:
        left = x[..., None].view(left_type).astype(I4)
        right = y[..., None].view(second).astype(I4)
        if halves:
            right = right[..., 2:] if upper else right[..., :2]
        return np.asarray((left * right).sum(axis=-1, dtype=I4).view(result) + z)

    return code.compute(dot, result, destination, [(a, U4), (b, U4), (c, result)])


def _mask(code: Code, form: Form) -> Step:
    """Decode bmsk: ones from a position on, as many as a width."""
    form.one_of("b32")
    wrap = form.one_of("clamp", "wrap") == "wrap"
    destination, *sources = form.operands(3)

    def mask(first: Array, count: Array) -> Array:
        at, size = ((x & 31 if wrap else np.minimum(x, 32)).astype(U8) for x in (first, count))
        one = U8.type(1)
        return np.asarray(((one << size) - one) << at).astype(U4)

    return code.compute(mask, U4, destination, [(s, U4) for s in sources])


def _extend(code: Code, form: Form) -> Step:
    """Decode szext: a value of some low bits, extended by zeros or its sign to all 32."""
    dtype = integer_type(form)
    wrap = form.one_of("clamp", "wrap") == "wrap"
    destination, value, width = form.operands(3)
    if dtype.itemsize != U4.itemsize:
        raise UnsupportedError(form.instruction.text)

    def extend(x: Array, count: Array) -> Array:
        size = (count & 31 if wrap else np.minimum(count, 32)).astype(U8)
        low: Array = x.view(U4) & ((U8.type(1) << size) - U8.type(1)).astype(U4)
        if dtype.kind == "u":
            return low
        sign = (U8.type(1) << np.maximum(size, 1) - U8.type(1)).astype(U4)
        return np.asarray(np.where(size == 0, U4.type(0), (low ^ sign) - sign)).view(dtype)

    return code.compute(extend, dtype, destination, [(value, dtype), (width, U4)])


def _find_nth(code: Code, form: Form) -> Step:
    """Decode fns: the n-th set bit from a base on, upwards or downwards; all ones if none is."""
    form.one_of("b32")
    destination, mask, base, offset = form.operands(4)

    def find(word: Array, start: Array, nth: Array) -> Array:
        first, count = start.astype(np.int64), nth.view(I4).astype(np.int64)
        shape = np.broadcast_shapes(word.shape, start.shape, nth.shape)
        found = np.full(shape, 0xFFFFFFFF, U4)
        left = np.broadcast_to(np.abs(count), shape).copy()
        up = np.broadcast_to(count >= 0, shape)
        # With an offset of zero the bit at the base itself must be set.
        left[np.broadcast_to(count, shape) == 0] = 1
        reach = np.broadcast_to(np.where(count == 0, 1, 32), shape)
        for distance in range(32):
            at = np.broadcast_to(first, shape) + np.where(up, distance, -distance)
            inside = (at >= 0) & (at < 32) & (distance < reach)
            is_set = inside & ((word >> np.clip(at, 0, 31).astype(U4) & U4.type(1)) != 0)
            found = np.where(is_set & (left == 1), at.astype(U4), found)
            left = left - is_set
        return found

    return code.compute(find, U4, destination, [(mask, U4), (base, U4), (offset, U4)])


def _logic(function: Callable[..., Array], count: int) -> Callable[[Code, Form], Step]:
    """Return a decoder of bitwise logic, which exists for predicates too."""

    def decode(code: Code, form: Form) -> Step:
        dtype = dtype_of(form.last())
        destination, *sources = form.operands(count + 1)
        return code.compute(function, dtype, destination, [(s, dtype) for s in sources])

    return decode


def _not(x: Array) -> Array:
    return np.asarray(~x)


def _is_zero(x: Array) -> Array:
    return np.asarray(x == 0).astype(x.dtype)


DECODERS: dict[str, Callable[[Code, Form], Step]] = {
    "and": _logic(np.bitwise_and, 2),
    "or": _logic(np.bitwise_or, 2),
    "xor": _logic(np.bitwise_xor, 2),
    "not": _logic(_not, 1),
    "cnot": elementwise(_is_zero, 1),
    "shl": _shift,
    "shr": _shift,
    "shf": _funnel,
    "lop3": _look_up,
    "bfe": _extract,
    "bfi": _insert,
    "prmt": _permute,
    "brev": elementwise(_reverse, 1),
    "popc": _count(np.bitwise_count),
    "clz": _count(_leading_zeros),
    "bfind": _find,
    "dp4a": _dot,
    "dp2a": _dot,
    "bmsk": _mask,
    "szext": _extend,
    "fns": _find_nth,
}
"""Opcode → decoder, for integer and untyped bits, and logic of predicates."""
