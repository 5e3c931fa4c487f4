"""The verdict on one case: every rule, and the fault that it must see."""

from __future__ import annotations

import pytest

from ci.results.model import CaseVerdict, Counters, StageResult, Status, Word
from tests import builders
from tests.builders import CASE, verdict_on

FAILED = [Status.COMPILE_ERROR, Status.LAUNCH_ERROR, Status.TIMEOUT, Status.INCORRECT]


def _ruling(verdict: CaseVerdict) -> tuple[Word, str]:
    return verdict.verdict, verdict.code


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (Status.COMPILE_ERROR, "compile_error"),
        (Status.LAUNCH_ERROR, "launch_error"),
        (Status.TIMEOUT, "timeout"),
    ],
)
def test_a_case_without_a_result_at_head_is_an_error(status: Status, code: str) -> None:
    head = builders.case(status=status, reason="01_naive.cu(12): error: expected a ;\nmore")
    verdict = verdict_on(builders.case(), head)
    assert _ruling(verdict) == (Word.ERROR, code)
    assert verdict.reason == f"{status}: 01_naive.cu(12): error: expected a ;"
    assert verdict.fails


def test_a_finding_is_incorrect_and_named_with_its_line() -> None:
    findings = (builders.finding(), builders.finding(kind="write-after-read race"))
    head = builders.case(status=Status.INCORRECT, findings=findings)
    verdict = verdict_on(builders.case(), head)
    assert _ruling(verdict) == (Word.INCORRECT, "findings")
    assert verdict.reason == (
        "out-of-bounds read at sgemm/01_naive.cu:21, seen 512 times: "
        "A[4096] by thread (0, 0, 0) of block (1, 0, 0); 1 more finding"
    )
    assert verdict.findings == findings


def test_wrong_numbers_are_incorrect_and_named_with_their_elements() -> None:
    plan = (
        builders.subcheck("M=1 N=1 K=1"),
        builders.subcheck("M=33 N=17 K=5", detail="17 of 561 wrong, all in row 32"),
        builders.subcheck("M=64 N=65 K=3", detail="64 of 4160 wrong"),
    )
    verdict = verdict_on(
        builders.case(),
        builders.case(status=Status.INCORRECT),
        head_stage=builders.stage(subchecks=plan),
    )
    assert _ruling(verdict) == (Word.INCORRECT, "numbers")
    assert verdict.reason == (
        "M=33 N=17 K=5: 17 of 561 wrong, all in row 32; 1 more wrong sub-check"
    )
    assert verdict.wrong == plan[1:]


def test_an_incorrect_case_with_nothing_listed_keeps_its_own_reason() -> None:
    head = builders.case(status=Status.INCORRECT, reason="Freivalds' check failed")
    assert verdict_on(None, head).reason == "Freivalds' check failed"


@pytest.mark.parametrize(
    "stage",
    [
        builders.stage(findings=(builders.finding(),)),
        builders.stage(subchecks=(builders.subcheck(detail="all wrong"),)),
    ],
)
def test_a_fault_in_the_stages_plan_fails_a_case_said_to_have_passed(
    stage: StageResult,
) -> None:
    verdict = verdict_on(builders.case(), builders.case(), head_stage=stage)
    assert verdict.verdict is Word.INCORRECT
    assert verdict.head == "INCORRECT"


def test_a_case_whose_own_sub_check_failed_is_incorrect_whatever_its_status() -> None:
    head = builders.case(own_check=builders.subcheck(detail="1 of 4096 wrong"))
    assert verdict_on(builders.case(), head).verdict is Word.INCORRECT


def test_a_stage_that_does_not_build_is_an_error_whatever_its_cases_say() -> None:
    stage = builders.stage(error="ptxas: no such instruction")
    verdict = verdict_on(builders.case(), builders.case(), head_stage=stage)
    assert _ruling(verdict) == (Word.ERROR, "compile_error")
    assert verdict.reason == "COMPILE_ERROR: ptxas: no such instruction"


