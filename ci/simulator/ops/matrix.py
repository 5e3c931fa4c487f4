"""Warp-wide matrix fragments: loading them from shared memory, multiplying them.

Source: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions" (ldmatrix, mma).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.forms import U4, Form, UnsupportedError
from ci.simulator.lanes import WARP
from ci.simulator.memory import spread_to
from ci.simulator.ops.access import address_of, items_of
from ci.simulator.ops.fragments import mma_fragment
from ci.simulator.ops.tensor import Product, check_whole_warps, multiply

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Mask, Step
    from ci.simulator.lanes import Lanes

_COLUMNS = 8
_ROW_BYTES = 16
"""Of one row of an 8 x 8 matrix of 16-bit elements."""
_SUM_OF = {"f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "f64": ("f64",)}
"""Type of a and b → those of c and d; of integers it is s32."""


def _load_matrix(code: Code, form: Form) -> Step:
    """Decode ldmatrix: lanes 8j to 8j + 7 give the rows of matrix j."""
    for name in ("sync", "aligned", "m8n8"):
        form.one_of(name)
    count = int(form.one_of("x1", "x2", "x4")[1:])
    transposed = form.flag("trans")
    form.one_of("b16")
    form.flag("shared")
    destination, source = form.operands(2)
    items = items_of(destination)
    if len(items) != count:
        raise UnsupportedError(form.instruction.text)
    stores = [code.store(item, U4) for item in items]
    address = address_of(code, source)
    pc, lanes = form.instruction.pc, code.lanes

    def step(mask: Mask) -> None:
        check_whole_warps(lanes, pc, mask)
        words = load_rows(lanes, pc, mask, address(), count, transposed=bool(transposed))
        for store, word in zip(stores, words, strict=True):
            store(word)
        lanes.order_warps(mask)

    return step


def load_rows(
    lanes: Lanes, pc: int, mask: Mask, rows: Array, count: int, *, transposed: bool
) -> list[Array]:
    """Return what each lane receives of 8 x 8 matrices in shared memory, a word of each.

    Args:
        lanes: The slice.
        pc: The instruction.
        mask: Active lanes.
        rows: (b, t) addresses; those of lanes 8 j to 8 j + 7 of a warp are the rows of matrix j.
        count: Number of matrices.
        transposed: Whether the matrices are, of 16-bit elements then.
    """
    rows = spread_to(rows, (len(rows), lanes.threads))
    lane = np.arange(lanes.threads)[None, :] % WARP
    asking = lanes.both(mask, lane < _COLUMNS * count)
    rows = lanes.shared.check(pc, rows, asking, _ROW_BYTES, "read")
    lanes.pending.read(pc, rows, asking, _ROW_BYTES, "read")
    lanes.shadow.read(pc, rows, asking, _ROW_BYTES)
    if lanes.counters is not None:
        lanes.counters.shared_access(pc, False, rows, asking, _ROW_BYTES)
    by_warp = rows.reshape(len(rows), -1, WARP)
    pick = _transposed_word if transposed else _word
    return [pick(lanes, by_warp[..., 8 * j : 8 * j + 8]) for j in range(count)]


def _word(lanes: Lanes, rows: Array) -> Array:
    """Return the two elements each lane receives of a matrix given by its row addresses."""
    lane = np.arange(WARP)
    where = rows[..., lane // 4] + lane % 4 * 4
    return lanes.shared.load(where.reshape(len(rows), -1), [U4])[0]


def _transposed_word(lanes: Lanes, rows: Array) -> Array:
    """Return the same of the transposed matrix."""
    lane = np.arange(WARP)
    halves = []
    for element in (0, 1):
        where = rows[..., lane % 4 * 2 + element] + lane // 4 * 2
        halves.append(lanes.shared.load(where.reshape(len(rows), -1), [np.dtype("u2")])[0])
    return np.asarray(halves[0] | halves[1].astype(U4) << U4.type(16))


def _multiply(code: Code, form: Form) -> Step:
    """Decode mma.sync of shape m16n8k* or m8n8k*."""
    c_kind, b_kind, a_kind, d_kind = (form.last() for _ in range(4))
    for name in ("sync", "aligned", "row", "col"):
        form.one_of(name)
    saturates = c_kind == "s32" and bool(form.flag("satfinite"))
    shape = re.fullmatch(r"m(8|16)n8k(\d+)", form.last())
    integers = {a_kind, b_kind} <= {"s8", "u8"}
    sums = ("s32",) if integers else _SUM_OF.get(a_kind, ())
    if not shape or not (integers or a_kind == b_kind) or not {c_kind, d_kind} <= set(sums):
        raise UnsupportedError(form.instruction.text)
    rows, depth = int(shape[1]), int(shape[2])
    product = Product(
        d_kind=d_kind,
        a_kind=a_kind,
        b_kind=b_kind,
        c_kind=c_kind,
        d=mma_fragment("c", d_kind, rows, depth),
        a=mma_fragment("a", a_kind, rows, depth),
        b=mma_fragment("b", b_kind, rows, depth),
        c=mma_fragment("c", c_kind, rows, depth),
        saturates=saturates,
    )
    return multiply(code, form, product)


DECODERS: dict[str, Callable[[Code, Form], Step]] = {"ldmatrix": _load_matrix, "mma": _multiply}
"""Opcode → decoder."""
