"""Acknowledgements accept a named change once, and never a wrong result."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.gate.acknowledge import Acknowledgement, acknowledge, new_lines, parse
from ci.gate.errors import AcknowledgementError
from ci.results.model import CaseVerdict, Counters, Outcome, Status, Word
from tests import builders
from tests.builders import CASE, change, gate, record, verdict

REGRESSION = verdict(Word.REGRESSION, change(head=1280))
"""1.25 times worse."""


def _covered(text: str, judged: CaseVerdict = REGRESSION) -> str:
    return acknowledge(judged, parse(text))[0].acknowledged


def test_a_line_is_read_with_its_number() -> None:
    text = "# accepted changes\n\nsgemm/* | local_bytes | 1.25 | needs fewer registers | for now\n"
    assert parse(text) == (
        Acknowledgement(
            pattern="sgemm/*",
            metric="local_bytes",
            bound=1.25,
            reason="needs fewer registers | for now",
            line=3,
        ),
    )


def test_a_star_is_no_bound() -> None:
    assert parse("* | missing | * | gone")[0].bound == math.inf


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("sgemm/*", "expected 'case pattern"),
        ("sgemm/* | local_bytes | 2", "expected 'case pattern"),
        ("sgemm/* | local_bytes | 2 |", "expected 'case pattern"),
        (" | local_bytes | 2 | why", "expected 'case pattern"),
        ("sgemm/* | speed | 2 | why", "as metric, got 'speed'"),
        ("sgemm/* | registers | 2 | why", "as metric, got 'registers'"),
        ("sgemm/* | * | 2 | why", "as metric"),
        ("sgemm/* | local_bytes | 0.9 | why", "at least 1"),
        ("sgemm/* | local_bytes | nan | why", "at least 1"),
        ("sgemm/* | local_bytes | inf | why", "at least 1"),
        ("sgemm/* | local_bytes | 25 % | why", "at least 1"),
    ],
)
def test_a_malformed_line_is_refused_with_its_number(line: str, complaint: str) -> None:
    with pytest.raises(AcknowledgementError, match=f"acknowledgements, line 2: .*{complaint}"):
        parse(f"# first\n{line}\n")


@given(st.text())
def test_any_text_is_read_or_refused_and_never_a_crash(text: str) -> None:
    with contextlib.suppress(AcknowledgementError):
        parse(text)


@pytest.mark.parametrize("bound", ["1.25", "2", "*"])
def test_a_regression_within_the_bound_is_covered(bound: str) -> None:
    assert _covered(f"{CASE} | global_load_sectors | {bound} | why") == "why"


@pytest.mark.parametrize(
    "line",
    [
        f"{CASE} | global_load_sectors | 1.24 | beyond the bound",
        f"{CASE} | global_store_sectors | * | another metric",
        f"{CASE} | missing | * | another thing",
        "sgemm/02_* | global_load_sectors | * | another case",
        "sgemm | global_load_sectors | * | a part of the id only",
    ],
)
def test_a_line_about_something_else_covers_nothing(line: str) -> None:
    assert _covered(line) == ""


def test_brackets_in_a_pattern_are_no_wildcards() -> None:
    assert _covered("sgemm/01_naive[M=64,*] | global_load_sectors | * | why") == "why"
    assert _covered("sgemm/01_naiveM | global_load_sectors | * | why") == ""


def test_every_failing_change_must_be_covered() -> None:
    both = verdict(Word.REGRESSION, change(), change("local_bytes", base=8, head=16))
    one = f"{CASE} | global_load_sectors | * | why"
    assert _covered(one, both) == ""
    assert _covered(f"{one}\n* | local_bytes | 2 | also", both) == "why; also"


def test_figures_that_are_only_shown_need_no_cover() -> None:
    shown = change("registers", base=32, head=64, where="sm_90 A=row", fails=False)
    regression = verdict(Word.REGRESSION, change(), shown)
    assert _covered(f"{CASE} | global_load_sectors | * | why", regression) == "why"


def test_something_from_nothing_is_covered_without_a_bound_only() -> None:
    spilled = verdict(Word.REGRESSION, change("local_bytes", base=0, head=8))
    assert _covered(f"{CASE} | local_bytes | 1000000 | why", spilled) == ""
    assert _covered(f"{CASE} | local_bytes | * | why", spilled) == "why"


def test_fewer_resident_blocks_are_bounded_the_right_way_round() -> None:
    fewer = verdict(Word.REGRESSION, change("resident_blocks", base=8, head=2, where="sm_90 A=row"))
    assert _covered(f"{CASE} | resident_blocks | 2 | why", fewer) == ""
    assert _covered(f"{CASE} | resident_blocks | 4 | why", fewer) == "why"


def test_a_missing_case_is_covered_by_its_own_metric_only() -> None:
    missing = verdict(Word.MISSING)
    assert _covered(f"{CASE} | missing | * | why", missing) == "why"
    assert _covered(f"{CASE} | local_bytes | * | why", missing) == ""


def test_missing_figures_do_not_excuse_worse_ones() -> None:
    missing = verdict(Word.MISSING, change())
    assert _covered(f"{CASE} | missing | * | why", missing) == ""
    both = f"{CASE} | missing | * | why\n{CASE} | global_load_sectors | * | also"
    assert _covered(both, missing) == "also; why"


@pytest.mark.parametrize("word", [Word.INCORRECT, Word.ERROR])
def test_a_wrong_result_is_never_covered(word: Word) -> None:
    text = f"{CASE} | global_load_sectors | * | why\n{CASE} | missing | * | why"
    judged = verdict(word, change())
    assert _covered(text, judged) == ""
    assert judged.fails


def test_only_lines_that_head_adds_count_and_keep_their_numbers() -> None:
    old = "sgemm/* | local_bytes | 2 | once accepted"
    added = "sgemm/* | stack_bytes | 2 | accepted now"
    text = new_lines(f"# title\n{old}\n", f"# title\n  {old}  \n{added}\n")
    assert [(line.metric, line.line) for line in parse(text)] == [("stack_bytes", 3)]


def test_an_acknowledged_regression_passes_the_gate_and_is_counted() -> None:
    base = record(builders.case())
    worse = builders.case(counters=Counters(global_load_sectors=1280))
    head = record(worse, stages=[builders.stage(identity="2222")])
    lines = parse(f"{CASE} | global_load_sectors | 1.25 | pays for itself")
    result = gate(base, head, acknowledgements=lines)
    assert result.verdict is Outcome.PASSED
    assert result.cases[0].acknowledged == "pays for itself"
    assert "1 REGRESSION), 1 of them acknowledged" in result.sentence
    assert gate(base, head).verdict is Outcome.FAILED


def test_an_acknowledgement_that_covers_nothing_is_noted() -> None:
    lines = parse("# title\nsgemm/99_* | missing | * | a typo")
    result = gate(record(builders.case()), record(builders.case()), acknowledgements=lines)
    assert result.notes == (
        "the acknowledgement in line 2 (sgemm/99_* | missing) covers nothing in this gate",
    )


def test_a_finding_fails_whatever_is_acknowledged() -> None:
    racy = builders.case(status=Status.INCORRECT, findings=(builders.finding(),))
    lines = parse("* | missing | * | why\n* | local_bytes | * | why")
    result = gate(record(builders.case()), record(racy), acknowledgements=lines)
    assert result.verdict is Outcome.FAILED
