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


def _permute(code: Code, form: Form) -> Step:
    """Decode prmt in its default mode: pick four of eight bytes."""
    form.one_of("b32")
    destination, *sources = form.operands(4)

    def permute(a: Array, b: Array, selector: Array) -> Array:
        pair = b.astype(U8) << U8.type(32) | a
        result = np.zeros((1, 1), U4)
        for byte in range(4):
            nibble = selector >> U4.type(4 * byte)
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
    """Decode dp4a: the product of four bytes each, added up."""
    kinds = [form.last(), form.last()]
    destination, a, b, c = form.operands(4)
    if any(kind not in ("s32", "u32") for kind in kinds):
        raise UnsupportedError(form.instruction.text)
    second, first = (np.dtype("i1" if kind == "s32" else "u1") for kind in kinds)
    result = I4 if I4.kind in (first.kind, second.kind) else U4

    def dot(x: Array, y: Array, z: Array) -> Array:
        left = x[..., None].view(first).astype(I4)
        right = y[..., None].view(second).astype(I4)
        return np.asarray((left * right).sum(axis=-1, dtype=I4).view(result) + z)

    return code.compute(dot, result, destination, [(a, U4), (b, U4), (c, result)])


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
}
"""Opcode → decoder, for integer and untyped bits, and logic of predicates."""
