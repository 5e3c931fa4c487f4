"""Asynchronous copies from global to shared memory.

The source is read when the copy is issued; the destination is written only when the thread waits
for the copy's group. What is read too early is therefore still what it was before.

Source: PTX ISA, "Data Movement and Conversion Instructions": cp.async.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.forms import U4, Form, UnsupportedError, not_emulated
from ci.simulator.ops.access import HINTS, address_of
from ci.simulator.ptx import Immediate

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Mask, Step
    from ci.simulator.lanes import Lanes

_WORD_BYTES = U4.itemsize
_SIZES = (4, 8, 16)


def _copy(code: Code, form: Form) -> Step:
    form.one_of("async")
    form.drop(*HINTS)
    kind = form.flag("ca", "cg", "commit_group", "wait_group", "wait_all")
    if kind in ("ca", "cg"):
        return _issue(code, form)
    pending = code.lanes.pending
    if kind == "commit_group":
        form.operands(0)
        return pending.commit
    if kind == "wait_all":
        form.operands(0)
        return pending.wait_all
    (newest,) = form.operands(1)
    if isinstance(newest, Immediate):
        return partial(pending.wait, newest=newest.bits)
    raise UnsupportedError(form.instruction.text)


def _issue(code: Code, form: Form) -> Step:
    """Decode one copy of 4, 8 or 16 bytes a lane, of which the source may give fewer."""
    form.one_of("shared")
    form.one_of("global")
    target, source, size, *given = form.operands(3, 4)
    if not isinstance(size, Immediate) or size.bits not in _SIZES:
        raise UnsupportedError(form.instruction.text)
    width = size.bits
    to, origin = address_of(code, target), address_of(code, source)
    given_bytes = code.fetch(given[0], U4) if given else None
    pc, lanes = form.instruction.pc, code.lanes

    def step(mask: Mask) -> None:
        there = lanes.shared.check(pc, to(), mask, width, "write")
        lanes.shadow.start_copy(pc, there, mask, width)
        if given_bytes is None:
            words = _read(lanes, pc, origin(), mask, width)
        else:
            sizes = np.minimum(given_bytes(), width)
            if (sizes % _WORD_BYTES).any():
                raise not_emulated(form.instruction)
            words = _read_parts(partial(_read, lanes, pc, origin()), sizes, mask, width)
        lanes.pending.issue(pc, there, mask, words)

    return step


def _read(lanes: Lanes, pc: int, address: Array, mask: Mask, width_bytes: int) -> list[Array]:
    count = width_bytes // _WORD_BYTES
    if lanes.counters is not None:
        lanes.counters.global_access(pc, False, address, mask, width_bytes, count)
    return lanes.memory.load(pc, address, mask, [U4] * count)


def _read_parts(
    read: Callable[[Mask, int], list[Array]], sizes: Array, mask: Mask, width_bytes: int
) -> list[Array]:
    """Read as many bytes as ``sizes`` says for each lane; the others are zeros."""
    words = [np.zeros((1, 1), U4)] * (width_bytes // _WORD_BYTES)
    for size in np.unique(sizes).tolist():
        here = sizes == size if mask is None else mask & (sizes == size)
        if not size or not here.any():
            continue
        for element, value in enumerate(read(here, size)):
            words[element] = np.where(here, value, words[element])
    return words


DECODERS: dict[str, Callable[[Code, Form], Step]] = {"cp": _copy}
"""Opcode → decoder."""
