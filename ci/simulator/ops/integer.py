"""Integer arithmetic, comparison and selection.

Source: PTX ISA, "Integer Arithmetic Instructions", "Comparison and Selection Instructions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import BOOL, I4, I8, U4, Form, UnsupportedError, dtype_of
from ci.simulator.ops.carry import extended
from ci.simulator.ops.product import high_product, wide_type
from ci.simulator.ptx import Pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Step

DType = np.dtype[Any]


def integer_type(form: Form) -> DType:
    """Take the type.

    Raises:
        UnsupportedError: It is no integer type.
    """
    dtype = dtype_of(form.last())
    if dtype.kind not in "iu":
        raise UnsupportedError(form.instruction.text)
    return dtype


def elementwise(function: Callable[..., Array], count: int) -> Callable[[Code, Form], Step]:
    """Return a decoder of instructions whose operands all have the instruction's type."""

    def decode(code: Code, form: Form) -> Step:
        dtype = integer_type(form)
        destination, *sources = form.operands(count + 1)
        return code.compute(function, dtype, destination, [(s, dtype) for s in sources])

    return decode


def _product(code: Code, form: Form) -> Step:
    """Decode mul and mad, of which mad adds a third operand."""
    if "cc" in form.instruction.modifiers:
        return extended(code, form)
    adds = form.instruction.opcode == "mad"
    dtype = integer_type(form)
    part = form.one_of("lo", "hi", "wide")
    if part == "wide" and dtype.itemsize == 8:
        raise UnsupportedError(form.instruction.text)
    destination, a, b, *rest = form.operands(4 if adds else 3)
    result = wide_type(dtype) if part == "wide" else dtype

    def wide(x: Array, y: Array) -> Array:
        return np.multiply(x, y, dtype=result)

    products: dict[str, Callable[..., Array]] = {
        "lo": np.multiply,
        "hi": high_product,
        "wide": wide,
    }
    multiply = products[part]

    def multiply_add(x: Array, y: Array, z: Array) -> Array:
        return np.asarray(multiply(x, y) + z)

    sources = [(a, dtype), (b, dtype), *((c, result) for c in rest)]
    return code.compute(multiply_add if adds else multiply, result, destination, sources)


def _divide(a: Array, b: Array) -> Array:
    """Return the quotient, truncated; all ones on division by zero, as the hardware does."""
    zero = b == 0
    safe = np.where(zero, np.ones_like(b), b)
    if a.dtype.kind == "u":
        return np.where(zero, np.bitwise_not(np.zeros_like(b)), a // safe)
    quotient = (a - np.fmod(a, safe)) // safe
    return np.where(zero, np.full_like(b, -1), quotient)


def _remainder(a: Array, b: Array) -> Array:
    """Return the remainder, with the sign of the dividend; all ones on division by zero."""
    zero = b == 0
    return np.where(zero, ~np.zeros_like(b), np.fmod(a, np.where(zero, np.ones_like(b), b)))


def compare_integers(operation: str, dtype: DType) -> Callable[[Array, Array], Array]:
    """Return a comparison of integers, by the signedness of ``dtype``."""
    unsigned_names = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
    if operation in unsigned_names and dtype.kind != "u":
        raise UnsupportedError(operation)
    return {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }[unsigned_names.get(operation, operation)]


COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def set_predicate(
    code: Code,
    form: Form,
    dtype: DType,
    compare: Callable[[Array, Array], Array],
) -> Step:
    """Return the step of a setp: a comparison, maybe a second result and a third operand."""
    combine = form.flag(*COMBINE)
    destination, a, b, *rest = form.operands(4 if combine else 3)
    first = destination.first if isinstance(destination, Pair) else destination
    sources = [(a, dtype), (b, dtype), *((c, BOOL) for c in rest)]

    def combined(x: Array, y: Array, c: Array) -> Array:
        return np.asarray(COMBINE[combine](compare(x, y), c))

    step = code.compute(combined if combine else compare, BOOL, first, sources)
    if not isinstance(destination, Pair):
        return step

    def inverse(x: Array, y: Array, *c: Array) -> Array:
        opposite = ~compare(x, y)
        return np.asarray(COMBINE[combine](opposite, c[0]) if combine else opposite)

    other = code.compute(inverse, BOOL, destination.second, sources)

    def both(mask: Array | None) -> None:
        # The second result first: the first may overwrite a source.
        other(mask)
        step(mask)

    if destination.second in (a, b, *rest):
        raise UnsupportedError(form.instruction.text)
    return both


def _setp(code: Code, form: Form) -> Step:
    dtype = integer_type(form)
    operation = form.one_of("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")
    return set_predicate(code, form, dtype, compare_integers(operation, dtype))


def select(code: Code, form: Form) -> Step:
    """Decode selp, of any type."""
    dtype = dtype_of(form.last())
    destination, a, b, chooser = form.operands(4)

    def choose(x: Array, y: Array, p: Array) -> Array:
        return np.where(p, x, y)

    return code.compute(choose, dtype, destination, [(a, dtype), (b, dtype), (chooser, BOOL)])


def _difference(a: Array, b: Array, c: Array) -> Array:
    return np.asarray(np.maximum(a, b) - np.minimum(a, b) + c)


def _saturating(code: Code, form: Form) -> Step:
    """Decode add and sub, which may saturate in s32 or set the carry."""
    if "cc" in form.instruction.modifiers:
        return extended(code, form)
    function = np.add if form.instruction.opcode == "add" else np.subtract
    if not form.flag("sat"):
        return elementwise(function, 2)(code, form)
    form.one_of("s32")
    destination, a, b = form.operands(3)
    limits = np.iinfo(I4)

    def saturate(x: Array, y: Array) -> Array:
        exact = function(x.astype(I8), y.astype(I8))
        return np.asarray(np.clip(exact, limits.min, limits.max)).astype(I4)

    return code.compute(saturate, I4, destination, [(a, I4), (b, I4)])


def _byte_differences(code: Code, form: Form) -> Step:
    """Decode vabsdiff4 without masks: differences of four bytes, packed or added up."""
    adds = form.flag("add")
    kinds = [form.last() for _ in range(3)]
    destination, a, b, c = form.operands(4)
    if set(kinds) - {"u32", "s32"} or (not adds and kinds[2] != "u32"):
        raise UnsupportedError(form.instruction.text)
    second, first = (np.dtype("i1" if kind == "s32" else "u1") for kind in kinds[:2])

    def differ(x: Array, y: Array, z: Array) -> Array:
        left, right = (v[..., None].view(t).astype(I4) for v, t in ((x, first), (y, second)))
        apart = np.abs(left - right)
        if adds:
            return np.asarray(z + apart.sum(axis=-1).astype(U4))
        return np.ascontiguousarray(apart.astype(np.uint8)).view(U4)[..., 0]

    return code.compute(differ, U4, destination, [(a, U4), (b, U4), (c, U4)])


DECODERS: dict[str, Callable[[Code, Form], Step]] = {
    "add": _saturating,
    "sub": _saturating,
    "mul": _product,
    "mad": _product,
    "div": elementwise(_divide, 2),
    "rem": elementwise(_remainder, 2),
    "abs": elementwise(np.abs, 1),
    "neg": elementwise(np.negative, 1),
    "min": elementwise(np.minimum, 2),
    "max": elementwise(np.maximum, 2),
    "sad": elementwise(_difference, 3),
    "vabsdiff4": _byte_differences,
    "setp": _setp,
    "selp": select,
}
"""Opcode → decoder, for integer types."""
