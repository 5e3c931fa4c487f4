"""Barriers that a part of a block meets at: named ones, those with a thread count, and arrivals.

A kernel that has one waits at all its barriers: lanes stand still until as many warps have come as
the barrier expects, wherever in the code they come from. Other kernels need no waiting, since the
lowest program counter first brings all threads to a barrier together (``ops/sync.py``).

What a part of a block meets at orders all that the block did: a race with a thread that was not
there is missed.

Source: PTX ISA, "Parallel Synchronization and Communication Instructions": bar, barrier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.forms import BOOL, U4, Form, UnsupportedError, not_emulated
from ci.simulator.ops.sync import DIVERGENT
from ci.simulator.ptx import Immediate, Instruction, Kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.calls import Path
    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Fetch, Mask
    from ci.simulator.lanes import Lanes

_WARP = 32
_BARRIERS = 16


def is_barrier(opcode: str, modifiers: tuple[str, ...]) -> bool:
    """Return whether an instruction is a barrier of threads of a block."""
    return opcode in ("bar", "barrier") and not {"warp", "cluster"} & set(modifiers)


@lru_cache(maxsize=16)
def waited_at(kernel: Kernel) -> frozenset[int]:
    """Return the barriers at which lanes have to wait: all of a kernel's, or none."""
    barriers = [i for i in kernel.instructions if is_barrier(i.opcode, i.modifiers)]
    partial = any(_is_partial(instruction) for instruction in barriers)
    return frozenset(i.pc for i in barriers) if partial else frozenset()


def _is_partial(instruction: Instruction) -> bool:
    reduces = "red" in instruction.modifiers
    number, *more = instruction.operands[reduces:] or (None,)
    whole = isinstance(number, Immediate) and number.bits == 0
    return "arrive" in instruction.modifiers or not whole or len(more) > reduces


@dataclass(frozen=True, kw_only=True, slots=True)
class Meeting:
    """A barrier instruction, decoded."""

    instruction: Instruction
    number: Fetch
    count: Fetch | None
    """Threads that meet; None: all of the block."""
    stays: bool
    """Whether those that come wait for the others."""
    mode: str
    """``popc``, ``and`` or ``or``; empty if nothing is reduced."""
    predicate: Fetch | None
    store: Callable[[Array], None]
    slot: int
    """Of the result; -1 if there is none."""


def decode(code: Code, instruction: Instruction) -> Meeting | None:
    """Decode a barrier; None if it is not emulated."""
    form = Form(instruction)
    try:
        form.flag("cta")
        form.flag("aligned")
        action = form.one_of("sync", "arrive", "red")
        mode = form.one_of("popc", "and", "or") if action == "red" else ""
        if mode:
            form.one_of("u32" if mode == "popc" else "pred")
        operands = list(
            form.operands(*((3, 4) if mode else (2,) if action == "arrive" else (1, 2)))
        )
        before = code.defined
        store = code.store(operands.pop(0), U4 if mode == "popc" else BOOL) if mode else _ignore
        written = code.defined & ~before
        predicate = code.fetch(operands.pop(), BOOL) if mode else None
        number, *count = (code.fetch(operand, U4) for operand in operands)
    except UnsupportedError:
        return None
    return Meeting(
        instruction=instruction,
        number=number,
        count=count[0] if count else None,
        stays=action != "arrive",
        mode=mode,
        predicate=predicate,
        store=store,
        slot=written.bit_length() - 1,
    )


def _ignore(_: Array) -> None:
    return


@dataclass(kw_only=True, slots=True)
class _Arrival:
    """Lanes that have come to a barrier."""

    meeting: Meeting
    key: Path
    """Where they go on."""
    lanes: Array
    """(blocks, threads)."""
    predicate: Array
    """(blocks, threads); meaningless where nothing is reduced."""


