"""The table on a terminal: aligned, within its width, whole where it matters."""

from __future__ import annotations

import dataclasses

import pytest

from ci.report.terminal import case_line, verdict_table
from ci.results.model import Counters, GateResult, Status, Word
from tests import builders
from tests.builders import CASE

OTHER = "sgemm/02_tile[M=64,N=64,K=64]"


def _result() -> GateResult:
    base = builders.record(builders.case(), builders.case(OTHER))
    worse = builders.case(counters=Counters(global_load_sectors=8192))
    stages = [builders.stage(identity="2222"), builders.stage("02_tile", identity="2222")]
    return builders.gate(base, builders.record(worse, builders.case(OTHER), stages=stages))


def test_a_table_without_a_width_has_one_aligned_line_a_case() -> None:
    assert verdict_table(_result(), 0) == (
        "REGRESSION    sgemm/01_naive[M=64,N=64,K=64]  "
        "global load sectors 1,024 → 8,192 (8.00 times)\n"
        "UNCHANGED     sgemm/02_tile[M=64,N=64,K=64]   code differs, every figure equal\n"
        "1 UNCHANGED, 1 REGRESSION\n"
        "failed: 1 of 2 cases (1 REGRESSION). Next: see the lines with "
        f"flopwatch explain '{CASE}'; if it is meant, acknowledge it.\n"
    )


@pytest.mark.parametrize("width", [80, 120])
def test_reasons_are_wrapped_within_the_width_and_kept_whole(width: int) -> None:
    reason = "every word of this reason is still there " * 5
    case = builders.verdict(Word.ERROR, reason=reason)
    rows = verdict_table(dataclasses.replace(_result(), cases=(case,)), width).splitlines()
    table = rows[:-2]
    assert len(table) > 1
    assert all(len(row) <= width for row in table)
    assert " ".join(" ".join(table).split()) == f"ERROR {CASE} {reason}".strip()


def test_reasons_go_below_a_long_id_on_a_narrow_terminal() -> None:
    first, second, *_ = verdict_table(_result(), 60).splitlines()
    assert first == f"REGRESSION    {CASE}"
    assert second == "              global load sectors 1,024 → 8,192 (8.00 times)"


def test_an_acknowledged_verdict_says_so() -> None:
    case = builders.verdict(Word.REGRESSION, acknowledged="pays for itself")
    table = verdict_table(dataclasses.replace(_result(), cases=(case,)), 0)
    assert "a reason (acknowledged: pays for itself)" in table


def test_notes_stand_above_the_sentence() -> None:
    rows = verdict_table(dataclasses.replace(_result(), notes=("no GPU here",)), 0).splitlines()
    assert rows[2] == "note: no GPU here"
    assert rows[-1].startswith("failed: ")


def test_a_result_without_cases_is_its_sentence() -> None:
    result = builders.gate(None, builders.record())
    assert verdict_table(result, 80) == f"{result.sentence}\n"


def test_colour_comes_only_when_asked_for_and_leaves_the_text_alone() -> None:
    plain = verdict_table(_result(), 80)
    coloured = verdict_table(_result(), 80, colour=True)
    assert "\x1b" not in plain
    assert "\x1b[31mREGRESSION" in coloured
    for escape in ("\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"):
        coloured = coloured.replace(escape, "")
    assert coloured == plain


def test_a_strangers_control_codes_do_not_reach_the_terminal() -> None:
    case = builders.verdict(Word.ERROR, reason="bad\x1b[2Jscreen\nnext")
    table = verdict_table(dataclasses.replace(_result(), cases=(case,)), 0)
    assert "bad [2Jscreen next" in table
    assert "\x1b" not in table


def test_a_case_line_names_status_id_and_time() -> None:
    assert case_line(builders.case()) == f"PASSED        {CASE}  0.2 s"


def test_a_case_line_gives_the_reason_on_the_same_line() -> None:
    line = case_line(builders.case(status=Status.SKIPPED, reason="K < 8\nreally"))
    assert line == f"SKIPPED       {CASE}  0.2 s  K < 8 really"
