"""Timing of Python callables with the processor's clock: a bench that needs no GPU."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ci.check.contents import place_operands
from ci.check.launch import output_of
from ci.check.plan import plain
from ci.check.references import trusted_reference
from ci.measure.bench import BenchError, Placed, Replay, Routine
from kernels.operands import Matrix
from kernels.spec import CallableStage

NAME = "clock"
"""The device name that a stage's ``build`` is given."""

_L2_BYTES = 1 << 16
"""Enough to make small operands go round several sets."""


class _Call:
    """A callable on one operand set."""

    def __init__(
        self,
        function: Callable[..., object],
        arguments: Sequence[object],
        output: NDArray[np.float32],
    ) -> None:
        self._function = function
        self._arguments = arguments
        self._output = output

    def launch(self) -> None:
        self._function(*self._arguments)

    def poison(self) -> None:
        self._output.fill(np.nan)

    def output(self) -> NDArray[np.generic]:
        return self._output.ravel().copy()

    def agrees_with(self, other: Placed) -> bool:
        return self.output().tobytes() == other.output().tobytes()


class _Loop:
    """A batch of calls."""

    def __init__(self, parts: Sequence[Sequence[Placed]]) -> None:
        self._parts = tuple(tuple(part) for part in parts)
        self._next = itertools.cycle(self._parts)

    def run(self) -> None:
        for part in self._parts:
            _call(part)

    def time(self, count: int) -> tuple[float, ...]:
        _call(next(self._next))
        times_s = []
        for part in itertools.islice(self._next, count):
            started = time.perf_counter()
            _call(part)
            times_s.append(time.perf_counter() - started)
        return tuple(times_s)


class ClockBench:
    """The processor: calls what a stage builds for the device ``clock``."""

    l2_bytes = _L2_BYTES
    tick_s = time.get_clock_info("perf_counter").resolution

    def set_bytes(self, routine: Routine) -> int:
        """Return the bytes of one operand set."""
        return sum(matrix.buffer().nbytes for matrix in _operands(routine).values())

    def place(self, routine: Routine, sets: int) -> Sequence[_Call]:
        """Return the stage's function on so many operand sets; see ``Bench.place``."""
        stage, problem = routine.case.stage, routine.case.ladder.problem
        if routine.baseline or not isinstance(stage, CallableStage):
            msg = f"{routine.case.id}: the processor's clock times Python callables only"
            raise BenchError(msg)
        function = stage.build(NAME)
        size = routine.case.size.as_dict()
        scalars = {
            name: levels[0] for name, levels in trusted_reference(problem.reference).scalars.items()
        }
        calls = []
        for _ in range(sets):
            matrices = _operands(routine)
            values: dict[str, object] = {**size, **scalars}
            for name, matrix in matrices.items():
                values |= {name: matrix.numbers(), f"ld{name.lower()}": matrix.leading_dimension}
            arguments = [values[parameter] for parameter in problem.parameters]
            calls.append(_Call(function, arguments, matrices[output_of(problem).name].numbers()))
        return calls

    def record(self, parts: Sequence[Sequence[Placed]]) -> Replay:
        """Return the calls in this order."""
        return _Loop(parts)

    def drop(self) -> None:
        """Leave memory to the interpreter."""


def _call(part: Sequence[Placed]) -> None:
    for call in part:
        call.launch()


def _operands(routine: Routine) -> dict[str, Matrix]:
    problem = routine.case.ladder.problem
    reference = trusted_reference(problem.reference)
    scalars = {name: levels[0] for name, levels in reference.scalars.items()}
    return place_operands(problem, reference, plain(problem, routine.case.size.as_dict(), scalars))
