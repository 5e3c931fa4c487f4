"""Control flow of a decoded kernel: straight runs, and which registers are still needed where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci.simulator.barriers import waited_at
from ci.simulator.body import ENDS_RUN, callee_of
from ci.simulator.ptx import Instruction, Kernel, Target, Vector

_GOES_ON = ("call", "bar", "barrier")
"""Opcodes behind which lanes go on later."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """Which register slots an instruction reads and writes, as bit sets."""

    used: int
    defined: int
    certain: bool
    """False if a guard can keep the instruction from writing."""


@dataclass(kw_only=True, slots=True)
class Run:
    """A straight run of instructions: entered at the top, left at the bottom."""

    start: int
    end: int
    """Behind the last instruction that is a step; a branch or exit is none."""
    leave: Instruction | None
    """The branch or exit at the bottom; None: it falls through."""
    following: int
    """Where lanes go that do not branch or exit."""
    targets: tuple[int, ...]
    """Where lanes go that branch: one place, or one for each value of an index."""
    entries: tuple[int, ...]
    """First instructions of the functions that lanes may call."""
    needed: int = 0
    """Registers whose values at the top may still be read."""

    @property
    def successors(self) -> tuple[int, ...]:
        """Return where lanes can go from here, exits and returns left out."""
        leave = self.leave
        if leave is None:
            return (self.following,)
        on = leave.guard is not None or leave.opcode in _GOES_ON
        return (*self.targets, *self.entries, *((self.following,) if on else ()))

    @property
    def only_exits(self) -> bool:
        """Return whether lanes that stand here, outside calls, do nothing but exit."""
        leave = self.leave
        ends = leave is not None and leave.guard is None and leave.opcode in ("ret", "exit")
        return ends and self.start == self.end


def leaves(instruction: Instruction, kernel: Kernel) -> bool:
    """Return whether an instruction is none that steps execute: it sends lanes elsewhere."""
    if instruction.opcode == "call":
        # What is not in the module is an instruction of the machine's, such as vprintf.
        name = callee_of(instruction)
        return name in kernel.functions if name else bool(kernel.functions)
    return instruction.opcode in ENDS_RUN or instruction.pc in waited_at(kernel)


def entries_of(instruction: Instruction, kernel: Kernel) -> tuple[int, ...]:
    """Return where the functions begin that a call may reach."""
    name = callee_of(instruction)
    if name:
        return (kernel.functions[name].start,)
    arguments = instruction.operands[2]
    count = len(arguments.items) if isinstance(arguments, Vector) else 0
    return tuple(f.start for f in kernel.functions.values() if len(f.formals) == count)


def runs_of(kernel: Kernel) -> dict[int, Run]:
    """Return the straight runs of a kernel by their first instruction."""
    instructions = kernel.instructions
    starts = [i.pc for i in instructions if i.leader]
    runs = {}
    for start, following in zip(starts, [*starts[1:], len(instructions)], strict=True):
        last = instructions[following - 1]
        left = leaves(last, kernel)
        runs[start] = Run(
            start=start,
            end=following - left,
            leave=last if left else None,
            following=following,
            targets=tuple(o.pc for o in last.operands if isinstance(o, Target)),
            entries=entries_of(last, kernel) if left and last.opcode == "call" else (),
        )
    return runs


def find_needed(runs: dict[int, Run], effects: Sequence[Effect]) -> None:
    """Fill in which registers are needed at the top of each run.

    Args:
        runs: All runs of a kernel.
        effects: One for each instruction; of a branch or exit, what its guard reads.
    """
    used, defined = {}, {}
    for run in runs.values():
        reads, writes = 0, 0
        for effect in effects[run.start : run.end + (run.leave is not None)]:
            reads |= effect.used & ~writes
            if effect.certain:
                writes |= effect.defined
        used[run.start], defined[run.start] = reads, writes
    changed = True
    while changed:
        changed = False
        for run in reversed(runs.values()):
            later = 0
            for successor in run.successors:
                later |= runs[successor].needed if successor in runs else 0
            needed = used[run.start] | (later & ~defined[run.start])
            changed |= needed != run.needed
            run.needed = needed


_MEETINGS = frozenset({
    "bar", "barrier", "shfl", "vote", "match", "redux", "elect", "activemask",
    "mma", "ldmatrix", "wmma", "call", "brx",
})  # fmt: skip
"""Opcodes at which threads wait for each other; or that lead to unknown ones."""


def ends_of(runs: dict[int, Run], instructions: Sequence[Instruction]) -> frozenset[int]:
    """Return the runs from which lanes exit without waiting for others on any way.

    Lanes that still come to shared memory count as waiting: what they would meet there unordered
    is not told, since a barrier orders the whole block.
    """
    meeting = {
        start
        for start, run in runs.items()
        if any(
            i.opcode in _MEETINGS or "shared" in i.modifiers
            for i in instructions[start : run.end + (run.leave is not None)]
        )
    }
    grown = True
    while grown:
        before = len(meeting)
        meeting |= {start for start, run in runs.items() if meeting & set(run.successors)}
        grown = len(meeting) > before
    return frozenset(runs.keys() - meeting)


def bits(number: int) -> list[int]:
    """Return the positions of the set bits, of which there are few."""
    found = []
    while number:
        lowest = number & -number
        found.append(lowest.bit_length() - 1)
        number ^= lowest
    return found
