"""Which waiting lanes run next: the lowest first, unless they only wait for the others.

Lanes that spin on a lock or a flag stand lower than those that will release it. Once a loop has
gone round often without changing a register that it still needs, its lanes are passed over until
others have written memory, as independent scheduling of threads would let those go on.

Where nobody is left who could write memory, what waits waits for ever. That is certain once a turn
has changed neither registers, lanes, memory nor clocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ci.simulator.flow import bits

if TYPE_CHECKING:
    from ci.simulator.calls import Path
    from ci.simulator.flow import Run
    from ci.simulator.forms import Array, Mask
    from ci.simulator.program import Program

_PATIENCE = 32
"""Turns of a loop between two looks at its registers."""
_WRITES = frozenset({"st", "atom", "red", "cp", "wmma"})
_BARRIERS = frozenset({"bar", "barrier"})


class _State(NamedTuple):
    """What a turn of a loop depends on."""

    registers: dict[int, Array]
    mask: Mask
    writes: int
    """Straight runs that may have written memory so far."""
    ticks: int


class Waiting:
    """Watches the loops of a slice."""

    def __init__(self, program: Program) -> None:
        """Prepare for a kernel."""
        self._program = program
        instructions = program.kernel.instructions
        opcodes = {
            start: {i.opcode for i in instructions[start : run.end]}
            for start, run in program.runs.items()
        }
        self._writing = frozenset(start for start, each in opcodes.items() if each & _WRITES)
        self._stopping = frozenset(start for start, each in opcodes.items() if each & _BARRIERS)
        self._helpless = frozenset(
            start for start in self._stopping if _stops_first(program, program.runs[start])
        )
        """Runs of which a barrier comes before anything that others could wait for."""
        self.begin_slice()

    def begin_slice(self) -> None:
        """Forget what was seen."""
        self._turns: dict[Path, int] = {}
        self._seen: dict[Path, _State] = {}
        self._passed_over: dict[Path, bool] = {}
        """Waiting lanes → whether it is certain that only others can end their waiting."""
        self._writes = 0

    def turn(self, key: Path, mask: Mask) -> bool:
        """Take in that lanes go back to the start of a loop; return whether in vain for certain.

        Args:
            key: Their calls and the start of the loop.
            mask: The lanes.
        """
        turns = self._turns.get(key, 0) + 1
        self._turns[key] = turns
        if turns % _PATIENCE == 0:
            self._seen[key] = self._state(key, mask)
        elif turns % _PATIENCE == 1 and key in self._seen:
            before, now = self._seen.pop(key), self._state(key, mask)
            pairs = zip(before.registers.values(), now.registers.values(), strict=True)
            if all(_same(*pair, mask) for pair in pairs):
                rest = (before.writes, before.ticks) == (now.writes, now.ticks)
                self._passed_over[key] = rest and _equal(before.mask, mask)
        return self._passed_over.get(key, False)

    def _state(self, key: Path, mask: Mask) -> _State:
        slots = self._program.code.slots
        registers = {slot: slots[slot] for slot in bits(self._program.runs[key[-1]].needed)}
        return _State(registers, mask, self._writes, self._program.lanes.ticks)

    def executed(self, start: int) -> None:
        """Take in that a straight run was executed: what it wrote may end the others' waiting."""
        if start in self._writing:
            self._writes += 1
            self._passed_over.clear()

    def choose(self, waiting: dict[Path, Mask]) -> Path | None:
        """Return who runs next; None if all wait in vain for certain.

        Lanes that would come to a barrier are not sent ahead of those that spin: alone, they
        would seem to diverge there.
        """
        if self._passed_over:
            ready = [
                key
                for key in waiting
                if key not in self._passed_over and key[-1] not in self._stopping
            ]
            if ready:
                return min(ready)
            if all(self._passed_over.get(k) or k[-1] in self._helpless for k in waiting):
                return None
            self._passed_over.clear()
        return min(waiting)


def _stops_first(program: Program, run: Run) -> bool:
    """Return whether a run comes to a barrier before it writes memory."""
    for instruction in program.kernel.instructions[run.start : run.end]:
        if instruction.opcode in _WRITES | _BARRIERS:
            return instruction.opcode in _BARRIERS
    return False


def _equal(before: Mask, now: Mask) -> bool:
    if before is None or now is None:
        return before is now
    return np.array_equal(before, now)


def _same(before: Array, now: Array, mask: Mask) -> bool:
    if before is now:
        return True
    bytes_differ = _bytes(before) != _bytes(now)
    differ = bytes_differ.any(axis=-1)
    return not (differ if mask is None else differ & mask).any()


def _bytes(value: Array) -> Array:
    """Return (b, t) elements as (b, t, bytes), so that a NaN equals itself."""
    return np.ascontiguousarray(value).view(np.uint8).reshape(*value.shape, value.itemsize)
