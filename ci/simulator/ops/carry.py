"""Integer arithmetic with a carry between instructions, and on 24 bits.

Source: PTX ISA, "Extended-Precision Integer Arithmetic Instructions", and mul24, mad24.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.forms import BOOL, I4, I8, U4, U8, Form, dtype_of, unsigned
from ci.simulator.ops.product import high_product
from ci.simulator.ptx import Register

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Step

_CARRY = Register(name="%carry flag", type="pred")
"""The condition code; no register of a text has a blank in its name."""
_TYPES = ("u32", "s32", "u64", "s64", "b32", "b64")


def extended(code: Code, form: Form) -> Step:
    """Decode add, sub and mad that set the carry, and addc, subc and madc, which also take it.

    A difference is a sum with the complement, and its carry means that nothing was borrowed:
    compilers follow subc.cc with addc to learn that.
    """
    opcode = form.instruction.opcode
    sets = bool(form.flag("cc"))
    dtype = dtype_of(form.one_of(*_TYPES))
    bits = unsigned(dtype)
    part = form.one_of("lo", "hi") if opcode in ("mad", "madc") else ""
    destination, *sources = form.operands(4 if part else 3)
    subtracts = opcode in ("sub", "subc")
    fetches = [code.fetch(source, dtype) for source in sources]
    carry = code.fetch(_CARRY, BOOL) if opcode.endswith("c") else None
    first = np.full((1, 1), subtracts, bits)
    store = code.store(destination, bits)
    keep = code.store(_CARRY, BOOL) if sets else None

    def step(_: Array | None) -> None:
        values = [fetch() for fetch in fetches]
        if part:
            product = high_product(*values[:2]) if part == "hi" else values[0] * values[1]
            values = [product, values[2]]
        a, b = (np.asarray(value).view(bits) for value in values)
        sum_of_two = np.asarray(a + (~b if subtracts else b))
        total = np.asarray(sum_of_two + (first if carry is None else carry().astype(bits)))
        if keep is not None:
            # Either sum may wrap, never both.
            keep(np.asarray((sum_of_two < a) | (total < sum_of_two)))
        store(total)

    return step


def product24(code: Code, form: Form) -> Step:
    """Decode mul24 and mad24: the product of the low 24 bits of each factor."""
    adds = form.instruction.opcode == "mad24"
    dtype = dtype_of(form.one_of("u32", "s32"))
    shift = 0 if form.one_of("lo", "hi") == "lo" else 16
    destination, *sources = form.operands(4 if adds else 3)
    wide = I8 if dtype == I4 else U8

    def low24(value: Array) -> Array:
        return np.asarray((value << dtype.type(8)) >> dtype.type(8)).astype(wide)

    def multiply(a: Array, b: Array, c: Array | None = None) -> Array:
        result = ((low24(a) * low24(b)) >> wide.type(shift)).astype(U4).view(dtype)
        return np.asarray(result if c is None else result + c)

    return code.compute(multiply, dtype, destination, [(source, dtype) for source in sources])


DECODERS: dict[str, Callable[[Code, Form], Step]] = {
    "addc": extended,
    "subc": extended,
    "madc": extended,
    "mul24": product24,
    "mad24": product24,
}
"""Opcode → decoder."""