def test_the_same_wrong_case_at_both_sides_still_fails() -> None:
    wrong = builders.case(status=Status.INCORRECT)
    stage = builders.stage()
    assert verdict_on(wrong, wrong, base_stage=stage, head_stage=stage).fails


@pytest.mark.parametrize("status", FAILED)
def test_failed_at_base_and_passed_at_head_is_fixed(status: Status) -> None:
    verdict = verdict_on(builders.case(status=status, reason="why"), builders.case())
    assert _ruling(verdict) == (Word.IMPROVEMENT, "fixed")
    assert verdict.reason == f"PASSED, {status} at base: why"
    assert verdict.changes == ()


def test_a_case_that_base_has_not_is_new() -> None:
    verdict = verdict_on(None, builders.case())
    assert _ruling(verdict) == (Word.NEW, "added")
    assert (verdict.base, verdict.head) == ("absent", "PASSED")
    assert not verdict.fails


def test_gate_fails_when_a_base_case_is_missing() -> None:
    verdict = verdict_on(builders.case(), None)
    assert _ruling(verdict) == (Word.MISSING, "removed")
    assert (verdict.base, verdict.head) == ("PASSED", "absent")
    assert verdict.fails


@pytest.mark.parametrize("status", [Status.SKIPPED, Status.NOT_EMULATED])
def test_a_case_that_no_longer_runs_is_missing(status: Status) -> None:
    verdict = verdict_on(builders.case(), builders.case(status=status, reason="K < 8"))
    assert verdict.verdict is Word.MISSING
    assert verdict.reason == f"PASSED at base, {status} at head: K < 8"


@pytest.mark.parametrize(
    ("base", "head", "word", "code"),
    [
        (Status.SKIPPED, Status.SKIPPED, Word.UNCHANGED, "skipped"),
        (None, Status.SKIPPED, Word.NEW, "skipped"),
        (Status.INCORRECT, Status.SKIPPED, Word.NEW, "skipped"),
        (Status.NOT_EMULATED, Status.SKIPPED, Word.NEW, "skipped"),
        (None, Status.NOT_EMULATED, Word.NOT_EMULATED, "not_emulated"),
        (Status.SKIPPED, Status.NOT_EMULATED, Word.NOT_EMULATED, "not_emulated"),
        (Status.NOT_EMULATED, Status.NOT_EMULATED, Word.NOT_EMULATED, "not_emulated"),
        (Status.SKIPPED, Status.PASSED, Word.NEW, "added"),
        (Status.NOT_EMULATED, Status.PASSED, Word.NEW, "added"),
    ],
)
def test_a_case_not_executed_at_both_sides_does_not_fail(
    base: Status | None, head: Status, word: Word, code: str
) -> None:
    before = None if base is None else builders.case(status=base)
    verdict = verdict_on(before, builders.case(status=head))
    assert _ruling(verdict) == (word, code)
    assert not verdict.fails


def test_identical_code_is_unchanged() -> None:
    stage = builders.stage()
    verdict = verdict_on(builders.case(), builders.case(), base_stage=stage, head_stage=stage)
    assert _ruling(verdict) == (Word.UNCHANGED, "identical")
    assert verdict.reason == "identical code"


def test_identical_code_needs_no_figures_of_base() -> None:
    stage = builders.stage()
    before = builders.case(counted=False)
    verdict = verdict_on(before, builders.case(), base_stage=stage, head_stage=stage)
    assert verdict.code == "identical"
    verdict = verdict_on(builders.case(), before, base_stage=stage, head_stage=stage)
    assert verdict.code == "identical"


def test_identical_code_with_a_worse_launch_is_a_regression() -> None:
    stage = builders.stage()
    head = builders.case(counters=Counters(global_load_sectors=4096))
    verdict = verdict_on(builders.case(), head, base_stage=stage, head_stage=stage)
    assert _ruling(verdict) == (Word.REGRESSION, "counters")
    assert verdict.reason.startswith("identical code, other launch: global load sectors")


