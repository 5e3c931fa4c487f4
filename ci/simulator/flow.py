"""Control flow of a decoded kernel: straight runs, and which registers are still needed where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci.simulator.parser import ENDS_RUN
from ci.simulator.ptx import Instruction, Target


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
    target: int | None
    """Where lanes go that branch."""
    needed: int = 0
    """Registers whose values at the top may still be read."""

    @property
    def successors(self) -> tuple[int, ...]:
        """Return where lanes can go from here, exits left out."""
        leave = self.leave
        if leave is None:
            return (self.following,)
        targets = () if self.target is None else (self.target,)
        return targets if leave.guard is None else (*targets, self.following)


def runs_of(instructions: Sequence[Instruction]) -> dict[int, Run]:
    """Return the straight runs of a kernel by their first instruction."""
    starts = [i.pc for i in instructions if i.leader]
    runs = {}
    for start, following in zip(starts, [*starts[1:], len(instructions)], strict=True):
        last = instructions[following - 1]
        leaves = last.opcode in ENDS_RUN
        target = last.operands[0] if last.operands and leaves else None
        runs[start] = Run(
            start=start,
            end=following - leaves,
            leave=last if leaves else None,
            following=following,
            target=target.pc if isinstance(target, Target) else None,
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
