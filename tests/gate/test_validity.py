"""Rounds are thrown away for the state of the machine, and only for it."""

from __future__ import annotations

import dataclasses

import pytest

from ci.gate.validity import Range, usual_ranges, why_invalid
from ci.results.model import GateRun, MachineState
from tests.timed import CALM, gate_run, one_round

CAPPED = dataclasses.replace(CALM, slowdowns=("software power cap",))
UNKNOWN = MachineState(
    sm_clock_hz=None, memory_clock_hz=None, power_w=None, temperature_c=None, slowdowns=None
)


def _clocked(sm_clock_hz: int) -> MachineState:
    return dataclasses.replace(CALM, sm_clock_hz=sm_clock_hz)


def _gates(*states: MachineState, count: int = 4) -> list[GateRun]:
    rounds = [
        one_round("case", n, 0.0, base_state=state, head_state=state)
        for n, state in enumerate(states)
    ]
    return [gate_run(rounds)] * count


def _ranges(runs: list[GateRun]) -> dict[str, Range]:
    return dict(usual_ranges(runs, machine="h200", method_version=1))


@pytest.mark.parametrize(
    ("base", "head"), [(CALM, CALM), (CAPPED, CAPPED), (CALM, UNKNOWN), (UNKNOWN, UNKNOWN)]
)
def test_a_round_counts_if_both_sides_were_held_down_alike(
    base: MachineState, head: MachineState
) -> None:
    assert why_invalid(base, head, {}) == ""


def test_clocks_may_differ_by_one_percent() -> None:
    assert why_invalid(_clocked(1_980_000_000), _clocked(1_965_000_000), {}) == ""
    reason = why_invalid(_clocked(1_980_000_000), _clocked(1_950_000_000), {})
    assert reason == "SM clock 1,980 MHz at base, 1,950 MHz at head"


def test_a_slowdown_on_one_side_only_throws_the_round_away() -> None:
    reason = why_invalid(CALM, CAPPED, {})
    assert reason == "clocks held down by nothing at base and by software power cap at head"


@pytest.mark.parametrize(
    "name", ["hardware slowdown", "hardware thermal slowdown", "software thermal slowdown"]
)
def test_a_hardware_or_thermal_slowdown_throws_the_round_away(name: str) -> None:
    hot = dataclasses.replace(CALM, slowdowns=(name,))
    assert why_invalid(hot, hot, {}) == f"{name} in force, SM clock 1,980 MHz"


def test_a_state_far_from_the_usual_throws_the_round_away() -> None:
    states = [
        dataclasses.replace(CALM, power_w=power) for power in (380.0, 390.0, 400.0, 410.0, 420.0)
    ]
    ranges = _ranges(_gates(*states))
    assert ranges["power_w"].low == pytest.approx(400 - 5 * 1.4826 * 10)
    assert why_invalid(CALM, CALM, ranges) == ""
    idle = dataclasses.replace(CALM, power_w=120.0)
    reason = why_invalid(idle, idle, ranges)
    assert reason == "power 120 W at base, usual on this machine is 326 W to 474 W"


def test_a_machine_that_never_varied_may_vary_a_little() -> None:
    ranges = _ranges(_gates(CALM))
    assert why_invalid(_clocked(1_965_000_000), _clocked(1_965_000_000), ranges) == ""
    warm = dataclasses.replace(CALM, temperature_c=54.0)
    assert why_invalid(warm, warm, ranges) == ""


def test_a_young_machine_and_an_unknown_figure_have_no_usual_range() -> None:
    assert _ranges(_gates(CALM, count=3)) == {}
    assert _ranges(_gates(UNKNOWN)) == {}
    assert usual_ranges(_gates(CALM), machine="other", method_version=1) == {}
