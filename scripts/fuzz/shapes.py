"""Every stage of the suite at random shapes, on two devices."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Sequence

import numpy as np

from ci.check.contents import place_operands
from ci.check.judge import compare, remember
from ci.check.launch import output_of, prepare
from ci.check.plan import accepts, plain
from ci.check.reference import Doubles, Reference, doubles
from ci.check.references import trusted_reference
from ci.devices.errors import DeviceError, NotEmulatedError
from ci.devices.protocol import Device
from ci.verbs.context import cache_folder
from kernels.build import BuiltStage, build_stage
from kernels.spec import Role
from scripts.suite_ladders import Rung, rungs, suite

_LARGEST = 160
_FLOPS_MAX = 2 * _LARGEST**3
_BYTES_MAX = 1 << 18
"""More of either would take the simulator many seconds."""
_DRAWS = 20


class ShapeFuzz:
    """Runs stages at shapes and compares what the devices made of them."""

    def __init__(
        self, devices: Sequence[Device], architecture: str, ladder_rungs: Sequence[Rung] = ()
    ) -> None:
        """Start with nothing found.

        Args:
            devices: What runs the stages.
            architecture: Of the machine code; empty if no device needs any.
            ladder_rungs: The stages, taken in turn; none: the suite's.
        """
        self._devices = devices
        self._architectures = [architecture] if architecture else []
        self._suite = suite()
        self._rungs: Iterator[Rung] = itertools.cycle(ladder_rungs or rungs())
        self.launches = 0
        self.not_emulated: set[str] = set()
        self.found: list[dict[str, object]] = []

    def run(self, seed: int, count: int, deadline_s: float) -> None:
        """Run the next stages at a random shape each, until ``time.monotonic()`` is late.

        Args:
            seed: Of the shapes.
            count: How many stages; the next call goes on behind them.
            deadline_s: When to stop.
        """
        rng = random.Random(seed)  # noqa: S311
        for _ in range(count):
            if time.monotonic() > deadline_s:
                return
            rung = next(self._rungs)
            size = random_size(rng, rung)
            try:
                self._compare(rung, size, seed)
            except NotEmulatedError:
                self.not_emulated.add(rung.name)
            except DeviceError as error:
                self._add(rung, size, seed, str(error))

    def _compare(self, rung: Rung, size: dict[str, int], seed: int) -> None:
        built = build_stage(
            self._suite,
            rung.ladder,
            rung.stage,
            architectures=self._architectures,
            cache=cache_folder(),
        )
        reference = trusted_reference(rung.ladder.problem.reference)
        results = [self._result(device, built, rung, size, reference) for device in self._devices]
        self.launches += 1
        want, bound = results[0]
        for got, _ in results[1:]:
            wrong = compare(got, want, bound).wrong
            if wrong.any():
                row, column = np.argwhere(wrong)[0]
                what = f"{wrong.sum()} elements differ, first {row}, {column}: "
                what += f"{want[row, column]!r} and {got[row, column]!r}"
                self._add(rung, size, seed, what)

    def _add(self, rung: Rung, size: dict[str, int], seed: int, what: str) -> None:
        print(f"{rung.name} {size}: {what}", flush=True)
        self.found.append({"seed": seed, "stage": rung.name, "size": size, "what": what})

    def _result(
        self,
        device: Device,
        built: BuiltStage,
        rung: Rung,
        size: dict[str, int],
        reference: Reference,
    ) -> tuple[Doubles, Doubles]:
        """Return an output, and how far two that the tolerance allows may be apart."""
        problem = rung.ladder.problem
        scalars = {name: levels[0] for name, levels in reference.scalars.items()}
        matrices = place_operands(problem, reference, plain(problem, size, scalars))
        before = remember(problem, matrices)
        steps = prepare(
            problem, rung.stage, device.tile(built), matrices=matrices, size=size, scalars=scalars
        )
        device.run(built, steps, count=False)
        expected = reference.compute(before.inputs, scalars)
        tolerance = problem.tolerance
        bound = tolerance.relative * expected.condition
        bound += tolerance.output_unit_roundoff * np.abs(expected.value)
        return doubles(matrices[output_of(problem).name].numbers()), 2 * bound


def random_size(rng: random.Random, rung: Rung) -> dict[str, int]:
    """Return a random size that a stage accepts; one of the ladder's own if none is met."""
    ladder, stage = rung.ladder, rung.stage
    own = [size.as_dict() for size in ladder.problem.sizes if size.role is Role.CHECK]
    accepted = [size for size in own if accepts(ladder.problem, stage, size)]
    start = dict(rng.choice(accepted or own))
    for _ in range(_DRAWS):
        # Axes one by one: some stages need multiples, of one axis or another.
        axis = rng.choice(list(start))
        drawn = {**start, axis: rng.choice((rng.randint(1, _LARGEST), 8 * rng.randint(1, 20)))}
        small = ladder.problem.flops(drawn) <= _FLOPS_MAX
        small &= ladder.problem.compulsory_bytes(drawn) <= _BYTES_MAX
        if small and accepts(ladder.problem, stage, drawn):
            start = drawn
    return start
