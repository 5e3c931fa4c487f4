"""Instructions in which the lanes of a warp exchange values.

Source: PTX ISA, "Data Movement and Conversion Instructions": shfl; "Parallel Synchronization and
Communication Instructions": vote, match, redux, activemask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.forms import BOOL, U4, Form, UnsupportedError, dtype_of
from ci.simulator.lanes import WARP
from ci.simulator.memory import spread_to
from ci.simulator.ops.members import EVERYONE, meet, names
from ci.simulator.ptx import Pair, Sink

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Mask, Step
    from ci.simulator.lanes import Lanes

INACTIVE_LANE = "shuffle from inactive lane"


def source_lane(mode: str, lane: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Return the lane each lane reads from, and whether that lies in its segment.

    Args:
        mode: ``up``, ``down``, ``bfly`` or ``idx``.
        lane: Lane numbers, 0 to 31.
        b: Distance or source lane.
        c: Clamp in bits 0 to 4, segment mask in bits 8 to 12.
    """
    distance, clamp, segment = b & 31, c & 31, c >> 8 & 31
    last = (lane & segment) | (clamp & ~segment)
    if mode == "up":
        source = lane - distance
        inside = source >= last
    elif mode == "down":
        source = lane + distance
        inside = source <= last
    else:
        first = lane & segment
        source = lane ^ distance if mode == "bfly" else first | (distance & ~segment)
        inside = source <= last
    return np.where(inside, source, lane), inside


def _shuffle(code: Code, form: Form) -> Step:
    form.one_of("sync")
    mode = form.one_of("up", "down", "bfly", "idx")
    form.one_of("b32")
    destination, value, b, c, members = form.operands(5)
    first = destination.first if isinstance(destination, Pair) else destination
    second = destination.second if isinstance(destination, Pair) else Sink()
    store, store_inside = code.store(first, U4), code.store(second, BOOL)
    fetch, fetch_b, fetch_c, named = (code.fetch(o, U4) for o in (value, b, c, members))
    pc, lanes = form.instruction.pc, code.lanes

    def step(mask: Mask) -> None:
        thread = np.arange(lanes.threads, dtype=np.int64)[None, :]
        lane = thread % WARP
        source, inside = source_lane(
            mode, lane, fetch_b().astype(np.int64), fetch_c().astype(np.int64)
        )
        # The source as a column of the value, for each lane.
        column = source + (thread - lane)
        found = _check_source(lanes, pc, mask, column, named())
        meet(lanes, pc, mask, named(), at_once=not found)
        store_inside(inside)
        word = fetch()
        if word.shape[1] == 1:
            store(word)
        elif len(column) == 1:
            store(word.take(column[0], axis=1))
        else:
            whole = spread_to(word, (lanes.blocks, lanes.threads))
            store(np.take_along_axis(whole, column, axis=1))

    return step


def _check_source(lanes: Lanes, pc: int, mask: Mask, column: Array, members: Array) -> bool:
    """Report active lanes that read from one that is inactive, or that they do not name."""
    everywhere = members.size == 1 and members.item(0) == EVERYONE
    if (mask is None or mask.shape[1] == 1) and everywhere:
        return False
    active = lanes.spread(mask)
    if mask is not None and len(mask) == len(column) == len(members) == 1:
        active = active[:1]
    seen = np.take_along_axis(active, spread_to(column, active.shape), axis=1)
    bad = active & ~(seen & names(members, column % WARP))
    if bad.any():
        row, thread = np.argwhere(bad)[0]
        source = int(spread_to(column, bad.shape)[row, thread]) % WARP
        lanes.report(INACTIVE_LANE, pc, bad, f"value of inactive lane {source} read")
        return True
    return False


def by_warp(lanes: Lanes, value: Array) -> Array:
    """Return the values of each warp's lanes, (blocks or 1, warps, 1, 32)."""
    return spread_to(value, (len(value), lanes.threads)).reshape(len(value), -1, 1, WARP)


def peers_of(lanes: Lanes, mask: Mask, members: Array) -> Array:
    """Return which active lanes each lane names, (blocks or 1, warps, 1 or 32, 32).

    Args:
        lanes: The slice.
        mask: Active lanes.
        members: (b, t) member mask that each lane gives; one mask is one row of lanes a warp.
    """
    active = lanes.everyone if mask is None else mask
    if active is None:
        active = np.ones((1, 1), np.bool_)
    active = by_warp(lanes, active)
    if members.size == 1:
        return active & names(members, np.arange(WARP))
    given = spread_to(members, (len(members), lanes.threads)).reshape(len(members), -1, WARP, 1)
    return active & names(given, np.arange(WARP))


