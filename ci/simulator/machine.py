"""Execution of one slice: groups of lanes by program counter, branches, joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.errors import StepLimitError

if TYPE_CHECKING:
    from ci.simulator.flow import Run
    from ci.simulator.forms import Mask
    from ci.simulator.program import Program


class Machine:
    """Runs the lanes of a slice from the first instruction to the last exit.

    Lanes that stand at different instructions wait in a table; those at the lowest program
    counter run until they reach where others wait, and join them there. This is one legal
    schedule, and it joins where the compiler's layout of the code lets branches join.
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

    def run_slice(self) -> None:
        """Execute the slice that the program's lanes are set up for.

        Raises:
            StepLimitError: It does not end within the step limit.
        """
        program, lanes = self._program, self._lanes
        pc: int | None = 0
        mask = lanes.everyone
        steps_left = self._limit
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
            pc, mask = self._leave(run, mask)

    def _kept(self) -> int:
        """Return the registers that waiting lanes still need."""
        runs = self._program.runs
        kept = 0
        for pc in self._lanes.elsewhere:
            kept |= runs[pc].needed if pc in runs else 0
        return kept

    def _leave(self, run: Run, mask: Mask) -> tuple[int | None, Mask]:
        """Move the running lanes on and return who runs next."""
        leave = run.leave
        if leave is None:
            return self._next(run.following, mask)
        condition = self._program.conditions.get(leave.pc)
        if condition is None:
            return self._next(run.target, mask)
        holds = condition()
        if holds.size == 1:
            return self._next(run.target if holds.item() else run.following, mask)
        leaving = holds if mask is None else holds & mask
        if not leaving.any():
            return self._next(run.following, mask)
        staying = ~holds if mask is None else mask & ~holds
        if not staying.any():
            return self._next(run.target, mask)
        if run.target is not None:
            self._wait(run.target, leaving)
        return self._next(run.following, staying)

    def _next(self, pc: int | None, mask: Mask) -> tuple[int | None, Mask]:
        """Return who runs next, once the lanes in ``mask`` stand at ``pc`` (None: have exited)."""
        elsewhere = self._lanes.elsewhere
        if not elsewhere:
            return pc, mask
        if pc is not None:
            self._wait(pc, mask)
        lowest = min(elsewhere)
        return lowest, elsewhere.pop(lowest)

    def _wait(self, pc: int, mask: Mask) -> None:
        """Let lanes wait at ``pc``, together with those that already do."""
        lanes = self._lanes
        if pc not in lanes.elsewhere:
            lanes.elsewhere[pc] = mask
            return
        other = lanes.elsewhere[pc]
        if mask is None or other is None:
            lanes.elsewhere[pc] = lanes.everyone
            return
        joined = mask | other
        everyone = lanes.everyone
        whole = joined.all() if everyone is None else (joined == everyone).all()
        lanes.elsewhere[pc] = everyone if whole else joined

    def _spinning(self, run: Run) -> StepLimitError:
        kernel = self._program.kernel
        place = kernel.instructions[run.start].place
        return StepLimitError(
            f"{place.file}:{place.line}: {kernel.name} has not ended after {self._limit} "
            "instructions: a loop that never ends, or waits for another warp or block"
        )


def quiet() -> np.errstate:
    """Return a context in which floating-point exceptions pass silently, as on a GPU."""
    return np.errstate(all="ignore")
