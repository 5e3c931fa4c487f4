"""Products of matrices whose fragments lie in the registers of warps.

Source: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions" (mma, wmma.mma).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.forms import F2, F4, F8, I4, I8, U4, Form, UnsupportedError
from ci.simulator.lanes import WARP
from ci.simulator.memory import spread_to
from ci.simulator.ops.access import items_of
from ci.simulator.ops.fragments import SUMS, Fragment
from ci.simulator.ops.rounding import bf16_to_f32

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Mask, Step
    from ci.simulator.lanes import Lanes
    from ci.simulator.ptx import Operand

PARTIAL_WARP = "matrix instruction with a partial warp"

UNPACK: dict[str, Callable[[Array], Array]] = {
    "f16": lambda x: x.view(F2).astype(F4),
    "bf16": lambda x: bf16_to_f32(x.view("u2")),
    # The hardware ignores the low 13 bits of the mantissa.
    "tf32": lambda x: np.asarray(x & U4.type(0xFFFFE000)).view(F4),
    "s8": lambda x: x.view("i1").astype(I4),
    "u8": lambda x: x.view("u1").astype(I4),
    "f64": lambda x: x.view(F8),
}
"""Element type of a or b → its registers as values, along the last axis."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """The types and fragments of d = a b + c."""

    d_kind: str
    a_kind: str
    b_kind: str
    c_kind: str
    d: Fragment
    a: Fragment
    b: Fragment
    c: Fragment
    saturates: bool
    """Whether an integer result stops at its limits."""


def check_whole_warps(lanes: Lanes, pc: int, mask: Mask) -> None:
    """Report warps of which only a part is active."""
    chosen = lanes.everyone if mask is None else mask
    if chosen is None or chosen.shape[1] == 1:
        return
    active = chosen.reshape(len(chosen), -1, WARP)
    partial = active.any(axis=-1, keepdims=True) & ~active.all(axis=-1, keepdims=True)
    if partial.any():
        bad = (active & partial).reshape(chosen.shape)
        lanes.report(PARTIAL_WARP, pc, bad, "instruction that needs all 32 lanes executed")


def multiply(code: Code, form: Form, product: Product) -> Step:
    """Return the step of a product whose modifiers are taken.

    Raises:
        UnsupportedError: The registers are not as many as the fragments need.
    """
    d, a, b, c = product.d, product.a, product.b, product.c
    operands = [items_of(operand) for operand in form.operands(4)]
    if [len(items) for items in operands] != [f.registers for f in (d, a, b, c)]:
        raise UnsupportedError(form.instruction.text)
    left = Gather(code, operands[1], a, UNPACK[product.a_kind])
    right = Gather(code, operands[2], b, UNPACK[product.b_kind])
    added = Gather(code, operands[3], c, lambda x: x.view(SUMS[product.c_kind].value))
    stores = [code.store(item, d.words) for item in operands[0]]
    result = SUMS[product.d_kind].value
    pc, lanes = form.instruction.pc, code.lanes

    def step(mask: Mask) -> None:
        check_whole_warps(lanes, pc, mask)
        x, y, z = left(), right(), added()
        if product.saturates:
            limits = np.iinfo(I4)
            total = np.matmul(x.astype(I8), y.astype(I8)) + z
            total = np.clip(total, limits.min, limits.max).astype(I4)
        else:
            total = (np.matmul(x, y) + z).astype(result)
        for store, word in zip(stores, scatter(total, d), strict=True):
            store(word)
        lanes.order_warps(mask)

    return step


class Gather:
    """Reads registers as matrices."""

    def __init__(
        self,
        code: Code,
        items: tuple[Operand, ...],
        layout: Fragment,
        unpack: Callable[[Array], Array],
    ) -> None:
        """Decode the registers.

        Args:
            code: The kernel.
            items: The registers.
            layout: Of the fragment they hold.
            unpack: (…, registers) words → (…, elements) values.
        """
        self._lanes: Lanes = code.lanes
        self._fetches = [code.fetch(item, layout.words) for item in items]
        self._layout = layout
        self._unpack = unpack
        # The first of several copies of an element counts.
        _, self._where = np.unique(layout.places().reshape(-1), return_index=True)

    def __call__(self) -> Array:
        """Return the (rows, warps, M, N) matrices of all warps."""
        words = [fetch() for fetch in self._fetches]
        rows = max(len(word) for word in words)
        shape = (rows, self._lanes.threads)
        stacked = np.stack([spread_to(word, shape) for word in words], axis=-1)
        values = self._unpack(stacked).reshape(rows, shape[1] // WARP, -1)
        return values.take(self._where, axis=-1).reshape(
            rows, shape[1] // WARP, self._layout.rows, self._layout.columns
        )


def scatter(matrix: Array, layout: Fragment) -> list[Array]:
    """Return (rows, warps, M, N) matrices as registers, (rows, threads) each."""
    rows, warps = matrix.shape[:2]
    flat = matrix.reshape(rows, warps, math.prod(matrix.shape[2:]))
    held = np.ascontiguousarray(flat.take(layout.places(), axis=-1)).view(layout.words)
    return [held[..., number].reshape(rows, -1) for number in range(layout.registers)]
