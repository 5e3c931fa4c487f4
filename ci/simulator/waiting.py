"""Which waiting lanes run next: the lowest first, unless they only wait for the others.

Lanes that spin on a lock or a flag stand lower than those that will release it. Once a loop has
gone round often without changing a register that it still needs, its lanes are passed over until
others have written memory, as independent scheduling of threads would let those go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.flow import bits

if TYPE_CHECKING:
    from ci.simulator.calls import Path
    from ci.simulator.forms import Array, Mask
    from ci.simulator.program import Program

_PATIENCE = 32
"""Turns of a loop between two looks at its registers."""
_WRITES = frozenset({"st", "atom", "red", "cp", "wmma"})
_BARRIERS = frozenset({"bar", "barrier"})


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
        self.begin_slice()

    def begin_slice(self) -> None:
        """Forget what was seen."""
        self._turns: dict[Path, int] = {}
        self._seen: dict[Path, dict[int, Array]] = {}
        self._passed_over: set[Path] = set()

    def turn(self, key: Path, mask: Mask) -> None:
        """Take in that lanes go back to the start of a loop while others wait.

        Args:
            key: Their calls and the start of the loop.
            mask: The lanes.
        """
        turns = self._turns.get(key, 0) + 1
        self._turns[key] = turns
        if turns % _PATIENCE == 0:
            needed = self._program.runs[key[-1]].needed
            self._seen[key] = {slot: self._program.code.slots[slot] for slot in bits(needed)}
        elif turns % _PATIENCE == 1 and key in self._seen:
            slots = self._program.code.slots
            seen = self._seen.pop(key)
            if all(_same(before, slots[slot], mask) for slot, before in seen.items()):
                self._passed_over.add(key)

    def executed(self, start: int) -> None:
        """Take in that a straight run was executed: what it wrote may end the others' waiting."""
        if self._passed_over and start in self._writing:
            self._passed_over.clear()

    def choose(self, waiting: dict[Path, Mask]) -> Path:
        """Return who runs next.

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
            self._passed_over.clear()
        return min(waiting)


def _same(before: Array, now: Array, mask: Mask) -> bool:
    if before is now:
        return True
    bytes_differ = _bytes(before) != _bytes(now)
    differ = bytes_differ.any(axis=-1)
    return not (differ if mask is None else differ & mask).any()


def _bytes(value: Array) -> Array:
    """Return (b, t) elements as (b, t, bytes), so that a NaN equals itself."""
    return np.ascontiguousarray(value).view(np.uint8).reshape(*value.shape, value.itemsize)