class Barriers:
    """Who stands at which barrier of a slice."""

    def __init__(self, lanes: Lanes, slots: list[Array]) -> None:
        """Begin with nobody waiting."""
        self._lanes = lanes
        self._slots = slots
        self.begin_slice()

    def begin_slice(self) -> None:
        """Forget who waited."""
        self._arrivals: dict[int, list[_Arrival]] = {}
        self._expected: dict[int, Array] = {}

    def waiting(self) -> list[tuple[Path, Array]]:
        """Return where lanes that stand at barriers go on, and which."""
        return [
            (a.key, a.lanes) for each in self._arrivals.values() for a in each if a.meeting.stays
        ]

    def arrive(
        self, meeting: Meeting | None, leave: Instruction, key: Path, mask: Mask
    ) -> list[tuple[Path, Array]]:
        """Let lanes come to a barrier and return those that go on, with where they do.

        Raises:
            NotEmulatedError: The barrier is not emulated.
        """
        if meeting is None:
            raise not_emulated(leave)
        lanes = self._lanes
        here = lanes.spread(mask)
        numbers = np.broadcast_to(meeting.number(), here.shape)
        count = None if meeting.count is None else np.broadcast_to(meeting.count(), here.shape)
        predicate = here if meeting.predicate is None else meeting.predicate()
        going: list[tuple[Path, Array]] = [] if meeting.stays else [(key, here)]
        for number in np.unique(numbers[here]).tolist():
            if number >= _BARRIERS:
                raise not_emulated(leave)
            part = here & (numbers == number)
            arrival = _Arrival(
                meeting=meeting,
                key=key,
                lanes=part,
                predicate=np.broadcast_to(predicate, here.shape).copy(),
            )
            self._arrivals.setdefault(number, []).append(arrival)
            self._expect(number, part, count)
            going += self._completed(number)
        return going

    def _expect(self, number: int, part: Array, count: Array | None) -> None:
        """Take in how many threads of each block a barrier waits for; 0: all that are alive."""
        expected = self._expected.setdefault(number, np.zeros(len(part), np.int64))
        arrived = part.any(axis=1)
        first = part.argmax(axis=1)
        given = 0 if count is None else count[np.arange(len(part)), first].astype(np.int64)
        expected[arrived] = (np.zeros(len(part), np.int64) + given)[arrived]

    def _alive(self) -> Array:
        """Return the lanes that have not exited, (blocks, threads)."""
        alive = self._lanes.live(self._lanes.ends)
        for _, lanes in self.waiting():
            alive |= lanes
        return alive

    def _completed(self, number: int) -> list[tuple[Path, Array]]:
        """Open a barrier for the blocks of which enough warps have come."""
        arrivals = self._arrivals[number]
        came = sum(_threads(arrival.lanes) for arrival in arrivals)
        expected = self._expected[number]
        wanted = np.where(expected == 0, _threads(self._alive()), expected)
        return self._open(number, (came > 0) & (came >= wanted))

    def _open(self, number: int, blocks: Array) -> list[tuple[Path, Array]]:
        if not blocks.any():
            return []
        arrivals, opened = self._arrivals[number], blocks[:, None]
        self._reduce([a for a in arrivals if a.meeting.mode], opened)
        going = [(a.key, a.lanes & opened) for a in arrivals if a.meeting.stays]
        for arrival in arrivals:
            arrival.lanes = arrival.lanes & ~opened
        self._arrivals[number] = [a for a in arrivals if a.lanes.any()]
        self._lanes.barrier(opened)
        return [(key, lanes) for key, lanes in going if lanes.any()]

    def _reduce(self, arrivals: list[_Arrival], opened: Array) -> None:
        """Give the lanes of each block what the predicates of all that came are together."""
        true = sum(((a.lanes & a.predicate).sum(axis=1, keepdims=True) for a in arrivals), 0)
        false = sum(((a.lanes & ~a.predicate).sum(axis=1, keepdims=True) for a in arrivals), 0)
        for arrival in arrivals:
            count = np.asarray(true, U4)
            results = {"popc": count, "or": count > 0, "and": np.asarray(false) == 0}
            if arrival.meeting.slot < 0:
                continue
            before = self._slots[arrival.meeting.slot]
            arrival.meeting.store(results[arrival.meeting.mode])
            after = self._slots[arrival.meeting.slot]
            self._slots[arrival.meeting.slot] = np.where(arrival.lanes & opened, after, before)

    def give_up(self) -> Iterator[tuple[Path, Array]]:
        """Let go those whose barrier is complete once no lane can run; report who waits in vain."""
        for number in list(self._arrivals):
            yield from self._completed(number)
        if not any(arrival.meeting.stays for each in self._arrivals.values() for arrival in each):
            return
        for number, arrivals in list(self._arrivals.items()):
            for arrival in arrivals:
                if arrival.meeting.stays:
                    self._report(number, arrival)
            yield from self._open(number, np.ones(self._lanes.blocks, np.bool_))

    def _report(self, number: int, arrival: _Arrival) -> None:
        block = int(arrival.lanes.any(axis=1).argmax())
        came = sum(int(_threads(a.lanes)[block]) for a in self._arrivals[number])
        expected = int(self._expected[number][block]) or int(_threads(self._alive())[block])
        text = f"barrier {number} that {came} of {expected} threads reach, passed"
        self._lanes.report(DIVERGENT, arrival.meeting.instruction.pc, arrival.lanes, text)


def _threads(lanes: Array) -> Array:
    """Return how many threads of each block a barrier counts: whole warps."""
    by_warp = lanes.reshape(len(lanes), -1, _WARP)
    return np.asarray(by_warp.any(axis=-1).sum(axis=1) * _WARP)
