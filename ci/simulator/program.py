"""A kernel ready to be executed: every instruction decoded once, in straight runs."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.arrays import accessed_arrays
from ci.simulator.barriers import Meeting, decode
from ci.simulator.calls import Calls
from ci.simulator.code import Code
from ci.simulator.flow import Effect, Run, bits, ends_of, find_needed, leaves, runs_of
from ci.simulator.forms import BOOL, U4, Form, UnsupportedError, dtype_of, not_emulated
from ci.simulator.lanes import Lanes
from ci.simulator.ops import decoder_of
from ci.simulator.pointers import written_parameters
from ci.simulator.unset import Unset

if TYPE_CHECKING:
    from ci.simulator.forms import Array, Fetch, Mask, Step
    from ci.simulator.ptx import Function, Guard, Instruction, Kernel
    from ci.simulator.sampling import SampledCounters


class Program:
    """The steps and runs of a kernel, and the state they act on; one launch at a time."""

    def __init__(self, kernel: Kernel, watch: SampledCounters | None = None) -> None:
        """Decode every instruction; those that are not emulated raise when executed.

        Args:
            kernel: The kernel.
            watch: Who is told about the comparisons it asks for.
        """
        self.kernel = kernel
        self._watch = watch
        self.lanes = Lanes()
        self.code = Code(kernel, self.lanes)
        self.calls = Calls(kernel, self.code)
        self.runs = runs_of(kernel)
        self.lanes.exits = frozenset(start for start, run in self.runs.items() if run.only_exits)
        self.lanes.ends = ends_of(self.runs, kernel.instructions)
        self.conditions: dict[int, Fetch] = {}
        """Program counter of a guarded branch or exit → its predicate."""
        self._guards: dict[int, Fetch] = {}
        """Program counter of any other guarded instruction → its predicate."""
        self.choices: dict[int, Fetch] = {}
        """Program counter of a branch to one of several places → which one."""
        self.meetings: dict[int, Meeting | None] = {}
        """Program counter of a barrier that lanes wait at → it, None if it is not emulated."""
        self._steps: list[Step] = []
        self._effects: list[Effect] = []
        self._unguarded: list[Effect] = []
        """The effects without what guards of steps read."""
        for instruction in kernel.instructions:
            self._decode(instruction, leaving=leaves(instruction, kernel))
        for function in kernel.functions.values():
            self._add_function(function)
        find_needed(self.runs, self._effects)
        first = self.runs[0].needed & self.code.registers if 0 in self.runs else 0
        self._unset = Unset(self.code, kernel.instructions, self._unguarded, first)
        self._finish()
        for run in self.runs.values():
            self._find_unread(run)
        self._written = {run.start: self._written_in(run) for run in self.runs.values()}
        """Start of a run → registers it writes, as a bit set."""
        self._sequences: dict[tuple[int, int], list[Step]] = {}
        self._initial = list(self.code.slots)
        self.written = written_parameters(kernel)
        """Parameters that it may write through."""
        self.arrays = accessed_arrays(kernel)
        """Program counter of an access → the shared array it can only mean."""

    def begin_slice(self, local_bytes: int) -> None:
        """Give every register its first value; a thread's own variables take ``local_bytes``."""
        self.code.slots[:] = self._initial
        self._unset.begin_slice()
        self.calls.begin_slice(local_bytes)

    def steps(self, run: Run, kept: int) -> list[Step]:
        """Return the steps of a run.

        Args:
            run: One of ``runs``.
            kept: Registers, as a bit set, of which lanes that wait elsewhere still need their
                own values. Others may be overwritten for all lanes, which is cheaper.
        """
        kept &= self._written[run.start]
        key = (run.start, kept)
        found = self._sequences.get(key)
        if found is None:
            found = [self._careful(pc, kept) for pc in range(run.start, run.end)]
            self._sequences[key] = found
        return found

    def _written_in(self, run: Run) -> int:
        return reduce(or_, (effect.defined for effect in self._effects[run.start : run.end]), 0)

    def _careful(self, pc: int, kept: int) -> Step:
        step = self._steps[pc]
        written = bits(self._effects[pc].defined & kept)
        return _merging(self.code.slots, step, written) if written else step

    def _decode(self, instruction: Instruction, *, leaving: bool) -> None:
        code = self.code
        code.used = code.defined = 0
        guard = instruction.guard
        if leaving:
            step: Step = _unreachable
            if guard is not None:
                self.conditions[instruction.pc] = _condition(code, guard)
            self._decode_leave(instruction)
        else:
            step = self._step(instruction)
        effect = Effect(used=code.used, defined=code.defined, certain=guard is None)
        self._unguarded.append(effect)
        if guard is not None and not leaving:
            self._guards[instruction.pc] = _condition(code, guard)
            effect = replace(effect, used=code.used)
        self._steps.append(step)
        self._effects.append(effect)

    def _finish(self) -> None:
        """Put guards before the steps, and watch what stems from registers without a value."""
        slots, unset = self.code.slots, self._unset
        for pc, effect in enumerate(self._effects):
            step = unset.follow(pc, self._steps[pc])
            if pc in self._guards:
                step = _guarded(slots, step, self._guards[pc], bits(effect.defined))
            self._steps[pc] = step
        for pc, condition in self.conditions.items():
            self.conditions[pc] = unset.decides(pc, condition)

    def _decode_leave(self, instruction: Instruction) -> None:
        if instruction.opcode in ("bar", "barrier"):
            self.meetings[instruction.pc] = decode(self.code, instruction)
        elif instruction.opcode == "call":
            self.calls.add_call(instruction)
        elif instruction.opcode == "brx":
            try:
                self.choices[instruction.pc] = self.code.fetch(instruction.operands[0], U4)
            except UnsupportedError:
                self.choices[instruction.pc] = _refused(instruction)

    def _add_function(self, function: Function) -> None:
        """Take in a function; a return reads what it returns."""
        returned = 0
        for register in function.returns:
            returned |= 1 << self.code.slot_of(register)
        registers = returned
        for pc in range(function.start, function.end):
            effect = self._effects[pc]
            registers |= effect.used | effect.defined
            if self.kernel.instructions[pc].opcode == "ret":
                self._effects[pc] = replace(effect, used=effect.used | returned)
        self.calls.add_function(function, registers)

    def _step(self, instruction: Instruction) -> Step:
        decoder = decoder_of(instruction)
        if decoder is not None:
            try:
                return self._watched(instruction, decoder(self.code, Form(instruction)))
            except UnsupportedError:
                self.code.used = self.code.defined = 0
        return _refusal(instruction)

    def _watched(self, instruction: Instruction, step: Step) -> Step:
        """Return the step that tells who watches what it asked for."""
        watch, pc = self._watch, instruction.pc
        if watch is None or pc not in watch.comparisons | watch.joins.keys():
            return step
        kind = dtype_of(instruction.modifiers[-1])
        if pc in watch.joins:
            shared = self.code.fetch(instruction.operands[watch.joins[pc].operand], kind)

            def watched_join(mask: Mask) -> None:
                watch.joined(pc, shared(), mask)
                step(mask)

            return watched_join
        first, second = (self.code.fetch(operand, kind) for operand in instruction.operands[1:3])

        def watched(mask: Mask) -> None:
            watch.compared(pc, first(), second(), mask)
            step(mask)

        return watched

    def _find_unread(self, run: Run) -> None:
        """Note the atomic instructions whose result nobody reads."""
        live = 0
        for successor in run.successors:
            live |= self.runs[successor].needed if successor in self.runs else 0
        for pc in range(run.end - (run.leave is None), run.start - 1, -1):
            effect = self._effects[pc]
            if not effect.defined & live:
                self.code.unread.add(pc)
            live = (live & ~effect.defined if effect.certain else live) | effect.used


