"""What GitHub is told: sizes, conclusions, source lines, and nothing of a stranger's markup."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.report import checks
from ci.report.event import Target
from ci.results.model import Counters, GateResult, Outcome, RunRecord, Status
from tests import builders

ORIGIN = checks.Origin(workflow="pr-bench", link="https://github.com/o/r/actions/runs/9")
TARGET = Target(head="a" * 40, base="b" * 40, merge="d" * 40, pull=7)


def result(cases: int = 1, *, kind: str = "out-of-bounds read") -> GateResult:
    ids = [f"sgemm/01_naive[M={size},N=64,K=64]" for size in range(1, cases + 1)]
    base = builders.record(*map(builders.case, ids), of=builders.revision("b" * 40))
    head = builders.record(
        *(
            builders.case(
                id_,
                status=Status.INCORRECT,
                findings=(builders.finding(kind=kind, at=20 + number % 120),),
            )
            for number, id_ in enumerate(ids)
        )
    )
    return builders.gate(base, head)


def test_head_merge_and_base_are_each_named_as_what_they_are() -> None:
    first = checks.page(result(), TARGET).splitlines()[0]
    assert first == (
        f"head `{'a' * 40}`, measured as its test merge `{'d' * 40}`, base `{'b' * 40}`"
    )


def test_a_pull_request_that_moved_on_is_said() -> None:
    moved = replace(TARGET, moved_to="e" * 40)
    assert f"has moved on to `{'e' * 40}`" in checks.page(result(), moved)


def test_a_comment_starts_with_its_marker_and_says_the_whole_verdict() -> None:
    body = checks.comment(result(), TARGET, ORIGIN)
    assert body.splitlines()[0] == "<!-- flopwatch 1 pr-bench -->"
    assert result().sentence.split(":")[0] in body


def test_a_marker_cannot_be_left_by_the_workflows_name() -> None:
    marker = checks.Origin(workflow="x --> <b>\n", link="").marker
    assert marker == "<!-- flopwatch 1 x------b-- -->"


def test_a_huge_verdict_is_cut_with_a_link_and_its_folds_closed() -> None:
    huge = result(2000)
    body = checks.comment(huge, TARGET, ORIGIN)
    assert len(body) <= checks.MOST_COMMENT_CHARACTERS
    assert body.endswith(f"Cut here: [the whole report]({ORIGIN.link}).\n")
    assert body.count("<details>") == body.count("</details>")
    summary = checks.job_summary(result(6000), TARGET, ORIGIN)
    assert len(summary.encode()) <= checks.MOST_SUMMARY_BYTES


@given(text=st.text(), most=st.integers(min_value=300, max_value=400))
def test_nothing_that_was_cut_is_longer_than_allowed(text: str, most: int) -> None:
    assert len(checks.cut(text * 20, most, ORIGIN)) <= most


@pytest.mark.parametrize(
    ("outcome", "conclusion"),
    [(Outcome.PASSED, "success"), (Outcome.FAILED, "failure"), (Outcome.UNDECIDED, "neutral")],
)
def test_the_check_run_concludes_as_the_gate_does(outcome: Outcome, conclusion: str) -> None:
    (check,) = checks.completed(replace(result(), verdict=outcome), TARGET, ORIGIN, "kernels")
    assert check["conclusion"] == conclusion
    assert check["head_sha"] == TARGET.head


def test_no_verdict_is_never_green() -> None:
    assert checks.without_verdict(TARGET, ORIGIN, "gone")["conclusion"] == "failure"


def test_annotations_come_fifty_a_call_and_not_more_than_the_cap() -> None:
    calls = list(checks.completed(result(1000), TARGET, ORIGIN, "kernels"))
    sizes = [len(call["output"]["annotations"]) for call in calls]  # type: ignore[arg-type,call-overload,index]
    assert sizes == [50, 50, 20]


def test_equal_remarks_of_many_cases_are_one() -> None:
    remarks = checks.source_remarks(result(121), "kernels")
    assert len(remarks) == 120
    assert remarks[0].path == "kernels/sgemm/01_naive.cu"
    assert remarks[0].line == 20
    assert remarks[0].message.endswith("(and 1 more like it)")
    assert remarks[0].failing


def test_a_counter_that_got_worse_is_shown_at_its_line() -> None:
    def counted(sectors: int) -> RunRecord:
        line = builders.line(14, "acc += A[i] * B[j];", global_load_sectors=sectors)
        counters = Counters(global_load_sectors=sectors)
        identity = str(sectors)
        return builders.record(
            builders.case(counters=counters, lines=(line,)),
            stages=(builders.stage(identity=identity),),
        )

    verdict = builders.gate(counted(1024), counted(8192))
    (remark,) = checks.source_remarks(verdict, "kernels")
    assert (remark.path, remark.line) == ("kernels/sgemm/01_naive.cu", 14)
    assert remark.title == "global load sectors"
    assert "1,024 to 8,192" in remark.message


@pytest.mark.parametrize("file", ["/etc/passwd", "../../secret.cu", ""])
def test_a_source_file_outside_the_suite_gets_no_annotation(file: str) -> None:
    finding = replace(builders.finding(), file=file)
    bad = replace(result().cases[0], findings=(finding,))
    assert checks.source_remarks(replace(result(), cases=(bad,)), "kernels") == []
