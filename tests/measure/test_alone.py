"""One revision timed alone: cold, hot and baseline, and what becomes of a case that breaks."""

from __future__ import annotations

import math
from pathlib import Path

from ci.measure.alone import ROUNDS, Timed, time_alone
from ci.measure.batch import METHOD_VERSION, SAMPLES_A_ROUND
from ci.measure.nvml import GpuWatch
from tests.measure.clock_suite import case, write_suite


def timed(folder: Path, stages: dict[str, str]) -> dict[str, Timed]:
    suite = write_suite(folder / "suite", stages)
    found = time_alone(
        suite,
        [case(stage) for stage in stages],
        bench="clock",
        cache=folder / "cache",
        watch=GpuWatch("GPU-none"),
        seed=1,
    )
    return dict(found)


def test_a_case_is_timed_cold_and_hot_in_several_processes(tmp_path: Path) -> None:
    found = timed(tmp_path, {"quick": "pass"})[case("quick")].measurements
    assert set(found) == {"cold", "hot"}
    for variant, measurement in found.items():
        assert measurement.method_version == METHOD_VERSION
        assert measurement.cache == variant
        assert len(measurement.samples_s) == ROUNDS * SAMPLES_A_ROUND
        assert len(measurement.states) == ROUNDS
        assert all(0 < seconds < math.inf for seconds in measurement.samples_s)
    assert found["cold"].operand_sets > 1
    assert found["hot"].operand_sets == 1


def test_a_baseline_that_does_not_exist_leaves_the_other_times(tmp_path: Path) -> None:
    found = timed(tmp_path, {"quick": "pass"})[case("quick")]
    assert "baseline" not in found.measurements
    assert "baseline" in found.trouble


def test_a_case_that_kills_its_worker_costs_no_other_case(tmp_path: Path) -> None:
    dies = "calls == 50 and os.kill(os.getpid(), signal.SIGKILL)"
    found = timed(tmp_path, {"dies": dies, "quick": "pass"})
    assert "cold" not in found[case("dies")].measurements
    assert "signal 9" in found[case("dies")].trouble
    assert len(found[case("quick")].measurements["cold"].samples_s) == ROUNDS * SAMPLES_A_ROUND
