"""Barriers, and instructions that order memory or prefetch, which have no effect here.

Source: PTX ISA, "Parallel Synchronization and Communication Instructions": bar, barrier, membar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.forms import BOOL, U4, Form, UnsupportedError
from ci.simulator.ops.members import meet
from ci.simulator.ptx import Immediate

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Mask, Step
    from ci.simulator.lanes import Lanes

DIVERGENT = "divergent barrier"


def _nothing(_: Mask) -> None:
    return


def _fence(code: Code, form: Form) -> Step:
    """Decode a fence: it orders memory, of which only the watch on races needs to know."""
    lanes = code.lanes
    for_all = not {"cta", "proxy"} & set(form.instruction.modifiers)
    return lambda mask: lanes.globals.fence(lanes.spread(mask), for_all=for_all)


def _no_effect(code: Code, form: Form) -> Step:
    del code, form
    return _nothing


def _barrier(code: Code, form: Form) -> Step:
    """Decode the barrier of a whole block, with or without a reduction over its threads."""
    pc, lanes = form.instruction.pc, code.lanes
    if form.flag("warp"):
        form.one_of("sync")
        (members,) = form.operands(1)
        fetch = code.fetch(members, U4)
        return lambda mask: meet(lanes, pc, mask, fetch(), at_once=False)
    form.flag("cta")
    form.flag("aligned")
    if form.flag("red"):
        return _reducing_barrier(code, form)
    form.one_of("sync")
    (number,) = form.operands(1)
    _require_zero(form, number)
    return lambda mask: arrive(lanes, pc, mask)


def _require_zero(form: Form, number: object) -> None:
    if not isinstance(number, Immediate) or number.bits:
        raise UnsupportedError(form.instruction.text)


def _reducing_barrier(code: Code, form: Form) -> Step:
    mode = form.one_of("popc", "and", "or")
    form.one_of("u32" if mode == "popc" else "pred")
    destination, number, predicate = form.operands(3)
    _require_zero(form, number)
    pc, lanes = form.instruction.pc, code.lanes
    fetch = code.fetch(predicate, BOOL)
    store = code.store(destination, U4 if mode == "popc" else BOOL)

    def step(mask: Mask) -> None:
        arrive(lanes, pc, mask)
        active = lanes.spread(mask)
        value = fetch()
        count = (active & value).sum(axis=1, keepdims=True, dtype=U4)
        if mode == "popc":
            store(count)
        elif mode == "or":
            store(count > 0)
        else:
            store(np.asarray(~np.any(active & ~value, axis=1, keepdims=True)))

    return step


def arrive(lanes: Lanes, pc: int, mask: Mask) -> None:
    """Let the active lanes pass a block-wide barrier; report blocks of which a part is missing.

    A barrier waits for the threads that have not exited, so those that will exit without another
    barrier, warp instruction or access to shared memory are not missing.

    Source: CUDA C++ Programming Guide, "Compute Capability 7.x", "Independent Thread Scheduling".
    """
    if not lanes.elsewhere and mask is lanes.running:
        # Whoever is not here has exited.
        lanes.barrier(None)
        return
    here = lanes.spread(mask)
    live = lanes.live(lanes.ends)
    arrived: Array = np.asarray(np.any(here, axis=1, keepdims=True))
    missing = live & ~here & arrived
    if missing.any():
        part = here & missing.any(axis=1, keepdims=True)
        block = int(part.any(axis=1).argmax())
        waiting = int(here[block].sum()), int(live[block].sum())
        text = f"barrier that {waiting[0]} of {waiting[1]} live threads reach, passed"
        lanes.report(DIVERGENT, pc, part, text)
    lanes.barrier(arrived)


_WITHOUT_EFFECT = (
    "prefetch", "prefetchu", "nanosleep", "discard", "applypriority",
    "griddepcontrol",
)  # fmt: skip

DECODERS: dict[str, Callable[[Code, Form], Step]] = {
    "bar": _barrier,
    "barrier": _barrier,
    "fence": _fence,
    "membar": _fence,
    **dict.fromkeys(_WITHOUT_EFFECT, _no_effect),
}
"""Opcode → decoder."""