def test_two_stages_without_a_cubin_are_not_identical_code() -> None:
    stage = builders.stage(identity="", figures=())
    uncounted = builders.case(counted=False)
    verdict = verdict_on(uncounted, uncounted, base_stage=stage, head_stage=stage)
    assert _ruling(verdict) == (Word.INCONCLUSIVE, "not_comparable")


def test_other_code_with_equal_figures_is_unchanged() -> None:
    verdict = verdict_on(builders.case(), builders.case())
    assert _ruling(verdict) == (Word.UNCHANGED, "equal")
    assert verdict.reason == "code differs, every figure equal"


def test_counters_that_vanish_are_missing() -> None:
    verdict = verdict_on(builders.case(), builders.case(counted=False))
    assert _ruling(verdict) == (Word.MISSING, "figures_missing")
    assert verdict.reason == "base has figures that head lacks: counters"


def test_static_figures_that_vanish_are_missing() -> None:
    both = (builders.static(), builders.static(variant="A=column,B=row"))
    verdict = verdict_on(
        builders.case(),
        builders.case(),
        base_stage=builders.stage(identity="1111", figures=both),
        head_stage=builders.stage(identity="2222", figures=both[:1]),
    )
    assert _ruling(verdict) == (Word.MISSING, "figures_missing")
    assert verdict.reason.endswith("sm_90 A=column,B=row")


def test_a_worse_figure_is_named_with_values_ratio_and_line() -> None:
    text = "acc += A[row * lda + k] * B[k * ldb + column];"
    before = builders.case(
        counters=Counters(global_load_sectors=1024, shared_load_conflicts=4),
        lines=(builders.line(14, text, global_load_sectors=896),),
    )
    after = builders.case(
        counters=Counters(global_load_sectors=8192, shared_load_conflicts=5),
        lines=(builders.line(15, text, global_load_sectors=8064),),
    )
    verdict = verdict_on(before, after)
    assert _ruling(verdict) == (Word.REGRESSION, "counters")
    assert verdict.reason == (
        "global load sectors 1,024 → 8,192 (8.00 times), most at sgemm/01_naive.cu:15 "
        f"(896 → 8,064): {text} 1 more figure worse"
    )
    assert verdict.id == CASE


def test_one_worse_figure_outweighs_any_better_ones() -> None:
    before = builders.case(counters=Counters(global_load_sectors=8192, local_bytes=0))
    after = builders.case(counters=Counters(global_load_sectors=1024, local_bytes=8))
    verdict = verdict_on(before, after)
    assert verdict.verdict is Word.REGRESSION
    assert [change.metric for change in verdict.changes] == ["local_bytes", "global_load_sectors"]


def test_better_figures_alone_are_an_improvement_and_never_called_worse() -> None:
    before = builders.case(counters=Counters(global_load_sectors=8192))
    verdict = verdict_on(before, builders.case(counters=Counters(global_load_sectors=1024)))
    assert _ruling(verdict) == (Word.IMPROVEMENT, "counters")
    assert "8,192 → 1,024 (0.12 times)" in verdict.reason
    assert "worse" not in verdict.reason


def test_a_new_spill_is_a_static_regression() -> None:
    spilling = builders.static(spill_store_bytes=48, spill_load_bytes=48, stack_bytes=48)
    verdict = verdict_on(
        builders.case(),
        builders.case(),
        head_stage=builders.stage(identity="2222", figures=(spilling,)),
    )
    assert _ruling(verdict) == (Word.REGRESSION, "static")
    assert verdict.reason == ("sm_90 A=row,B=row: spill store bytes 0 → 48; 2 more figures worse")


def test_figures_that_are_only_shown_do_not_fail() -> None:
    more = builders.static(registers=64, occupancy=0.5, instructions={"FFMA": 64})
    before = builders.case(counters=Counters(global_load_requests=1))
    verdict = verdict_on(
        before,
        builders.case(counters=Counters(global_load_requests=9)),
        head_stage=builders.stage(identity="2222", figures=(more,)),
    )
    assert _ruling(verdict) == (Word.UNCHANGED, "shown")
    assert {change.metric for change in verdict.changes} == {
        "global_load_requests",
        "registers",
        "occupancy",
        "instructions",
    }