def to_lanes(value: Array) -> Array:
    """Return a value for each row of lanes, (rows, warps, 1 or 32), as one per lane."""
    return np.repeat(value.reshape(len(value), -1), WARP // value.shape[-1], axis=1)


def ballot(predicate: Array) -> Array:
    """Return predicates of 32 lanes, (..., 32), as the bits of one word."""
    packed = np.packbits(predicate, axis=-1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u4")[..., 0]


def _vote(code: Code, form: Form) -> Step:
    form.one_of("sync")
    mode = form.one_of("ballot", "all", "any", "uni")
    form.one_of("b32" if mode == "ballot" else "pred")
    destination, predicate, members = form.operands(3)
    fetch, named = code.fetch(predicate, BOOL), code.fetch(members, U4)
    store = code.store(destination, U4 if mode == "ballot" else BOOL)
    pc, lanes = form.instruction.pc, code.lanes

    def step(mask: Mask) -> None:
        meet(lanes, pc, mask, named())
        value, peers = by_warp(lanes, fetch()), peers_of(lanes, mask, named())
        if mode == "ballot":
            store(to_lanes(ballot(value & peers)))
            return
        any_true = np.any(value & peers, axis=-1)
        any_false = np.any(~value & peers, axis=-1)
        answer = {"any": any_true, "all": ~any_false, "uni": ~(any_true & any_false)}[mode]
        store(to_lanes(np.asarray(answer)))

    return step


def _active_mask(code: Code, form: Form) -> Step:
    form.one_of("b32")
    (destination,) = form.operands(1)
    store, lanes = code.store(destination, U4), code.lanes

    def step(mask: Mask) -> None:
        store(to_lanes(ballot(peers_of(lanes, mask, np.full((1, 1), EVERYONE, U4)))))

    return step


_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _reduce(code: Code, form: Form) -> Step:
    """Decode redux: a reduction over the lanes that each lane names."""
    dtype = dtype_of(form.last())
    form.one_of("sync")
    name = form.one_of(*_REDUCTIONS)
    destination, source, members = form.operands(3)
    if dtype.kind not in "iu":
        raise UnsupportedError(form.instruction.text)
    function = _REDUCTIONS[name]
    limits = np.iinfo(dtype)
    neutral = {"min": limits.max, "max": limits.min, "and": -1 if dtype.kind == "i" else limits.max}
    idle = dtype.type(neutral.get(name, 0))
    store, fetch = code.store(destination, dtype), code.fetch(source, dtype)
    named, pc, lanes = code.fetch(members, U4), form.instruction.pc, code.lanes

    def step(mask: Mask) -> None:
        meet(lanes, pc, mask, named())
        value, peers = by_warp(lanes, fetch()), peers_of(lanes, mask, named())
        total = function.reduce(np.where(peers, value, idle), axis=-1, dtype=dtype)
        store(to_lanes(total))

    return step


def _match(code: Code, form: Form) -> Step:
    """Decode match: which of the named lanes hold the same value."""
    dtype = dtype_of(form.last())
    form.one_of("sync")
    mode = form.one_of("any", "all")
    destination, source, members = form.operands(3)
    first = destination.first if isinstance(destination, Pair) else destination
    second = destination.second if isinstance(destination, Pair) else Sink()
    store, store_same = code.store(first, U4), code.store(second, BOOL)
    fetch, named = code.fetch(source, dtype), code.fetch(members, U4)
    pc, lanes = form.instruction.pc, code.lanes

    def step(mask: Mask) -> None:
        meet(lanes, pc, mask, named())
        value, peers = by_warp(lanes, fetch()), peers_of(lanes, mask, named())
        equal = to_lanes(ballot((value.swapaxes(-1, -2) == value) & peers))
        if mode == "any":
            store(equal)
            return
        everyone = to_lanes(ballot(peers))
        same = equal == everyone
        store(np.where(same, everyone, U4.type(0)))
        store_same(same)

    return step


def _elect(code: Code, form: Form) -> Step:
    """Decode elect: the lowest of the named lanes leads."""
    form.one_of("sync")
    destination, members = form.operands(2)
    first = destination.first if isinstance(destination, Pair) else destination
    second = destination.second if isinstance(destination, Pair) else Sink()
    store, store_leads = code.store(first, U4), code.store(second, BOOL)
    named, pc, lanes = code.fetch(members, U4), form.instruction.pc, code.lanes

    def step(mask: Mask) -> None:
        meet(lanes, pc, mask, named())
        leader = to_lanes(np.argmax(peers_of(lanes, mask, named()), axis=-1).astype(U4))
        store(leader)
        store_leads(np.arange(lanes.threads, dtype=U4)[None, :] % U4.type(WARP) == leader)

    return step


DECODERS: dict[str, Callable[[Code, Form], Step]] = {
    "shfl": _shuffle,
    "vote": _vote,
    "activemask": _active_mask,
    "redux": _reduce,
    "match": _match,
    "elect": _elect,
}
"""Opcode → decoder."""