def _refused(instruction: Instruction) -> Fetch:
    def fetch() -> Array:
        raise not_emulated(instruction)

    return fetch


def _unreachable(_: Mask) -> None:
    """Stand in for a branch, which the machine executes itself."""


def _refusal(instruction: Instruction) -> Step:
    def step(_: Mask) -> None:
        raise not_emulated(instruction)

    return step


def _condition(code: Code, guard: Guard) -> Fetch:
    fetch = code.fetch(guard.register, BOOL)
    return (lambda: ~fetch()) if guard.negated else fetch


def _guarded(slots: list[Array], step: Step, condition: Fetch, written: list[int]) -> Step:
    """Return the step for the lanes whose predicate holds."""

    def guarded(mask: Mask) -> None:
        holds = condition()
        if holds.size == 1:
            if holds.item():
                step(mask)
            return
        active = holds if mask is None else holds & mask
        if active.any():
            _keep_others(slots, step, written, active)

    return guarded


def _merging(slots: list[Array], step: Step, written: list[int]) -> Step:
    """Return the step that leaves the results of inactive lanes alone."""

    def merging(mask: Mask) -> None:
        if mask is None:
            step(mask)
        else:
            _keep_others(slots, step, written, mask)

    return merging


def _keep_others(slots: list[Array], step: Step, written: list[int], active: Array) -> None:
    before = [slots[slot] for slot in written]
    step(active)
    for slot, old in zip(written, before, strict=True):
        slots[slot] = np.where(active, slots[slot], old)
