"""Matrix fragments of nvcuda::wmma: loaded from memory, multiplied, stored.

Lines of memory that run along a lane's elements are read a word at a time; 16-bit elements that
run across them are read so, too, and exchanged between the lanes afterwards; other elements are
read one by one. From shared memory the compiler makes matrix loads where it can.

Source: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions" (wmma).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.forms import I8, U4, Form, UnsupportedError
from ci.simulator.lanes import WARP
from ci.simulator.memory import spread_to
from ci.simulator.ops.access import (
    address_of,
    generic_reader,
    generic_writer,
    items_of,
    readers_of,
    writers_of,
)
from ci.simulator.ops.fragments import Corner, Crossing, Fragment, fragment
from ci.simulator.ops.matrix import load_rows
from ci.simulator.ops.tensor import Product, check_whole_warps, multiply

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Fetch, Mask, Step
    from ci.simulator.ptx import Operand


def _exchange(words: Array) -> Array:
    """Return 8 x 8 tiles of 16-bit elements transposed, (rows, threads) words each."""
    tiles = np.ascontiguousarray(words).view("u2").reshape(len(words), -1, 8, 8)
    turned = np.ascontiguousarray(tiles.swapaxes(-1, -2))
    return np.asarray(turned.reshape(len(words), -1, 2).view(U4)[..., 0])


def _wmma(code: Code, form: Form) -> Step:
    action = form.one_of("load", "mma", "store")
    if action == "mma":
        return _multiply(code, form)
    use = form.one_of("d") if action == "store" else form.one_of("a", "b", "c")
    kind = form.last()
    form.one_of("sync")
    form.one_of("aligned")
    row_major = form.one_of("row", "col") == "row"
    space = form.flag("global", "shared")
    form.flag("cta")
    shape = form.last()
    plan = Crossing(fragment=fragment("c" if use == "d" else use, kind, shape), row_major=row_major)
    operands = form.operands(2, 3)
    target, registers = operands[:2] if action == "store" else operands[1::-1]
    items = items_of(registers)
    if len(items) != plan.fragment.registers:
        raise UnsupportedError(form.instruction.text)
    reach = _Reach(code, plan, target, operands[2] if len(operands) > 2 else None)
    if action == "store":
        return _store(code, form, reach, items, space)
    if space == "shared" and use != "c" and plan.whole:
        return _load_by_rows(code, form, reach, items)
    return _load(code, form, reach, items, space)


class _Reach:
    """Where in memory a fragment's elements lie."""

    def __init__(self, code: Code, plan: Crossing, target: Operand, stride: Operand | None) -> None:
        """Decode the address and the distance of two lines of memory."""
        self.plan = plan
        self._lanes = code.lanes
        self._address = address_of(code, target)
        wide = plan.fragment.columns if plan.row_major else plan.fragment.rows
        self._stride: Fetch = (
            (lambda: np.full((1, 1), wide, U4)) if stride is None else code.fetch(stride, U4)
        )

    def of(self, corner: Corner, element: int) -> Array:
        """Return the (b, threads) byte addresses that the lanes access first."""
        base, stride = self._address(), self._stride().astype(I8)
        rows = max(len(base), len(stride))
        warps = self._lanes.threads // WARP
        shape = (rows, self._lanes.threads)
        first = spread_to(base, shape).reshape(rows, warps, WARP)
        pitch = spread_to(stride, shape).reshape(rows, warps, WARP)
        index = self.plan.index(corner, element, pitch)
        return np.asarray(first + index * self.plan.fragment.stored.itemsize).reshape(shape)

    def lines(self, corners: tuple[Corner, ...]) -> Array:
        """Return addresses of which lanes 8 j to 8 j + 7 have the lines of tile j."""
        base, stride = self._address(), self._stride().astype(I8)
        lane = np.arange(self._lanes.threads)[None, :] % WARP
        along = corners if self.plan.row_major else [corner[::-1] for corner in corners]
        line, start = (
            np.array(each)[lane // 8 % len(corners)] for each in zip(*along, strict=True)
        )
        index = (line + lane % 8) * stride + start
        return np.asarray(base + index * self.plan.fragment.stored.itemsize)


def _load(code: Code, form: Form, reach: _Reach, items: tuple[Operand, ...], space: str) -> Step:
    """Return the step of a load of words or, where these run across, of single elements."""
    plan, shape = reach.plan, reach.plan.fragment
    pc, lanes = form.instruction.pc, code.lanes
    whole = shape.per * shape.stored.itemsize if plan.whole else shape.stored.itemsize
    count = max(1, whole // shape.words.itemsize)
    part = shape.words if plan.whole else shape.stored
    readers = readers_of(lanes, pc, [part] * count)
    read = readers[space] if space else generic_reader(lanes, readers)
    stores = [code.store(item, shape.words) for item in items]
    turns = 1 if plan.whole else shape.per

    def step(mask: Mask) -> None:
        check_whole_warps(lanes, pc, mask)
        words: list[Array] = []
        for corner in shape.tiles:
            parts = [read(reach.of(corner, element), mask) for element in range(turns)]
            words += _words(parts, shape, exchanged=plan.exchanged)
        for number, store in enumerate(stores):
            store(words[number % len(words)])
        lanes.order_warps(mask)

    return step


def _words(parts: list[list[Array]], shape: Fragment, *, exchanged: bool) -> list[Array]:
    """Return what accesses of a tile gave as registers."""
    values = [value for each in parts for value in each]
    if exchanged:
        return [_exchange(value) for value in values]
    if values[0].dtype == shape.words:
        return values
    # Single elements: the first one becomes the lowest of its word.
    bits = 8 * shape.stored.itemsize
    word = values[0].astype(shape.words)
    for number, value in enumerate(values[1:], 1):
        word = word | value.astype(shape.words) << shape.words.type(bits * number)
    return [np.asarray(word)]


def _load_by_rows(code: Code, form: Form, reach: _Reach, items: tuple[Operand, ...]) -> Step:
    """Return the step of a load from shared memory that the compiler makes an ldmatrix of."""
    shape = reach.plan.fragment
    pc, lanes = form.instruction.pc, code.lanes
    stores = [code.store(item, U4) for item in items]
    # As many matrices at a time as the compiler asks for.
    most = 4 if shape.stored.itemsize == 2 else 2
    groups = [shape.tiles[at : at + most] for at in range(0, len(shape.tiles), most)]
    transposed = not reach.plan.straight

    def step(mask: Mask) -> None:
        check_whole_warps(lanes, pc, mask)
        words = [
            word
            for corners in groups
            for word in load_rows(
                lanes, pc, mask, reach.lines(corners), len(corners), transposed=transposed
            )
        ]
        for number, store in enumerate(stores):
            store(words[number % len(words)])
        lanes.order_warps(mask)

    return step


def _store(code: Code, form: Form, reach: _Reach, items: tuple[Operand, ...], space: str) -> Step:
    """Return the step of a store of an accumulator."""
    plan, shape = reach.plan, reach.plan.fragment
    pc, lanes = form.instruction.pc, code.lanes
    whole = shape.per * shape.stored.itemsize if plan.whole else shape.stored.itemsize
    count = max(1, whole // shape.words.itemsize)
    writers = writers_of(lanes, pc, whole)
    write = writers[space] if space else generic_writer(lanes, writers)
    fetches = [code.fetch(item, shape.words) for item in items]

    def step(mask: Mask) -> None:
        check_whole_warps(lanes, pc, mask)
        lanes.order_warps(mask)
        full = lanes.blocks, lanes.threads
        words = [fetch() for fetch in fetches]
        if plan.exchanged:
            words = [_exchange(spread_to(word, full)) for word in words]
        for number in range(0, len(words), count):
            corner = shape.tiles[
                number * shape.words.itemsize // shape.stored.itemsize // shape.per
            ]
            element = 0 if plan.whole else number % shape.per
            write(reach.of(corner, element), mask, words[number : number + count])

    return step


def _multiply(code: Code, form: Form) -> Step:
    """Decode the product, whose shape is of the whole warp's matrices."""
    satfinite = form.flag("satfinite")
    for name in ("sync", "aligned"):
        form.one_of(name)
    # Fragments are the same for both orders.
    form.one_of("row", "col")
    form.one_of("row", "col")
    form.flag("rn")
    c_kind = form.last()
    d_kind, a_kind, b_kind, shape = _product_kinds(form, c_kind)
    product = Product(
        d_kind=d_kind,
        a_kind=a_kind,
        b_kind=b_kind,
        c_kind=c_kind,
        d=fragment("c", d_kind, shape),
        a=fragment("a", a_kind, shape),
        b=fragment("b", b_kind, shape),
        c=fragment("c", c_kind, shape),
        saturates=bool(satfinite) and d_kind == "s32",
    )
    return multiply(code, form, product)


def _product_kinds(form: Form, c_kind: str) -> tuple[str, str, str, str]:
    """Take the other types and the shape; products of f16 name those of d and c alone."""
    second = form.last()
    shape = form.last()
    if re.fullmatch(r"m\d+n\d+k\d+", shape):
        return second, "f16", "f16", shape
    a_kind, d_kind = shape, form.last()
    if c_kind == "s32" and {a_kind, second} - {"s8", "u8"}:
        raise UnsupportedError(form.instruction.text)
    return d_kind, a_kind, second, form.last()


DECODERS: dict[str, Callable[[Code, Form], Step]] = {"wmma": _wmma}
"""Opcode → decoder."""
