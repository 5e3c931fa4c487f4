"""Where times meet exact figures: what decides, what explains, what is covered."""

from __future__ import annotations

import dataclasses

import pytest

from ci.gate.acknowledge import parse
from ci.gate.codes import Code
from ci.gate.compare import compare
from ci.gate.errors import MachineMismatchError
from ci.gate.other_runs import timings_of_other_runs
from ci.gate.timing import TimingVerdict
from ci.results.model import (
    CaseResult,
    CaseVerdict,
    Counters,
    GateResult,
    Measurement,
    Outcome,
    RunRecord,
    Status,
    Timing,
    Word,
)
from tests import builders
from tests.builders import CASE, STARTED, record, stage

WORSE = Counters(global_load_sectors=2048)
"""Twice that of the builders' case."""
BETTER = Counters(global_load_sectors=512)
TIMING = Timing(
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
CODES = {
    Word.REGRESSION: Code.SLOWER,
    Word.IMPROVEMENT: Code.FASTER,
    Word.UNCHANGED: Code.NOT_SLOWER,
    Word.INCONCLUSIVE: Code.NOISE,
}


def _says(word: Word) -> TimingVerdict:
    return TimingVerdict(word=word, reason_code=CODES[word], reason="its figures", timing=TIMING)


def _gate(
    head: CaseResult,
    timing: TimingVerdict,
    *,
    identity: str = "2222",
    acknowledged: str = "",
) -> GateResult:
    return compare(
        record(builders.case()),
        record(head, stages=[stage(identity=identity)]),
        timings={CASE: timing},
        acknowledgements=parse(acknowledged),
        started=STARTED,
        seconds=1.0,
    )


def _verdict(head: CaseResult, word: Word) -> CaseVerdict:
    (verdict,) = _gate(head, _says(word)).cases
    return verdict


@pytest.mark.parametrize("word", [Word.UNCHANGED, Word.IMPROVEMENT, Word.INCONCLUSIVE])
def test_counters_of_a_timed_case_explain_and_do_not_fail(word: Word) -> None:
    verdict = _verdict(builders.case(counters=WORSE), word)
    assert verdict.verdict is word
    assert verdict.timing == TIMING
    assert not verdict.fails
    assert not any(change.fails or change.improves for change in verdict.changes)


def test_the_reason_carries_the_figure_that_explains_it() -> None:
    explained = "its figures; global load sectors 1,024 → 2,048 (2.00 times)"
    assert _verdict(builders.case(counters=WORSE), Word.REGRESSION).reason == explained
    gain = "its figures; global load sectors 1,024 → 512 (0.50 times)"
    assert _verdict(builders.case(counters=BETTER), Word.IMPROVEMENT).reason == gain
    assert _verdict(builders.case(), Word.REGRESSION).reason == "its figures"


def test_a_case_that_is_slower_fails_with_every_counter_better() -> None:
    result = _gate(builders.case(counters=BETTER), _says(Word.REGRESSION))
    assert result.verdict is Outcome.FAILED
    assert result.cases[0].code == "slower"


@pytest.mark.parametrize(
    ("head", "word"),
    [
        (builders.case(status=Status.INCORRECT, findings=(builders.finding(),)), Word.INCORRECT),
        (builders.case(status=Status.LAUNCH_ERROR), Word.ERROR),
        (builders.case(status=Status.SKIPPED), Word.MISSING),
        (builders.case(counted=False), Word.MISSING),
    ],
)
def test_what_is_wrong_or_missing_wins_over_a_good_time(head: CaseResult, word: Word) -> None:
    verdict = _verdict(head, Word.IMPROVEMENT)
    assert verdict.verdict is word
    assert verdict.timing is None


def test_identical_code_that_was_measured_says_so() -> None:
    (verdict,) = _gate(builders.case(), _says(Word.UNCHANGED), identity="1111").cases
    assert verdict.reason == "identical code: its figures"


def test_an_inconclusive_time_leaves_the_gate_undecided_unless_in_quarantine() -> None:
    noisy = _says(Word.INCONCLUSIVE)
    quarantined = dataclasses.replace(noisy, reason_code=Code.QUARANTINED)
    assert _gate(builders.case(), noisy).verdict is Outcome.UNDECIDED
    assert _gate(builders.case(), quarantined).verdict is Outcome.PASSED


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("sgemm/* | time | 1.02 | a barrier was missing", Outcome.PASSED),
        ("sgemm/* | time | * | a barrier was missing", Outcome.PASSED),
        ("sgemm/* | time | 1.01 | a barrier was missing", Outcome.FAILED),
        ("sgemm/* | global_load_sectors | * | a barrier was missing", Outcome.FAILED),
    ],
)
def test_a_slower_case_is_acknowledged_by_its_time(line: str, outcome: Outcome) -> None:
    head = builders.case(counters=WORSE)
    result = _gate(head, _says(Word.REGRESSION), acknowledged=line)
    assert result.verdict is outcome


def _timed_record(
    seconds: float, *, method_version: int = 1, identity: str = "1111", sectors: int = 1024
) -> RunRecord:
    measured = Measurement(
        method_version=method_version,
        cache="cold",
        launches_per_sample=100,
        operand_sets=8,
        samples_s=(seconds, seconds * 1.01, seconds * 0.99),
        states=(),
    )
    case = builders.case(counters=Counters(global_load_sectors=sectors))
    case = dataclasses.replace(case, cold=measured)
    return record(case, stages=[stage(identity=identity)])


def _of_two_runs(base: RunRecord, head: RunRecord) -> CaseVerdict:
    timings = timings_of_other_runs(base, head)
    (verdict,) = compare(base, head, timings=timings, started=STARTED, seconds=0.0).cases
    return verdict


@pytest.mark.parametrize(
    ("seconds", "word"),
    [
        (0.5e-3, Word.INCONCLUSIVE),
        (1.0e-3, Word.INCONCLUSIVE),
        (1.09e-3, Word.INCONCLUSIVE),
        (1.11e-3, Word.REGRESSION),
    ],
)
def test_times_of_different_runs_tell_nothing_below_ten_percent(seconds: float, word: Word) -> None:
    verdict = _of_two_runs(_timed_record(1e-3), _timed_record(seconds, identity="2222"))
    assert verdict.verdict is word
    assert verdict.code == "other_run"
    assert "in different runs" in verdict.reason
    assert verdict.timing is None


def test_exact_figures_of_different_runs_still_fail() -> None:
    head = _timed_record(1e-3, identity="2222", sectors=2048)
    verdict = _of_two_runs(_timed_record(1e-3), head)
    assert verdict.verdict is Word.REGRESSION
    assert verdict.code == "counters"


def test_identical_code_of_different_runs_is_unchanged() -> None:
    assert _of_two_runs(_timed_record(1e-3), _timed_record(1.5e-3)).verdict is Word.UNCHANGED


def test_times_of_two_methods_are_not_compared() -> None:
    head = _timed_record(1e-3, method_version=2, identity="2222")
    with pytest.raises(MachineMismatchError, match="expected times of one method version, got 1"):
        timings_of_other_runs(_timed_record(1e-3), head)
