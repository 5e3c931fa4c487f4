"""False alarms and power on simulated gates. The long run is ``scripts/verdict_simulation.py``."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from scipy import stats

from ci.gate.settings import SENSITIVE, STANDARD, Settings
from scripts.verdict_simulation import NoisePool, Scenario, scenarios, simulate

LONG_RUN = Path(__file__).parents[2] / "docs" / "data" / "timing-rule.json"

ENOUGH = 1200
"""Gates of which one may fail: 0.5 % is still excluded with 97.5 % confidence."""


@pytest.fixture(scope="module")
def pool() -> NoisePool:
    return NoisePool(seed=17, rounds=4000)


def _upper(count: int, of: int) -> float:
    """Return the upper end of Clopper and Pearson's 95 % interval of a share."""
    return float(stats.binomtest(count, of).proportion_ci(method="exact").high)


@pytest.mark.parametrize("settings", [STANDARD, SENSITIVE])
def test_fewer_than_one_in_200_gates_of_equal_code_fail(
    settings: Settings, pool: NoisePool
) -> None:
    tally = simulate(
        Scenario(name="equal", settings=settings, gates=ENOUGH, offsets=True), pool, cases=30
    )
    assert _upper(tally.false_alarms, tally.gates) <= settings.false_alarms
    assert tally.rounds_per_case < 6


def test_cases_exactly_at_the_margin_fail_a_gate_no_more_often(pool: NoisePool) -> None:
    """The worst case of the promise: the probability is largest where the hypothesis just holds."""
    every = math.expm1(STANDARD.fail_margin)
    scenario = Scenario(name="margin", settings=STANDARD, gates=200, every=every)
    tally = simulate(scenario, pool, cases=20)
    low = stats.binomtest(tally.false_alarms, tally.gates).proportion_ci(method="exact").low
    assert low <= STANDARD.false_alarms


def test_the_recorded_long_run_keeps_the_promise() -> None:
    rows = json.loads(LONG_RUN.read_text(encoding="utf-8"))
    kept = [row for row in rows if "base always first" not in row["scenario"]]
    assert len(kept) == len(list(scenarios(gates=8))) - 2
    assert all(row["false_alarm_interval"][1] <= STANDARD.false_alarms for row in kept)


@pytest.mark.parametrize(
    ("settings", "slowed", "share"),
    [(SENSITIVE, 0.01, 0.85), (SENSITIVE, 0.02, 0.95), (STANDARD, 0.02, 0.95)],
)
def test_a_slowed_case_is_caught(
    settings: Settings, slowed: float, share: float, pool: NoisePool
) -> None:
    scenario = Scenario(name="slowed", settings=settings, gates=200, slowed=slowed)
    tally = simulate(scenario, pool, cases=20)
    assert tally.caught >= share * tally.gates
    assert tally.passed_as_fine <= 0.03 * tally.gates


def test_a_change_below_the_margin_is_never_caught(pool: NoisePool) -> None:
    scenario = Scenario(name="below", settings=SENSITIVE, gates=200, slowed=0.002)
    assert simulate(scenario, pool, cases=20).caught == 0


def test_a_base_that_always_starts_first_makes_regressions_of_placement(pool: NoisePool) -> None:
    """The planted fault: no number of rounds removes an offset that never changes its sign."""
    scenario = Scenario(name="fault", settings=SENSITIVE, gates=40, offsets=True, alternates=False)
    assert simulate(scenario, pool).false_alarms > 0
