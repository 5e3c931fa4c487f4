"""What pages say about a run, a gate and a machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ci.results.model import Outcome, RunRecord
from dashboards import build_site
from dashboards.case_page import case_page
from dashboards.history import histories
from dashboards.links import case_path
from tests.dashboards import example_records as example
from tests.dashboards.page_reader import Page, PageTable

GPU = replace(example.MACHINE, name="h200-0", device="cuda")
LADDER = "Ladder sgemm at M=256, N=256, K=256"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the front page of a site with three commits and a failed gate."""
    folder = tmp_path_factory.mktemp("site")
    return build_site(example.three_records(), [example.gate()], folder)


def _case(index: Path, stage: str) -> Page:
    return Page(index.parent / case_path(example.case_id(stage)))


def _row(table: PageTable, text: str) -> list[str]:
    return next(
        [" ".join(cell.text.split()) for cell in row]
        for row in table.body
        if any(text in cell.text for cell in row)
    )


def test_the_front_page_leads_with_the_gates_sentence_and_the_worst_case(index: Path) -> None:
    page = Page(index)
    assert page.text.index("Gate failed") < page.text.index("Reason")
    assert example.gate().sentence in page.text
    verdicts = page.table("Verdicts")
    assert [row[0].text.split()[-1] for row in verdicts.body] == [
        "Incorrect", "Incorrect", "Error", "Error",
        "Regression", "Regression", "Missing", "Missing",
    ]  # fmt: skip
    assert len(page.table("Unchanged cases").body) == 10


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_its_own_word(tmp_path: Path, outcome: Outcome) -> None:
    gate = replace(example.gate(), verdict=outcome)
    assert f"Gate {outcome}" in Page(build_site([], [gate], tmp_path)).text


def test_a_head_that_was_checked_alone_is_named(tmp_path: Path) -> None:
    gate = replace(example.gate(), base=None, notes=("Head is checked alone: no parent.",))
    page = Page(build_site([example.record(2)], [gate], tmp_path))
    assert "head was checked alone" in page.text
    assert "Head is checked alone: no parent." in page.text


def test_the_ladder_has_a_row_per_stage_in_ladder_order(index: Path) -> None:
    table = Page(index).table(LADDER)
    assert [row[0].text.strip() for row in table.body] == [shape.name for shape in example.LADDER]
    naive = _row(table, "01_naive")
    assert naive[2:7] == ["32", "0", "2", "100.0", "0.00"]
    assert naive[7:10] == ["17,301,504", "16.50", "1.000"]


def test_failed_and_absent_cases_show_words_and_dashes_never_zero(index: Path) -> None:
    table = Page(index).table(LADDER)
    wrong, gone = _row(table, "08_double_buffer"), _row(table, "09_warp_tile")
    assert wrong[1] == "✕ Incorrect"
    assert gone[1] == "○ Absent"
    assert set(gone[2:13]) == set(wrong[7:13]) == {"\u2013"}


def test_a_regressed_case_shows_base_head_and_the_line(index: Path) -> None:
    page = _case(index, "03_shared_tile")
    changes = page.table("What changed between base and head")
    assert _row(changes, "Global load sectors")[2:6] == [
        "131,072", "196,608", "+65,536 (+50.0 %)", "worse",
    ]  # fmt: skip
    counters = page.table("Counters of one launch")
    assert _row(counters, "Global load sectors")[1:] == ["131,072", "196,608", "+65,536 (+50.0 %)"]
    assert _row(counters, "Global store sectors")[3] == "same"
    assert _row(page.table("Counters per source line"), "a_tile[inner][row] =")[0] == "31"


def test_an_incorrect_case_shows_findings_and_failed_sub_checks_first(index: Path) -> None:
    page = _case(index, "08_double_buffer")
    finding = _row(page.table("Findings"), example.RACE.kind)
    assert finding[1:3] == ["sgemm/08_double_buffer.cu:47", "1,024"]
    assert finding[3] == example.RACE.example
    checks = page.table("Sub-checks, failed first")
    assert [row[0].text.split()[-1] for row in checks.body] == ["Failed"] + ["Passed"] * 9
    assert "Counters of one launch" not in [table.caption for table in page.tables]


def test_a_compilers_message_is_shown_whole(index: Path) -> None:
    assert example.COMPILE_MESSAGE in _case(index, "05_block_tile_2d").text


def test_the_history_table_holds_every_commit_and_says_where_a_value_is_missing(
    index: Path,
) -> None:
    table = _case(index, "09_warp_tile").table("History, newest first")
    assert [row[0].text.strip() for row in table.body] == [
        commit[:7] for commit in reversed(example.HASHES)
    ]
    newest = [cell.text.strip() for cell in table.body[0]]
    assert newest[2].split() == ["○", "Absent"]
    assert set(newest[3:]) == {"\u2013"}


def test_two_machines_of_one_commit_stay_apart(tmp_path: Path) -> None:
    records = [
        example.record(0),
        example.record(0, machine=GPU, factors={"01_naive": 2.0}),
    ]
    page = Page(build_site(records, [], tmp_path))
    found = [_row(table, "01_naive")[7] for table in page.tables if table.caption == LADDER]
    assert found == ["34,603,008", "17,301,504"]
    case = _case(page.path, "01_naive")
    assert {"machine-h200-0", "machine-simulator"} <= case.ids


def test_a_gate_of_one_machine_says_nothing_about_another() -> None:
    history = histories(
        [*example.three_records(), example.record(2, machine=GPU)], [example.gate()]
    )
    page = case_page(example.case_id("03_shared_tile"), history)
    words = {section.machine: section.badge.word for section in page.sections}
    assert words == {"h200-0": "Passed", "simulator": "Regression"}


def _interrupted() -> RunRecord:
    return replace(example.record(0), complete=False, error="kernels/suite.py: no ladders")


def test_an_interrupted_run_and_a_suite_that_does_not_load_are_announced(tmp_path: Path) -> None:
    text = Page(build_site([_interrupted()], [], tmp_path)).text
    assert "was interrupted: cases may be absent" in text
    assert "kernels/suite.py: no ladders" in text


def test_a_run_of_selected_cases_says_which(tmp_path: Path) -> None:
    record = replace(example.record(0), selection="naive or tile")
    assert "selected by: naive or tile" in Page(build_site([record], [], tmp_path)).text


def test_an_acknowledgement_is_shown_with_its_reason(tmp_path: Path) -> None:
    gate = example.gate()
    cases = tuple(replace(case, acknowledged="bigger tile, faster") for case in gate.cases)
    index = build_site(example.three_records(), [replace(gate, cases=cases)], tmp_path)
    assert "Acknowledged: bigger tile, faster" in Page(index).text
    assert "Acknowledged: bigger tile, faster" in _case(index, "03_shared_tile").text
