"""Which cases a gate times, and what its rounds become."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ci.gate.settings import STANDARD
from ci.measure.alone import Timed
from ci.measure.batch import GATE_METHOD_VERSION
from ci.measure.gate_timing import TimingPlan, cases_to_time, time_gate
from ci.measure.nvml import UNKNOWN, GpuWatch
from ci.measure.sides import Side
from ci.measure.time_side import with_times
from ci.results.model import CaseResult, Measurement, RunRecord, Status, Word
from ci.results.store import load_gate_run, load_gate_runs, save_gate_run
from tests import builders
from tests.measure.clock_suite import case, write_suite


def perf_case(stage: str, status: Status = Status.PASSED) -> CaseResult:
    return replace(builders.case(f"sgemm/{stage}[M=64,N=64,K=64]", status=status), role="perf")


def record(*cases: CaseResult, identity: str = "1111") -> RunRecord:
    stages = [builders.stage(each.stage, identity=identity) for each in cases]
    return builders.record(*cases, stages=stages)


def test_only_passed_perf_cases_whose_code_differs_are_timed() -> None:
    wrong = perf_case("02_wrong", Status.INCORRECT)
    check = builders.case("sgemm/03_check[M=64,N=64,K=64]")
    old, new = perf_case("01_both"), perf_case("04_new")
    base, head = record(old, wrong, check), record(old, wrong, check, new, identity="2222")
    assert cases_to_time(base, head, measure_identical=False) == (old.id,)


def test_identical_code_is_timed_only_if_that_is_asked_for() -> None:
    one = record(perf_case("01_both"))
    assert cases_to_time(one, one, measure_identical=False) == ()
    assert cases_to_time(one, one, measure_identical=True) == (one.cases[0].id,)


def test_a_gate_of_real_work_finds_the_slower_case_and_stores_every_sample(tmp_path: Path) -> None:
    more = "for _ in range(20):\n    np.matmul(c, c)"
    work = {"calm": "np.matmul(c, c)"}
    base, head = (
        Side(
            label=label,
            suite=write_suite(tmp_path / label, {**work, "slower": body}),
            revision=builders.revision(commit, described=label),
        )
        for label, commit, body in (("base", "a" * 40, "pass"), ("head", "b" * 40, more))
    )
    run, verdicts = time_gate(
        base,
        head,
        builders.machine(name="clock"),
        (case("calm"), case("slower")),
        TimingPlan(
            bench="clock",
            cache=tmp_path / "cache",
            watch=GpuWatch("GPU-none"),
            settings=STANDARD,
            budget_s=60.0,
            history=(),
        ),
        say=lambda _: None,
    )
    assert verdicts[case("slower")].word is Word.REGRESSION
    assert verdicts[case("calm")].word is not Word.REGRESSION
    assert run.method_version == GATE_METHOD_VERSION
    assert set(run.launches_per_sample) == {case("calm"), case("slower")}
    save_gate_run(tmp_path / "gates/one.json", run)
    assert load_gate_run(tmp_path / "gates/one.json") == run
    assert load_gate_runs(tmp_path / "gates") == (run,)
    assert load_gate_runs(tmp_path / "none") == ()


def measurement(cache: str) -> Measurement:
    return Measurement(
        method_version=GATE_METHOD_VERSION,
        cache=cache,
        launches_per_sample=2,
        operand_sets=2,
        samples_s=(1e-3,),
        states=(UNKNOWN,),
    )


def test_times_are_added_to_a_case_that_passed() -> None:
    found = with_times(
        perf_case("01_both"),
        Timed(measurements={"cold": measurement("cold"), "hot": measurement("hot")}, trouble=""),
    )
    assert found.status is Status.PASSED
    assert found.cold == measurement("cold")
    assert found.hot == measurement("hot")
    assert found.baseline is None


def test_a_case_that_breaks_when_timed_has_not_passed() -> None:
    found = with_times(perf_case("01_both"), Timed(measurements={}, trouble="cold: it died"))
    assert found.status is Status.LAUNCH_ERROR
    assert "it died" in found.reason
