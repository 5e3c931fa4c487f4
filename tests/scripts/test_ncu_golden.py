"""Predictions for kernels outside the suite: frozen in a file, and read beside the profiler's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.ncu_golden import compare, counters, read, simulate, subjects
from tests.simulator.ncu_golden import launches

FROZEN = Path(__file__).parents[2] / "docs/data/ncu/golden-predicted.json"
ATOM = "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum"
RED = "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"


def _table(rows: list[tuple[int, str, str]]) -> str:
    lines = [f'"{number}","{metric}","{value}"' for number, metric, value in rows]
    return "\n".join(['"ID","Metric Name","Metric Value"', *lines])


def test_every_launch_has_a_frozen_prediction_of_every_counter() -> None:
    frozen = json.loads(FROZEN.read_text(encoding="utf-8"))
    assert list(frozen) == [subject.name for subject in subjects()]
    assert all(list(each) == counters() for each in frozen.values())


def test_predictions_equal_the_earlier_measurement() -> None:
    frozen = list(json.loads(FROZEN.read_text(encoding="utf-8")).values())
    measured = launches("suite.csv")
    for number in range(16):
        expected = measured[number].counters
        assert {name: frozen[number][name] for name in expected} == expected


@pytest.mark.parametrize("name", ["local_arr 192", "hist 192", "mm_cpasync 192"])
def test_a_kernel_counts_what_the_profiler_counted(name: str) -> None:
    # Kind: local arrays that the assembler keeps in registers are no accesses.
    names = list(json.loads(FROZEN.read_text(encoding="utf-8")))
    measured = read((FROZEN.parent / "golden-profiled.csv").read_text(encoding="utf-8"))
    found = simulate(subjects()[names.index(name)])
    assert {c: found[c] for c in counters()} == measured[names.index(name)]


def test_both_kinds_of_atomics_are_one_counter() -> None:
    table = _table([(4, RED, "1,000"), (4, ATOM, "7"), (3, ATOM, "2")])
    assert read(table) == [{"atomic_sectors": 2}, {"atomic_sectors": 1007}]


def test_a_number_that_differs_is_named_in_the_table(tmp_path: Path) -> None:
    predicted = {"a 256": {"atomic_sectors": 2}, "b 256": {"atomic_sectors": 5}}
    (tmp_path / "golden-predicted.json").write_text(json.dumps(predicted))
    table = _table([(0, ATOM, "2"), (1, ATOM, "6")])
    (tmp_path / "golden-profiled.csv").write_text(table)
    assert compare(tmp_path) == 1
    text = (tmp_path / "golden.md").read_text()
    assert text.startswith("1 of 2 counters are equal (50.0 %).")
    assert "| `b 256` | 0 of 1 | atomic_sectors: 5 against 6 |" in text
