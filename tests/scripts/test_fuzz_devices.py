"""Random kernels agree on the simulator and in NumPy, and a planted wrong instruction shows."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ci.devices.protocol import Buffer, Execution, StepLaunch
from ci.devices.simulator import SimulatorDevice
from kernels.build import BuiltStage
from scripts import fuzz_devices
from scripts.fuzz.program import Assign, Atomic, Ballot, Branch, Exchange, Loop, Shuffle, generate
from scripts.fuzz.shapes import ShapeFuzz, random_size
from scripts.fuzz_devices import KernelFuzz, first_difference, shrink
from scripts.suite_ladders import rungs


def test_the_simulator_agrees_with_numpy() -> None:
    fuzz = KernelFuzz([SimulatorDevice({})])
    fuzz.run(range(30))
    assert fuzz.found == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("xor.b32", "or.b32"), ("shfl.sync.down", "shfl.sync.up"), ("sub.rn.f32", "add.rn.f32")],
)
def test_a_wrong_instruction_is_found_and_cut_down_to_it(right: str, wrong: str) -> None:
    fuzz = KernelFuzz([SimulatorDevice({})], spoil=lambda ptx: ptx.replace(right, wrong))
    fuzz.run(range(30))
    assert fuzz.found
    found = fuzz.found[0]
    assert found.devices == "numpy and simulator"
    assert found.source.count("\n") < 26
    first = range(found.seed, found.seed + 1)
    again = KernelFuzz([SimulatorDevice({})], spoil=lambda ptx: ptx.replace(right, wrong))
    again.run(first)
    assert again.found == [found]


def test_the_generator_makes_every_kind_of_statement_and_the_same_again() -> None:
    kinds = {type(statement) for seed in range(50) for statement in generate(seed)}
    assert kinds == {Assign, Atomic, Ballot, Branch, Exchange, Loop, Shuffle}
    assert generate(7) == generate(7) != generate(8)


def test_shrinking_keeps_what_the_failure_needs() -> None:
    program = generate(3)
    assert len(program) > 2
    needed = {program[0], program[-1]}
    small = shrink(program, needed.issubset)
    assert set(small) == needed


def test_a_nan_equals_a_nan_and_zeros_of_two_signs_differ() -> None:
    nan = np.array([np.nan], np.float32)
    assert first_difference({"x": nan}, {"x": -nan}) == ""
    zero = np.zeros(1, np.float32)
    assert first_difference({"x": zero}, {"x": -zero}).startswith("x[0]")


def test_random_shapes_are_ones_the_stage_accepts() -> None:
    for rung in rungs():
        rng = random.Random(1)  # noqa: S311
        sizes = [random_size(rng, rung) for _ in range(5)]
        assert all(rung.stage.domain(size) is None for size in sizes), rung.name
        assert len({tuple(size.values()) for size in sizes}) > 1, rung.name


class _OffByOne(SimulatorDevice):
    """Adds one to the first element of what a kernel wrote last."""

    def run(self, built: BuiltStage, steps: Sequence[StepLaunch], *, count: bool) -> Execution:
        execution = super().run(built, steps, count=count)
        output = next(a for a in reversed(steps[-1].arguments) if isinstance(a, Buffer))
        output.data[0] += 1
        return execution


def test_a_stage_that_differs_between_devices_is_found() -> None:
    rung = rungs(["sgemm"])[1]
    same = ShapeFuzz([SimulatorDevice({}), SimulatorDevice({})], "", [rung])
    other = ShapeFuzz([SimulatorDevice({}), _OffByOne({})], "", [rung])
    for fuzz in (same, other):
        fuzz.run(1, 1, math.inf)
        assert fuzz.launches == 1
    assert same.found == []
    (found,) = other.found
    assert found["stage"] == rung.name
    assert "first 0, 0" in str(found["what"])


def test_a_run_writes_its_seeds_and_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_devices, "_BATCH", 3)
    words = ["--device", "simulator", "--seconds", "0.1", "--seed", "5", "--out", str(tmp_path)]
    assert fuzz_devices.main(words) == 0
    document = json.loads((tmp_path / "fuzz.json").read_text(encoding="utf-8"))
    assert document["devices"] == ["simulator"]
    assert document["seeds"] == [5, 5 + document["kernels"]]
    assert document["disagreements"] == []
