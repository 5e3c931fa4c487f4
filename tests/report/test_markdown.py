"""The report: outcome first, failures in full, the rest folded, nothing of a stranger's alive."""

from __future__ import annotations

import dataclasses
import re

from ci.report.markdown import report
from ci.results.model import CaseVerdict, Counters, GateResult, Status, SubCheck, Timing, Word
from tests import builders
from tests.builders import CASE

TEXT = "acc += A[k | lda] * `x`; // <b>@owner"


def _failing() -> GateResult:
    """Return a result with a regression, wrong numbers, a finding and an unchanged case."""
    names = ["01_naive", "02_tile", "03_wide", "04_same"]
    ids = [f"sgemm/{name}[M=64,N=64,K=64]" for name in names]
    line = builders.line(14, TEXT, global_load_sectors=8192)
    wrong = SubCheck(name="M=33", passed=False, max_error=0.25, bound=1e-5, detail="17 of 561")
    head = [
        builders.case(ids[0], counters=Counters(global_load_sectors=8192), lines=(line,)),
        builders.case(ids[1], status=Status.INCORRECT, findings=(builders.finding(),)),
        builders.case(ids[2], status=Status.INCORRECT, own_check=wrong),
        builders.case(ids[3]),
    ]
    base = builders.record(
        *(builders.case(id_) for id_ in ids), stages=[builders.stage(name) for name in names]
    )
    stages = [builders.stage(name, identity="2222") for name in names]
    return builders.gate(base, builders.record(*head, stages=stages))


def _one(case: CaseVerdict) -> str:
    return report(dataclasses.replace(_failing(), cases=(case,)))


def _cells(row: str) -> int:
    """Return the number of cells that GitHub makes of a table's row."""
    return len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) - 1


def test_the_outcome_and_the_next_step_come_first() -> None:
    first = report(_failing()).splitlines()[0]
    assert first.startswith("**failed: 3 of 4 cases")
    assert "Next: " in first


def test_what_failed_comes_before_everything_else() -> None:
    text = report(_failing())
    places = [text.index(part) for part in ("### REGRESSION", "### INCORRECT", "<details>")]
    assert places == sorted(places)


def test_a_changed_figure_has_both_values_and_its_line() -> None:
    rows = [row for row in report(_failing()).splitlines() if row.startswith("| global load")]
    (row,) = rows
    assert row == (
        r"| global load sectors | 1,024 | 8,192 | worse | sgemm/01\_naive.cu:14 "
        "<code>acc += A&#91;k &#124; lda&#93; &#42; &#96;x&#96;; // &lt;b&gt;@owner</code> "
        "| 0 | 8,192 |"
    )


def test_findings_and_wrong_sub_checks_are_listed() -> None:
    text = report(_failing())
    assert r"| out-of-bounds read | sgemm/01\_naive.cu:21 | 512 |" in text
    assert "| M=33 | 0.25 | 1e-05 | 17 of 561 |" in text


def test_unchanged_cases_are_folded() -> None:
    text = report(_failing())
    folded = text[text.index("<details>") : text.index("</details>")]
    assert "<summary>Unchanged: 1</summary>\n\n| case | why |" in folded
    assert "sgemm/04_same" in folded


def test_an_acknowledged_regression_is_listed_as_such_and_not_as_a_failure() -> None:
    text = _one(builders.verdict(Word.REGRESSION, acknowledged="pays for itself"))
    assert "### Acknowledged" in text
    assert "REGRESSION: a reason (acknowledged: pays for itself)" in text
    assert "### REGRESSION" not in text


def test_every_verdict_word_has_its_place() -> None:
    for word in Word:
        assert CASE in _one(builders.verdict(word)), word


def test_many_sub_checks_are_cut_with_their_number() -> None:
    wrong = tuple(builders.subcheck(f"M={n}", detail="all wrong") for n in range(45))
    case = dataclasses.replace(builders.verdict(Word.INCORRECT), wrong=wrong)
    text = _one(case)
    assert text.count("all wrong") == 20
    assert "and 25 more, in verdict.json" in text


def test_base_head_and_machine_are_named() -> None:
    text = report(_failing())
    assert f"| head | `{'a' * 40}` (HEAD): Unroll the inner loop |" in text
    assert "| machine | simulator (simulator), checkout |" in text
    assert r"| architectures | compute\_80, sm\_90 |" in text


def test_head_checked_alone_is_said() -> None:
    text = report(builders.gate(None, builders.record(builders.case())))
    assert "| base | none: head was checked alone |" in text


def test_notes_are_listed() -> None:
    text = report(dataclasses.replace(_failing(), notes=("12 cases need a GPU",)))
    assert "### Notes\n\n- 12 cases need a GPU" in text


def test_a_strangers_text_stays_text_wherever_it_stands() -> None:
    evil = "</details>\n| x | <script> `@owner` [a](http://b) #1"
    revision = dataclasses.replace(builders.revision(), subject=evil, described=evil)
    finding = dataclasses.replace(builders.finding(), kind=evil, example=evil, subcheck=evil)
    wrong = SubCheck(name=evil, passed=False, max_error=None, bound=None, detail=evil)
    change = dataclasses.replace(builders.change(), place=evil, place_text=evil)
    case = dataclasses.replace(
        builders.verdict(Word.INCORRECT, change, id_=evil, reason=evil),
        findings=(finding,),
        wrong=(wrong,),
    )
    text = report(
        dataclasses.replace(
            _failing(), cases=(case,), notes=(evil,), sentence=evil, head=revision, base=revision
        )
    )
    without_spans = re.sub(r"\\.", "", text)
    assert "<script" not in without_spans
    assert "</details>" not in without_spans
    assert "`@owner`" not in without_spans
    assert "](" not in without_spans
    assert "http://" not in text.replace("http&#58;//", "").replace(r"http\://", "")


def test_every_row_of_a_table_has_the_cells_of_its_head() -> None:
    case = builders.verdict(Word.NEW, id_="a|b\\", reason="c|d\\|e\\")
    for text in (report(_failing()), _one(case)):
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert len({_cells(row) for row in table.splitlines()}) == 1, table


def test_a_slower_case_has_its_times_with_units_and_what_the_other_setting_says() -> None:
    timing = Timing(
        setting="standard",
        ratio=1.019,
        low=1.017,
        high=1.022,
        rounds=8,
        base_s=3.21e-3,
        head_s=3.27e-3,
        smallest_detectable=0.0,
        other_setting=Word.REGRESSION,
    )
    slower = dataclasses.replace(builders.verdict(Word.REGRESSION), code="slower", timing=timing)
    assert (
        "| +1.90 % | 3.21 ms | 3.27 ms | +1.70 % to +2.20 % | 8 | standard | REGRESSION |"
        in _one(slower).splitlines()
    )
