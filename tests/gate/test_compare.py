"""Two records in, one verdict out: what is compared with what, and what the whole means."""

from __future__ import annotations

import dataclasses

import pytest

from ci.gate.compare import compare
from ci.gate.errors import DuplicateCaseError, MachineMismatchError
from ci.gate.policy import exit_code
from ci.results.model import CaseResult, Counters, Machine, Outcome, RunRecord, Status, Word
from tests import builders
from tests.builders import gate, record

OTHER = "sgemm/02_tile[M=64,N=64,K=64]"
WORSE = Counters(global_load_sectors=1229)
"""20 % more than the builders' case."""


def _head(*cases: CaseResult, complete: bool = True, selection: str = "") -> RunRecord:
    """Return a record whose code differs from base's."""
    stages = [builders.stage(identity="2222"), builders.stage("02_tile", identity="2222")]
    return record(*cases, stages=stages, complete=complete, selection=selection)


def test_a_gate_of_equal_records_passes_with_exit_code_0() -> None:
    result = gate(record(builders.case()), record(builders.case()))
    assert result.verdict is Outcome.PASSED
    assert exit_code(result.verdict) == 0
    assert result.counts == {"UNCHANGED": 1}
    assert result.sentence == "passed: 1 case (1 UNCHANGED). Nothing to do."


@pytest.mark.parametrize("count", [1, 256])
def test_any_number_of_regressions_is_exit_code_1(count: int) -> None:
    ids = [f"sgemm/01_naive[M={n},N=1,K=1]" for n in range(count)]
    base = record(*(builders.case(id_) for id_ in ids))
    result = gate(base, _head(*(builders.case(id_, counters=WORSE) for id_ in ids)))
    assert result.verdict is Outcome.FAILED
    assert exit_code(result.verdict) == 1
    assert result.counts == {"REGRESSION": count}


def test_the_sentence_of_an_improvement_agrees_with_its_exit_code() -> None:
    result = gate(record(builders.case(counters=WORSE)), _head(builders.case()))
    assert exit_code(result.verdict) == 0
    assert result.sentence == "passed: 1 case (1 IMPROVEMENT). Nothing to do."


def test_a_failed_gate_says_how_many_and_what_to_do_about_the_gravest() -> None:
    base = record(builders.case(), builders.case(OTHER))
    wrong = builders.case(OTHER, status=Status.INCORRECT)
    result = gate(base, _head(builders.case(counters=WORSE), wrong))
    assert result.sentence == (
        "failed: 2 of 2 cases (1 REGRESSION, 1 INCORRECT). "
        f"Next: look at the findings of {OTHER} on the page."
    )


def test_a_launch_error_fails_and_leaves_no_figure_anywhere() -> None:
    head = builders.case(status=Status.LAUNCH_ERROR, reason="out of memory")
    result = gate(record(builders.case()), _head(head))
    (verdict,) = result.cases
    assert verdict.verdict is Word.ERROR
    assert verdict.changes == ()
    assert exit_code(result.verdict) == 1


def test_head_checked_alone_is_new_and_passes() -> None:
    result = gate(None, record(builders.case()))
    assert result.base is None
    assert [verdict.verdict for verdict in result.cases] == [Word.NEW]
    assert result.verdict is Outcome.PASSED


def test_head_checked_alone_still_fails_on_its_own_faults() -> None:
    result = gate(None, record(builders.case(status=Status.INCORRECT)))
    assert result.verdict is Outcome.FAILED


def test_a_base_that_does_not_load_makes_cases_new_with_a_note() -> None:
    base = record(builders.case(OTHER), error="ladder.py:3: SyntaxError\ntrace")
    result = gate(base, record(builders.case()))
    assert [(v.id, v.verdict) for v in result.cases] == [(builders.CASE, Word.NEW)]
    assert result.verdict is Outcome.PASSED
    assert result.notes == (
        "base's suite does not load, so there is nothing to compare with: ladder.py:3: SyntaxError",
    )


def test_a_head_that_does_not_load_makes_every_base_case_an_error() -> None:
    head = record(error="ladder.py:3: SyntaxError\ntrace")
    result = gate(record(builders.case(), builders.case(OTHER)), head)
    assert [(v.verdict, v.code, v.head) for v in result.cases] == [
        (Word.ERROR, "suite", "absent")
    ] * 2
    assert result.verdict is Outcome.FAILED
    assert "ladder.py:3: SyntaxError" in result.sentence


def test_a_head_that_does_not_load_fails_without_a_base_too() -> None:
    result = gate(None, record(error="ladder.py:3: SyntaxError"))
    assert result.cases == ()
    assert exit_code(result.verdict) == 1


