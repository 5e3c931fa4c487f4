"""The page on Nsight Compute says what the committed files hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from scripts.ncu_stages import METRICS, simulate
from scripts.ncu_table import DATA, TABLE, Row, Twice, page, table, twice
from scripts.suite_ladders import rungs

_BASE = dict.fromkeys(METRICS, 4)


def _row(**off: int) -> Row:
    return Row(stage="sgemm/a", size="8", predicted=_BASE, recounted=_BASE, profiled=_BASE | off)


def _pair(*, changed: bool = False, **again: int) -> Twice:
    return Twice(
        stage="sgemm/a",
        size="8",
        first=_BASE,
        again=_BASE | again,
        simulated=None if changed else _BASE,
    )


def test_the_committed_page_is_what_the_committed_files_make() -> None:
    assert TABLE.read_text(encoding="utf-8") == page(table(), twice())


def test_a_stage_recounted_gives_the_committed_counts() -> None:
    names = [rung.name for rung in rungs()]
    stage = "attention/02_block_tile_1d"
    committed = json.loads((DATA / "ncu" / "recounted-0.json").read_text(encoding="utf-8"))
    assert simulate(names.index(stage), 0) == committed[stage]


def test_the_page_tells_frozen_predictions_from_counts_corrected_later() -> None:
    row = replace(_row(global_load_sectors=5), recounted=_BASE | {"global_load_sectors": 5})
    said = page([row], [_pair()])
    assert "8 of 8 counters are equal (100.0 %), as the simulator counts now." in said
    assert "frozen before the profile, 7 were (87.5 %)." in said
    assert "global_load_sectors of `sgemm/a` at 8, 4 predicted, 5 now." in said


def test_the_page_counts_what_did_not_repeat_and_what_of_the_rest_is_equal() -> None:
    rows = [
        _row(shared_store_conflicts=9, global_load_sectors=9),
        replace(_row(shared_store_conflicts=9), size="7"),
    ]
    said = page(rows, [_pair(shared_store_conflicts=6), _pair(changed=True)])
    assert "Of the 16 counters" in said
    assert "1 differ between" in said
    assert "shared_store_conflicts of `sgemm/a`: 4, then 6" in said
    assert "7 of 7 equal the simulator's; `sgemm/a`, of another tile by now, left out." in said
    assert re.search(r"Of the 3 below that are not equal, 1 are .* the other 2 were", said)
