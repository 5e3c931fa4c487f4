"""Which values stem from a register that nothing has written, and where such a value matters.

NVRTC leaves a variable that is read before it is set as a register without a first value. Moving
such a value or computing with it does no harm as long as nothing comes of it, as where a branch
sets it and only that branch's lanes use the result. It matters once it is stored, decides an
address or a branch, or enters a matrix product. A finding stands where the variable was read
first; what lanes exchange by shuffles is not followed.

Only what may stem from registers that may be read before they are written is followed, lane by
lane; in most kernels that is nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.flow import bits
from ci.simulator.forms import BOOL
from ci.simulator.ptx import Register
from ci.simulator.sink import UNINITIALISED_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ci.simulator.code import Code
    from ci.simulator.flow import Effect
    from ci.simulator.forms import Array, Fetch, Mask, Step
    from ci.simulator.ptx import Instruction, Operand

_MATTERS = frozenset({"ld", "ldu", "st", "atom", "red", "cp", "mma", "wmma", "ldmatrix"})
_NOT_FOLLOWED = frozenset({"shfl", "vote", "match", "redux"})
_YES, _NO = np.ones((1, 1), BOOL), np.zeros((1, 1), BOOL)


class Unset:
    """Follows the registers of one kernel; one launch at a time."""

    def __init__(
        self,
        code: Code,
        instructions: Sequence[Instruction],
        effects: Sequence[Effect],
        first: int,
    ) -> None:
        """Find what has to be followed.

        Args:
            code: The kernel's slots.
            instructions: The kernel's.
            effects: What each reads and writes, guards left out.
            first: Registers, as a bit set, that may be read before they are written.
        """
        self._code = code
        self._instructions, self._effects = instructions, effects
        self._first = bits(first)
        self._followed = self._closure(first)
        self._has_value: dict[int, Array] = {}
        """Slot → lanes whose value stems from nothing unset, broadcastable."""
        self._read_at: dict[int, int] = {}
        """Slot → the instruction that read an unset register for its value."""

    def begin_slice(self) -> None:
        """Let no register have a value."""
        self._has_value = dict.fromkeys(bits(self._followed), _YES)
        self._has_value.update(dict.fromkeys(self._first, _NO))
        self._read_at.clear()

    def _closure(self, first: int) -> int:
        """Return the registers whose values may stem from the ``first`` ones."""
        found, before = first, 0
        while found != before:
            before = found
            for instruction, effect in zip(self._instructions, self._effects, strict=True):
                if effect.used & found and _passes_on(instruction):
                    found |= effect.defined
        return found

    def follow(self, pc: int, step: Step) -> Step:
        """Return the step of an instruction, before its guard, that follows what it does."""
        effect, instruction = self._effects[pc], self._instructions[pc]
        sources = bits(effect.used & self._followed)
        results = bits(effect.defined & self._followed)
        if not sources and not results:
            return step
        if not _passes_on(instruction):
            matters = instruction.opcode in _MATTERS

            def ends(mask: Mask) -> None:
                if matters:
                    self._use(pc, sources, mask)
                step(mask)
                self._give(results, _YES, mask)

            return ends
        chosen = self._choice(instruction) if instruction.opcode == "selp" else None

        def goes_on(mask: Mask) -> None:
            value = self._all(sources) if chosen is None else chosen()
            if value is not _YES:
                self._note(pc, sources, results)
            step(mask)
            self._give(results, value, mask)

        return goes_on

    def decides(self, pc: int, condition: Fetch) -> Fetch:
        """Return the condition of a branch, which an unset value must not decide."""
        sources = bits(self._effects[pc].used & self._followed)
        if not sources:
            return condition

        def decided() -> Array:
            self._use(pc, sources, self._code.lanes.running)
            return condition()

        return decided

    def _choice(self, instruction: Instruction) -> Fetch:
        """Return what tells whether selp chooses a value."""
        first, second, predicate = (self._value_of(o) for o in instruction.operands[1:4])
        holds = self._code.fetch(instruction.operands[3], BOOL)

        def chosen() -> Array:
            given = first(), second(), predicate()
            if all(each is _YES for each in given):
                return _YES
            return np.asarray(np.where(holds(), given[0], given[1]) & given[2])

        return chosen

    def _value_of(self, operand: Operand) -> Fetch:
        if isinstance(operand, Register):
            slot = self._code.slot_of(operand)
            return lambda: self._has_value.get(slot, _YES)
        return lambda: _YES

    def _all(self, slots: Sequence[int]) -> Array:
        value = _YES
        for slot in slots:
            other = self._has_value[slot]
            if other is not _YES:
                value = other if value is _YES else value & other
        return value

    def _give(self, results: Sequence[int], value: Array, mask: Mask) -> None:
        for slot in results:
            before = self._has_value[slot]
            if before is value:
                continue
            given = value if mask is None else np.where(mask, value, before)
            self._has_value[slot] = _YES if given.all() else given

    def _note(self, pc: int, sources: Sequence[int], results: Sequence[int]) -> None:
        """Remember where a value came from that is computed from unset ones."""
        read_at = next((self._read_at[slot] for slot in sources if slot in self._read_at), pc)
        moved = self._instructions[pc].opcode == "mov"
        for slot in results:
            if not moved or read_at != pc:
                self._read_at[slot] = read_at

    def _use(self, pc: int, sources: Sequence[int], mask: Mask) -> None:
        """Report lanes for which an unset value matters here."""
        lanes = self._code.lanes
        for slot in sources:
            value = self._has_value[slot]
            if value is _YES:
                continue
            bad = lanes.spread(mask) & ~value
            if not bad.any():
                continue
            read_at = self._read_at.get(slot, pc)
            where = "" if read_at == pc else f", on which {lanes.sink.line(pc)} depends,"
            story = f"variable that holds no value{where} read"
            lanes.report(UNINITIALISED_VARIABLE, read_at, bad, story)
            self._give([slot], _YES, bad)


def _passes_on(instruction: Instruction) -> bool:
    """Return whether a result holds what the sources hold, and nothing else comes of them."""
    if "param" in instruction.modifiers:
        return True
    return instruction.opcode not in _MATTERS | _NOT_FOLLOWED
