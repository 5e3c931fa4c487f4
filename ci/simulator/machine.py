"""Execution of one slice: groups of lanes by program counter, branches, joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.barriers import Barriers
from ci.simulator.errors import LaunchError, StepLimitError
from ci.simulator.waiting import Waiting

if TYPE_CHECKING:
    from ci.simulator.calls import Path
    from ci.simulator.flow import Run
    from ci.simulator.forms import Mask
    from ci.simulator.program import Program
    from ci.simulator.ptx import Instruction


_NOBODY = np.zeros((1, 1), np.bool_)


class Machine:
    """Runs the lanes of a slice from the first instruction to the last exit.

    Lanes that stand at different instructions wait in a table; those at the lowest program
    counter run until they reach where others wait, and join them there. This is one legal
    schedule, and it joins where the compiler's layout of the code lets branches join. Lanes inside
    a call stand where the call does, before all that follows it.
    """

    def __init__(self, program: Program, step_limit: int) -> None:
        """Prepare to execute ``program``.

        Args:
            program: The kernel.
            step_limit: Instructions a slice may take; a kernel that waits for itself spins.
        """
        self._program = program
        self._lanes = program.lanes
        self._limit = step_limit
        self._waiting = Waiting(program)
        self._barriers = Barriers(self._lanes, program.code.slots)
        self._loop: Instruction | None = None
        """The last branch that went back."""

    def run_slice(self) -> None:
        """Execute the slice that the program's lanes are set up for.

        Raises:
            NotEmulatedError: It reached an instruction that is not emulated.
            StepLimitError: It does not end within the step limit.
        """
        program, lanes = self._program, self._lanes
        pc: int | None = 0
        mask = lanes.everyone
        steps_left = self._limit
        waiting = self._waiting
        waiting.begin_slice()
        self._barriers.begin_slice()
        while pc is not None:
            run = program.runs.get(pc)
            if run is None:
                # Behind the last instruction.
                pc, mask = self._next(None, None)
                continue
            lanes.running = mask
            for step in program.steps(run, self._kept()):
                step(mask)
            steps_left -= run.end - run.start + 1
            if steps_left < 0:
                raise self._spinning(run)
            waiting.executed(run.start)
            pc, mask = self._leave(run, mask)

    def _kept(self) -> int:
        """Return the registers that waiting lanes still need."""
        runs, calls = self._program.runs, self._program.calls
        kept = 0
        for key in (*self._lanes.elsewhere, *(key for key, _ in self._barriers.waiting())):
            kept |= calls.needed(key[:-1])
            if key[-1] in runs:
                kept |= runs[key[-1]].needed
        return kept

    def _leave(self, run: Run, mask: Mask) -> tuple[int | None, Mask]:
        """Move the running lanes on and return who runs next."""
        leave = run.leave
        if leave is None:
            return self._next(run.following, mask)
        condition = self._program.conditions.get(leave.pc)
        if condition is None:
            return self._go(run, leave, mask)
        holds = condition()
        if holds.size == 1:
            return self._go(run, leave, mask) if holds.item() else self._next(run.following, mask)
        leaving = holds if mask is None else holds & mask
        if not leaving.any():
            return self._next(run.following, mask)
        staying = ~holds if mask is None else mask & ~holds
        if not staying.any():
            return self._go(run, leave, mask)
        # Those that stay wait first: they are there when the others call or return.
        self._wait((*self._program.calls.path, run.following), staying)
        return self._go(run, leave, leaving)

    def _go(self, run: Run, leave: Instruction, mask: Mask) -> tuple[int | None, Mask]:
        """Let lanes branch, call, return or exit as the run's last instruction says."""
        calls, opcode = self._program.calls, leave.opcode
        if opcode == "bra":
            target = run.targets[0]
            if target <= leave.pc:
                self._loop = leave
                in_vain = self._waiting.turn((*calls.path, target), mask)
                if in_vain and not self._lanes.elsewhere:
                    raise self._endless()
            return self._next(target, mask)
        if opcode == "brx":
            return self._choose(run, leave, mask)
        if opcode in ("bar", "barrier"):
            key = (*calls.path, run.following)
            meeting = self._program.meetings[leave.pc]
            for on, lanes in self._barriers.arrive(meeting, leave, key, mask):
                self._wait(on, lanes)
            return self._next(None, None)
        if opcode == "call":
            return self._call(run, leave, mask)
        if opcode == "ret" and calls.path:
            path, pc = calls.leave(mask, whole=self._alone())
            self._lanes_inside(path)
            return self._next(pc, mask)
        return self._next(None, None)

    def _call(self, run: Run, leave: Instruction, mask: Mask) -> tuple[int | None, Mask]:
        calls, following = self._program.calls, self._program.runs.get(run.following)
        needed = 0 if following is None else following.needed
        called = calls.enter(leave, mask, needed, alone=self._alone())
        path = calls.path
        for entry, lanes in called[1:]:
            self._wait((*path, leave.pc, entry, entry), lanes)
        entry, lanes = called[0]
        calls.path = (*path, leave.pc, entry)
        return self._next(entry, lanes)

    def _alone(self) -> bool:
        """Return whether the running lanes are all that are left."""
        return not self._lanes.elsewhere and not self._barriers.waiting()

    def _choose(self, run: Run, leave: Instruction, mask: Mask) -> tuple[int | None, Mask]:
        """Send lanes to one of several places."""
        index = self._program.choices[leave.pc]()
        lanes = self._lanes
        chosen = np.unique(index[lanes.reduced(mask, index.shape)]).tolist()
        if chosen and chosen[-1] >= len(run.targets):
            place = leave.place
            raise LaunchError(
                f"{place.file}:{place.line}: {self._program.kernel.name} branches to target "
                f"{chosen[-1]} of a list of {len(run.targets)}"
            )
        if len(chosen) == 1:
            return self._next(run.targets[chosen[0]], mask)
        for each in chosen:
            here = lanes.both(mask, index == each)
            self._wait((*self._program.calls.path, run.targets[each]), here)
        return self._next(None, None)

    def _lanes_inside(self, path: Path) -> None:
        """Go on inside other calls than before."""
        calls = self._program.calls
        calls.path = path
        standing = [key for key, _ in self._barriers.waiting()]
        calls.forget([path, *(key[:-1] for key in (*self._lanes.elsewhere, *standing))])

    def _next(self, pc: int | None, mask: Mask) -> tuple[int | None, Mask]:
        """Return who runs next, once the lanes in ``mask`` stand at ``pc`` (None: have exited)."""
        elsewhere, calls = self._lanes.elsewhere, self._program.calls
        if pc is None and not elsewhere:
            self._lanes.running = _NOBODY
            for key, lanes in self._barriers.give_up():
                self._wait(key, lanes)
        if not elsewhere:
            return pc, mask
        if pc is not None:
            self._wait((*calls.path, pc), mask)
        chosen = self._waiting.choose(elsewhere)
        if chosen is None:
            raise self._endless()
        calls.path = chosen[:-1]
        return chosen[-1], elsewhere.pop(chosen)

    def _wait(self, key: Path, mask: Mask) -> None:
        """Let lanes wait at the end of a path, together with those that already do."""
        lanes = self._lanes
        if key not in lanes.elsewhere:
            lanes.elsewhere[key] = mask
            return
        other = lanes.elsewhere[key]
        if mask is None or other is None:
            lanes.elsewhere[key] = lanes.everyone
            return
        joined = mask | other
        everyone = lanes.everyone
        whole = joined.all() if everyone is None else (joined == everyone).all()
        lanes.elsewhere[key] = everyone if whole else joined

    def _endless(self) -> StepLimitError:
        kernel = self._program.kernel
        place = (self._loop or kernel.instructions[0]).place
        return StepLimitError(
            f"{place.file}:{place.line}: {kernel.name} never ends: this loop waits, and no other "
            "thread that runs with it can end its waiting"
        )

    def _spinning(self, run: Run) -> StepLimitError:
        kernel = self._program.kernel
        place = (self._loop or kernel.instructions[run.start]).place
        return StepLimitError(
            f"{place.file}:{place.line}: {kernel.name} has not ended after {self._limit} "
            "instructions: a loop that never ends, or waits for another warp or block"
        )


def quiet() -> np.errstate:
    """Return a context in which floating-point exceptions pass silently, as on a GPU."""
    return np.errstate(all="ignore")
