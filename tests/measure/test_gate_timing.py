"""Which cases a gate times, and what its rounds become."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from ci.gate.codes import Code
from ci.gate.settings import STANDARD, Settings
from ci.measure.alone import Timed
from ci.measure.batch import GATE_METHOD_VERSION
from ci.measure.controls import Controls, controls_of
from ci.measure.gate_timing import GateTiming, TimingPlan, cases_to_time, time_gate
from ci.measure.nvml import UNKNOWN, GpuWatch
from ci.measure.sides import Side
from ci.measure.time_side import with_times
from ci.results.gate_runs import kept, recover
from ci.results.model import CaseResult, Measurement, RunRecord, Status, Word
from tests import builders
from tests.measure.clock_suite import case, write_suite

ROOT = Path(__file__).resolve().parents[2]


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


EQUAL, SLOWER = controls_of("clock").cases
FEW_ROUNDS = replace(STANDARD, screen_rounds=2, pass_looks=(4,), fail_looks=(4,))
"""What is slower here is so by half and more, which needs no twelve rounds."""
SLOWED = "for _ in range(20):\n    np.matmul(c, c)"


def sides(folder: Path, base: dict[str, str], head: dict[str, str]) -> tuple[Side, Side]:
    one, other = (
        Side(
            label=label,
            suite=write_suite(folder / label, stages),
            revision=builders.revision(commit, described=label),
        )
        for label, commit, stages in (("base", "a" * 40, base), ("head", "b" * 40, head))
    )
    return one, other


def timing_plan(
    folder: Path, controls: Controls | None = None, settings: Settings = FEW_ROUNDS
) -> TimingPlan:
    return TimingPlan(
        bench="clock",
        cache=folder / "cache",
        watch=GpuWatch("GPU-none"),
        settings=settings,
        budget_s=60.0,
        ledger=folder / "ledger",
        controls=controls,
    )


def gate(
    folder: Path,
    base: str,
    head: str,
    controls: Controls | None = None,
    settings: Settings = FEW_ROUNDS,
) -> GateTiming:
    return time_gate(
        *sides(folder, {"work": base}, {"work": head}),
        builders.machine(name="clock"),
        (case("work"),),
        timing_plan(folder, controls, settings),
        say=lambda _: None,
    )


def test_a_gate_of_real_work_finds_the_slower_case_and_stores_every_sample(tmp_path: Path) -> None:
    found = gate(tmp_path, "pass", SLOWED)
    run = found.run
    assert found.verdicts[case("work")].word is Word.REGRESSION, found.controls
    assert run.fault == ""
    assert run.method_version == GATE_METHOD_VERSION
    assert set(run.launches_per_sample) == {case("work"), EQUAL, SLOWER}
    assert "1 slowed control: 1 REGRESSION (+" in found.controls
    assert kept(tmp_path / "ledger", "clock") == ((run,), ())


def test_a_slowed_control_that_is_not_slower_leaves_no_time_that_counts(tmp_path: Path) -> None:
    # Its head is many times faster than base: whatever the noise, it is not slower.
    planted = replace(controls_of("clock"), cases={SLOWER: case("work")})
    found = gate(tmp_path, SLOWED, "pass", planted, STANDARD)
    assert found.verdicts[case("work")].reason_code is Code.CONTROLS
    assert "slowed on purpose, is" in found.run.fault


def test_a_bench_whose_sides_differ_leaves_no_time_that_counts(tmp_path: Path) -> None:
    planted = replace(controls_of("clock"), cases={EQUAL: case("work")})
    found = gate(tmp_path, "pass", SLOWED, planted)
    verdict = found.verdicts[case("work")]
    assert (verdict.word, verdict.reason_code) == (Word.INCONCLUSIVE, Code.CONTROLS)
    assert "one code on both sides, is slower" in found.run.fault
    assert "would be REGRESSION" in verdict.reason


def test_a_control_that_cannot_run_leaves_no_time_that_counts(tmp_path: Path) -> None:
    planted = replace(controls_of("clock"), cases={EQUAL: "none"})
    found = gate(tmp_path, SLOWED, "pass", planted)
    assert found.verdicts[case("work")].reason_code is Code.CONTROLS
    assert "could not be measured" in found.run.fault


def test_a_control_whose_round_is_lost_gets_another_though_no_case_is_open(tmp_path: Path) -> None:
    died = tmp_path / "died"
    once = f"if not Path({str(died)!r}).exists():\n    Path({str(died)!r}).touch()\n    os._exit(1)"
    suite = write_suite(tmp_path / "controls", {"once": once})
    cases = {EQUAL: case("once")}
    planted = Controls(suite=suite, cases=cases, slowed={})
    found = gate(tmp_path, SLOWED, "pass", planted, STANDARD)
    assert found.run.fault == ""
    lost, *counting = [entry.invalid for entry in found.run.rounds if entry.case == EQUAL]
    assert lost
    assert counting == [""] * 4
    assert len([entry for entry in found.run.rounds if entry.case == case("work")]) == 4


def talkative(folder: Path) -> None:
    """Run a gate that says what it does, and in its second round waits for its input to end."""

    def say(text: str) -> None:
        print(text, flush=True)  # noqa: T201
        if text.startswith("timing round 2"):
            sys.stdin.read()

    found = time_gate(
        *sides(folder, {"work": "pass"}, {"work": SLOWED}),
        builders.machine(name="clock"),
        (case("work"),),
        timing_plan(folder),
        say=say,
    )
    print(found.interrupted, found.verdicts[case("work")].reason_code, flush=True)  # noqa: T201


def gate_stopped_by(number: signal.Signals, folder: Path) -> tuple[int, str]:
    """Stop a gate in its second round; return its exit code and last words."""
    program = (
        "from pathlib import Path; from tests.measure.test_gate_timing import talkative;"
        f"talkative(Path({str(folder)!r}))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        next(line for line in process.stdout if line.startswith("timing round 2"))
        process.send_signal(number)
        process.stdin.close()
        words = process.stdout.read()
    return process.returncode, words


def test_ctrl_c_ends_a_gate_with_what_it_has(tmp_path: Path) -> None:
    code, words = gate_stopped_by(signal.SIGINT, tmp_path)
    assert code == 0
    # After one round no control has times; where the signal came late, cases are merely open.
    assert words.splitlines()[-1] in ("True controls", "True cut_short")
    (run,), _ = kept(tmp_path / "ledger", "clock")
    assert {entry.case for entry in run.rounds if entry.number == 0} == {
        case("work"),
        EQUAL,
        SLOWER,
    }


def test_the_rounds_of_a_gate_that_is_killed_are_in_the_ledger_of_the_next(tmp_path: Path) -> None:
    code, _ = gate_stopped_by(signal.SIGKILL, tmp_path)
    assert code == -signal.SIGKILL
    deadline = time.monotonic() + 10
    # A worker that was just being started holds the journal's lock until it runs its program.
    while not (found := recover(tmp_path / "ledger")) and time.monotonic() < deadline:
        pass
    (run,) = found
    assert len([entry for entry in run.rounds if entry.number == 0]) == 3
    assert kept(tmp_path / "ledger", "clock") == ((run,), ())


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
