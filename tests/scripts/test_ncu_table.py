"""The page on Nsight Compute says what the committed files hold."""

from __future__ import annotations

import json

from scripts.ncu_stages import simulate
from scripts.ncu_table import FIRST, SECOND, TABLE, Round, Row, page, read_round
from scripts.suite_ladders import rungs

_BASE = {"sectors": 4, "conflicts": 4}


def _round(*, predicted: dict[str, int] | None = None, **profiled: int) -> Round:
    row = Row(
        name="sgemm/a",
        size="8",
        predicted=_BASE | (predicted or {}),
        profiled=_BASE | profiled,
    )
    other = Row(name="hist", size="9", predicted=_BASE, profiled=_BASE)
    return {"stages": [row], "others": [other]}


def test_the_committed_page_is_what_the_committed_files_make() -> None:
    assert TABLE.read_text(encoding="utf-8") == page(read_round(FIRST), read_round(SECOND))


def test_the_frozen_predictions_are_what_the_simulator_counts_today() -> None:
    names = [rung.name for rung in rungs()]
    for stage in ("attention/02_block_tile_1d", "gemv_int4/04_async_copies"):
        committed = json.loads((SECOND / "predicted-0.json").read_text(encoding="utf-8"))
        assert simulate(names.index(stage), 0) == committed[stage]


def test_every_stage_was_profiled() -> None:
    names = [rung.name for rung in rungs()]
    assert [row.name for row in read_round(SECOND)["stages"]] == 2 * names


def test_the_page_counts_what_is_equal_and_what_the_first_round_taught() -> None:
    said = page(_round(predicted={"sectors": 5}), _round(conflicts=7))
    assert "3 of 4 (75.0 %) counters are equal: 1 of 2 (50.0 %) of the suite's stages" in said
    assert "In the first 1 of 2 (50.0 %) of stages and 2 of 2 (100.0 %)" in said
    assert "- sectors of `sgemm/a` at 8: 5 predicted first, 4 then, 4 profiled" in said
    assert "All 1 that are not equal are conflicts." in said
    assert "| `sgemm/a` | 8 | 1 of 2 | conflicts: 4 against 7 |" in said


def test_a_counter_that_does_not_repeat_is_told_from_a_wrong_prediction() -> None:
    said = page(_round(conflicts=6), _round(conflicts=7))
    assert "Of 4 counters that both rounds profiled, 3 repeat, and 3 of these equal" in said
    assert "- conflicts of `sgemm/a` at 8: 6, then 7" in said
    assert "4 repeat, and 3 of these" in page(_round(conflicts=7), _round(conflicts=7))
