"""Atomic read-modify-write. Lanes that meet at one address act in lane order.

Source: PTX ISA, "Parallel Synchronization and Communication Instructions": atom, red.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import Form, UnsupportedError, dtype_of, not_emulated
from ci.simulator.memory import spread_to
from ci.simulator.ops.access import HINTS, ORDERING, RELEASES, SCOPES, Windows, address_of
from ci.simulator.ops.rounding import lift, odd_sum
from ci.simulator.ptx import Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Mask, Step
    from ci.simulator.lanes import Lanes

    Cells = Callable[[str, Array, Mask], list[tuple[Array, Array, Mask]]]

DType = np.dtype[Any]


def _exchange(_: Array, new: Array) -> Array:
    return new


def _compare_and_swap(old: Array, expected: Array, new: Array) -> Array:
    return np.where(old == expected, new, old)


def _increment(old: Array, limit: Array) -> Array:
    one = old.dtype.type(1)
    return np.asarray(np.where(old >= limit, old.dtype.type(0), old + one))


def _decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


_CHANGES: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": _exchange,
    "cas": _compare_and_swap,
    "inc": _increment,
    "dec": _decrement,
}


_WORDS = ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
_HALVES = ("f16", "bf16", "f16x2", "bf16x2")


def _change(form: Form, name: str, kind: str) -> Callable[..., Array]:
    """Return what an operation makes of the old value and its operands.

    Raises:
        UnsupportedError: There is no such operation on that type.
    """
    if kind in _HALVES and name == "add":
        return lift(kind, odd_sum if kind.startswith("bf16") else np.add)
    floats = kind in ("f32", "f64")
    if (kind in _WORDS and (not floats or name in ("add", "exch"))) or (name, kind) == (
        "cas",
        "b16",
    ):
        return _CHANGES[name]
    raise UnsupportedError(form.instruction.text)


def update(
    words: Array, index: Array, change: Callable[..., Array], operands: Sequence[Array]
) -> Array:
    """Change words one lane after the other and return what each lane found.

    Args:
        words: (n,) memory, changed in place.
        index: (lanes,) which word each lane changes, in lane order.
        change: Function of old value and operands.
        operands: (lanes,) each.
    """
    old = np.empty(index.shape, words.dtype)
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[starts, len(ordered)])
    if isinstance(change, np.ufunc) and len(starts) < int(sizes.max()):
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            lanes = order[start : start + size]
            word = ordered[start]
            steps = change.accumulate(np.r_[words[word], operands[0][lanes]])
            old[lanes], words[word] = steps[:-1], steps[-1]
        return old
    for turn in range(int(sizes.max())):
        # One lane of each word that still has lanes waiting: these do not meet.
        lanes = order[starts[sizes > turn] + turn]
        old[lanes] = words[index[lanes]]
        words[index[lanes]] = change(old[lanes], *[operand[lanes] for operand in operands])
    return old


def _cells(lanes: Lanes, pc: int, dtype: DType, *, reads: bool, releases: bool) -> Cells:
    """Return a function that tells who watches, and gives (words, index, lanes) of the memory."""
    width = dtype.itemsize

    def in_global(where: Array, mask: Mask) -> list[tuple[Array, Array, Mask]]:
        located = lanes.memory.locate(pc, where, mask, width, "write")
        for each in located:
            if reads:
                lanes.memory.check_written(pc, each, width)
            each.region.note_written(each.offset, each.mask, width)
            if each.region.watched:
                active = lanes.spread(each.mask)
                if releases:
                    lanes.globals.fence(active, for_all=True)
                lanes.globals.atomic(pc, each.region, each.offset, active, width)
        return [(p.region.words(dtype), p.offset // width, p.mask) for p in located]

    def cells(reached: str, where: Array, mask: Mask) -> list[tuple[Array, Array, Mask]]:
        if reached == "global":
            return in_global(where, mask)
        checked = lanes.shared.check(pc, where, mask, width, "write")
        lanes.pending.read(pc, checked, mask, width, "updated")
        lanes.shadow.atomic(pc, checked, mask, width, reads=reads)
        return [(*lanes.shared.cells(checked, dtype), mask)]

    return cells


def _atomic(code: Code, form: Form) -> Step:
    pc, lanes = form.instruction.pc, code.lanes
    returns = form.instruction.opcode == "atom"
    kind = form.last()
    form.drop(*HINTS)
    releases = form.flag(*ORDERING) in RELEASES
    form.flag(*SCOPES)
    form.flag("noftz")
    space = form.flag("global", "shared")
    name = form.one_of(*_CHANGES)
    dtype, change = dtype_of(kind), _change(form, name, kind)
    count = 2 if name == "cas" else 1
    operands = form.operands(count + 1 + returns)
    destination = operands[0] if returns else Sink()
    target, *sources = operands[returns:]
    store = code.store(destination, dtype)
    fetches = [code.fetch(source, dtype) for source in sources]
    address = address_of(code, target)
    windows = Windows(lanes)
    cells = _cells(lanes, pc, dtype, reads=name != "exch", releases=releases)

    def step(mask: Mask) -> None:
        where = address()
        values = [fetch() for fetch in fetches]
        result = np.zeros((lanes.blocks, lanes.threads), dtype)
        parts = [(space, where, mask)] if space else windows.parts(where, mask)
        for reached, local, there in parts:
            if reached == "local":
                raise not_emulated(form.instruction)
            if lanes.counters is not None:
                lanes.counters.atomic_access(pc, reached, local, there, dtype.itemsize)
            for words, index, keep in cells(reached, local, there):
                chosen = lanes.spread(keep)
                at, *given = (spread_to(v, chosen.shape)[chosen] for v in (index, *values))
                if isinstance(change, np.ufunc) and pc in code.unread:
                    change.at(words, at, given[0])
                else:
                    result[chosen] = update(words, at, change, given)
        store(result)

    return step


DECODERS: dict[str, Callable[[Code, Form], Step]] = {"atom": _atomic, "red": _atomic}
"""Opcode → decoder."""
