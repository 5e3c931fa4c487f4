"""Warp-wide matrix fragments: loading them from shared memory, multiplying them.

With lane = 4 * group + thread and ``per`` elements a register, element e of register r is
  of A (16 x K): row group + 8 (r mod 2), column thread * per + e + 4 * per * (r div 2);
  of B (K x 8):  row thread * per + e + 4 * per * r, column group;
  of C and D (16 x 8), counted over all registers: row group + 8 (e div 2), column
  2 * thread + (e mod 2).

Source: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import F2, F4, I4, U4, Form, UnsupportedError
from ci.simulator.lanes import WARP
from ci.simulator.memory import spread_to
from ci.simulator.ops.access import address_of, items_of
from ci.simulator.ops.rounding import bf16_to_f32

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Fetch, Mask, Step
    from ci.simulator.lanes import Lanes
    from ci.simulator.ptx import Operand

PARTIAL_WARP = "matrix instruction with a partial warp"

_ROWS, _COLUMNS = 16, 8
_ROW_BYTES = 16
"""Of one row of an 8 x 8 matrix of 16-bit elements."""


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
        lanes.shadow.order_warps(lanes.active(mask))

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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Element:
    """How a register holds elements of A or B."""

    per_register: int
    unpack: Callable[[Array], Array]
    """(…) registers → (…, per_register) values."""
    compute: np.dtype[Any]
    """In what they are multiplied."""


def _halves(x: Array) -> Array:
    return np.asarray(x[..., None].view(F2).astype(F4))


def _bfloats(x: Array) -> Array:
    return bf16_to_f32(x[..., None].view("u2"))


def _tensor_floats(x: Array) -> Array:
    # The hardware ignores the low 13 bits of the mantissa.
    return np.asarray(x & U4.type(0xFFFFE000))[..., None].view(F4)


def _bytes(kind: str) -> Callable[[Array], Array]:
    return lambda x: x[..., None].view(kind).astype(I4)


_ELEMENTS = {
    "f16": _Element(per_register=2, unpack=_halves, compute=F4),
    "bf16": _Element(per_register=2, unpack=_bfloats, compute=F4),
    "tf32": _Element(per_register=1, unpack=_tensor_floats, compute=F4),
    "s8": _Element(per_register=4, unpack=_bytes("i1"), compute=I4),
    "u8": _Element(per_register=4, unpack=_bytes("u1"), compute=I4),
}


def _multiply(code: Code, form: Form) -> Step:
    """Decode mma.sync of shape m16n8k*."""
    kinds = [form.last() for _ in range(4)]
    c_kind, b_kind, a_kind, d_kind = kinds
    for name in ("sync", "aligned", "row", "col"):
        form.one_of(name)
    form.flag("satfinite") if "s32" in kinds else None
    shape = re.fullmatch(r"m16n8k(\d+)", form.last())
    if not shape or a_kind not in _ELEMENTS or b_kind not in _ELEMENTS or c_kind != d_kind:
        raise UnsupportedError(form.instruction.text)
    depth = int(shape[1])
    a_type, b_type = _ELEMENTS[a_kind], _ELEMENTS[b_kind]
    result = {"f32": F4, "s32": I4, "f16": F2}.get(c_kind)
    if (
        result is None
        or a_type.compute != b_type.compute
        or (result == I4) != (a_type.compute == I4)
    ):
        raise UnsupportedError(form.instruction.text)
    d, a, b, c = (items_of(operand) for operand in form.operands(4))
    registers = depth // a_type.per_register
    wanted = (registers // 2, registers // 4, 4 * result.itemsize // 4)
    if (len(a), len(b), len(c)) != wanted or len(d) != len(c):
        raise UnsupportedError(form.instruction.text)
    fetch_a, fetch_b, fetch_c = (_fetch_all(code, items) for items in (a, b, c))
    stores = [code.store(item, U4) for item in d]
    pc, lanes = form.instruction.pc, code.lanes

    def step(mask: Mask) -> None:
        check_whole_warps(lanes, pc, mask)
        left = _matrix_a(a_type.unpack(fetch_a(lanes)))
        right = _matrix_b(b_type.unpack(fetch_b(lanes)))
        accumulator = _matrix_c(fetch_c(lanes), result)
        total = (np.matmul(left, right) + accumulator).astype(result)
        for store, value in zip(stores, _registers_of(total, len(stores)), strict=True):
            store(value)
        lanes.shadow.order_warps(lanes.active(mask))

    return step


def _fetch_all(code: Code, items: tuple[Operand, ...]) -> Callable[[Lanes], Array]:
    """Return a function that gives registers as (registers, rows, warps, 8 groups, 4 threads)."""
    fetches: list[Fetch] = [code.fetch(item, U4) for item in items]

    def fetch(lanes: Lanes) -> Array:
        values = [f() for f in fetches]
        rows = max(len(value) for value in values)
        spread = [spread_to(value, (rows, lanes.threads)) for value in values]
        return np.stack(spread).reshape(len(values), rows, -1, _COLUMNS, 4)

    return fetch


def _matrix_a(x: Array) -> Array:
    """Arrange (registers, rows, warps, group, thread, element) as (rows, warps, 16, K)."""
    registers, rows, warps, group, thread, per = x.shape
    split = x.reshape(registers // 2, 2, rows, warps, group, thread, per)
    return split.transpose(2, 3, 1, 4, 0, 5, 6).reshape(rows, warps, _ROWS, -1)


def _matrix_b(x: Array) -> Array:
    """Arrange (registers, rows, warps, group, thread, element) as (rows, warps, K, 8)."""
    _, rows, warps, group, _, _ = x.shape
    return x.transpose(1, 2, 0, 4, 5, 3).reshape(rows, warps, -1, group)


def _matrix_c(x: Array, dtype: np.dtype[Any]) -> Array:
    """Arrange accumulator registers as (rows, warps, 16, 8)."""
    _, rows, warps, group, thread = x.shape
    elements = x[..., None].view(dtype)
    if dtype == F2:
        split = elements
    else:
        split = elements.reshape(2, 2, rows, warps, group, thread).transpose(0, 2, 3, 4, 5, 1)
    return split.transpose(1, 2, 0, 3, 4, 5).reshape(rows, warps, _ROWS, _COLUMNS)


def _registers_of(matrix: Array, count: int) -> list[Array]:
    """Return (rows, warps, 16, 8) results as registers, (rows, threads) each."""
    rows, warps = matrix.shape[:2]
    split = matrix.reshape(rows, warps, 2, _COLUMNS, 4, 2)
    if count == 2:
        halves = np.ascontiguousarray(split).view(U4)[..., 0]
        return [halves[:, :, r].reshape(rows, -1) for r in range(2)]
    parts = [split[:, :, r // 2, ..., r % 2] for r in range(4)]
    return [np.ascontiguousarray(part).view(U4).reshape(rows, -1) for part in parts]


DECODERS: dict[str, Callable[[Code, Form], Step]] = {"ldmatrix": _load_matrix, "mma": _multiply}
"""Opcode → decoder."""
