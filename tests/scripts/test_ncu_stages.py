"""The profiler's table is read launch by launch, in the order of its launches."""

from __future__ import annotations

from pathlib import Path

from scripts.ncu_stages import METRICS, read

GOLDEN = Path(__file__).parents[1] / "data" / "ncu-h200" / "suite.csv"


def test_a_recorded_table_gives_every_counter_of_every_launch() -> None:
    launches = read(GOLDEN.read_text(encoding="utf-8"))
    assert launches[0]["global_load_requests"] == 1_048_576
    assert all(set(launch) == set(METRICS) for launch in launches)


def test_launches_come_in_the_order_of_their_ids() -> None:
    rows = ['"ID","Metric Name","Metric Value"']
    metric = METRICS["global_load_sectors"]
    rows += [f'"{number}","{metric}","{value}"' for number, value in ((10, "1,000"), (9, "7"))]
    found = read("\n".join(rows))
    assert [launch["global_load_sectors"] for launch in found] == [7, 1000]