@pytest.mark.parametrize("status", [Status.SKIPPED, Status.NOT_EMULATED])
def test_nothing_executed_at_all_is_undecided(status: Status) -> None:
    case = builders.case(status=status)
    result = gate(record(case), record(case))
    assert result.verdict is Outcome.UNDECIDED
    assert exit_code(result.verdict) == 3
    assert "no case was executed" in result.sentence


def test_no_case_at_all_is_undecided() -> None:
    result = gate(None, record(selection="nonsense"))
    assert result.verdict is Outcome.UNDECIDED
    assert "no case was asked for" in result.sentence


def test_cases_left_to_a_gpu_do_not_undo_those_that_passed() -> None:
    other = builders.case(OTHER, status=Status.NOT_EMULATED)
    result = gate(record(builders.case(), other), record(builders.case(), other))
    assert result.verdict is Outcome.PASSED
    assert result.counts == {"UNCHANGED": 1, "NOT_EMULATED": 1}


def test_an_interrupted_head_is_undecided_and_blames_no_case() -> None:
    base = record(builders.case(), builders.case(OTHER))
    result = gate(base, _head(builders.case(), complete=False))
    assert [(v.verdict, v.code) for v in result.cases] == [
        (Word.UNCHANGED, "equal"),
        (Word.INCONCLUSIVE, "head_partial"),
    ]
    assert result.verdict is Outcome.UNDECIDED
    assert "interrupted after 1 case" in result.sentence


def test_an_interrupted_head_with_a_fault_fails() -> None:
    base = record(builders.case(), builders.case(OTHER))
    result = gate(base, _head(builders.case(counters=WORSE), complete=False))
    assert result.verdict is Outcome.FAILED


def test_an_interrupted_head_is_undecided_without_a_base_too() -> None:
    result = gate(None, _head(builders.case(), complete=False))
    assert result.verdict is Outcome.UNDECIDED


def test_a_case_that_an_interrupted_base_lacks_is_not_called_new() -> None:
    base = record(builders.case(), complete=False)
    result = gate(base, _head(builders.case(), builders.case(OTHER)))
    assert [(v.verdict, v.code) for v in result.cases] == [
        (Word.UNCHANGED, "equal"),
        (Word.INCONCLUSIVE, "base_partial"),
    ]
    assert result.verdict is Outcome.UNDECIDED


def test_a_case_outside_bases_selection_is_not_called_new() -> None:
    base = record(builders.case(), selection="naive")
    result = gate(base, _head(builders.case(), builders.case(OTHER)))
    assert result.cases[1].reason == "base was run for other cases only (-k 'naive')"
    assert result.verdict is Outcome.UNDECIDED


def test_a_case_outside_heads_selection_is_not_missing_but_noted() -> None:
    base = record(builders.case(), builders.case(OTHER))
    result = gate(base, _head(builders.case(), selection="naive"))
    assert [v.verdict for v in result.cases] == [Word.UNCHANGED]
    assert result.notes == ("cases of base outside head's selection (-k 'naive') are not judged",)


@pytest.mark.parametrize("selection", ["", "naive"])
def test_a_case_gone_within_one_selection_is_missing(selection: str) -> None:
    base = record(builders.case(), builders.case(OTHER), selection="naive")
    result = gate(base, _head(builders.case(), selection=selection))
    assert [v.verdict for v in result.cases] == [Word.UNCHANGED, Word.MISSING]
    assert result.verdict is Outcome.FAILED


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (builders.machine(name="h200-1"), "machine"),
        (builders.machine(device="cuda"), "device"),
        (builders.machine(architectures=("sm_90",)), "architectures"),
        (builders.machine(nvrtc="13.1.0"), "NVRTC version"),
    ],
)
def test_records_of_two_machines_are_never_compared(other: Machine, named: str) -> None:
    with pytest.raises(MachineMismatchError, match=f"expected one {named}"):
        gate(record(builders.case(), on=other), record(builders.case()))


def test_other_versions_of_the_rest_may_be_compared() -> None:
    other = dataclasses.replace(
        builders.machine(), versions={"flopwatch": "0.2.0", "nvrtc": "13.0.88"}
    )
    assert gate(record(builders.case(), on=other), record(builders.case())).cases


def test_one_case_twice_in_a_record_is_refused() -> None:
    with pytest.raises(DuplicateCaseError, match="two suites declare it"):
        gate(None, record(builders.case(), builders.case()))


def test_the_result_keeps_what_it_was_given() -> None:
    result = compare(
        None, record(builders.case()), started=builders.STARTED, seconds=3.5, notes=["no parent"]
    )
    assert (result.started, result.seconds) == (builders.STARTED, 3.5)
    assert result.notes == ("no parent",)
    assert result.machine == builders.machine()
