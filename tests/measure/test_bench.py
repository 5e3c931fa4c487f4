"""A batch goes round every operand set, and its results are a launch's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.measure.batch import Batch
from ci.measure.bench import BenchError, Placed, Routine, require_all_worked_on
from ci.measure.clock_bench import ClockBench
from kernels.suite import load_suite
from tests.measure.clock_suite import write_suite

BATCH = Batch(launches=7, sets=21, parts=3)


def placed(folder: Path, body: str = "pass") -> list[Placed]:
    suite = load_suite(write_suite(folder / "suite", {"work": body}))
    return list(ClockBench().place(Routine(case=suite.cases()[0], baseline=False), BATCH.sets))


def test_all_sets_of_a_batch_are_worked_on(tmp_path: Path) -> None:
    sets = placed(tmp_path)
    sets[0].launch()
    replay = ClockBench().record([[sets[number] for number in order] for order in BATCH.orders()])
    require_all_worked_on(sets, replay, BATCH, sets[0].output())


def test_a_set_that_the_recorded_batch_leaves_out_is_named(tmp_path: Path) -> None:
    sets = placed(tmp_path)
    sets[0].launch()
    replay = ClockBench().record([[sets[number % 4] for number in range(20)]])
    with pytest.raises(BenchError, match=r"operand set 5 of 21 .* was not written"):
        require_all_worked_on(sets, replay, BATCH, sets[0].output())


def test_a_launch_that_only_works_once_is_noticed(tmp_path: Path) -> None:
    sets = placed(tmp_path, "if calls > 10:\n    c[...] = 0")
    sets[0].launch()
    replay = ClockBench().record([[sets[number] for number in order] for order in BATCH.orders()])
    with pytest.raises(BenchError, match="not that of a launch on its own"):
        require_all_worked_on(sets, replay, BATCH, sets[0].output())


def test_operand_sets_hold_the_same_in_different_memory(tmp_path: Path) -> None:
    one, other = placed(tmp_path)[:2]
    one.launch()
    other.poison()
    other.launch()
    assert (one.output() == other.output()).all()
    other.poison()
    assert not (one.output() == other.output()).any()


@pytest.mark.parametrize(("launches", "sets"), [(20, 7), (3, 7), (0, 1), (1, 0)])
def test_a_batch_that_goes_round_unevenly_is_refused(launches: int, sets: int) -> None:
    with pytest.raises(ValueError, match="unevenly"):
        Batch(launches=launches, sets=sets)
