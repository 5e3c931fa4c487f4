"""What NVML cannot tell is unknown, never 0, and what it tells is put into words."""

from __future__ import annotations

import dataclasses

import pytest

from ci.measure.nvml import UNKNOWN, GpuWatch, machine_state, reason_words, summarised
from ci.results.model import MachineState

BUSY = MachineState(
    sm_clock_hz=1_980_000_000,
    memory_clock_hz=3_201_000_000,
    power_w=412.5,
    temperature_c=51.0,
    slowdowns=(),
)


def state(clock_mhz: int, *slowdowns: str) -> MachineState:
    return dataclasses.replace(BUSY, sm_clock_hz=clock_mhz * 1_000_000, slowdowns=slowdowns)


def test_figures_are_stored_in_our_units() -> None:
    assert (
        machine_state(
            sm_clock_mhz=1980, memory_clock_mhz=3201, power_mw=412_500, temperature_c=51, reasons=0
        )
        == BUSY
    )


def test_what_cannot_be_told_is_unknown_and_not_zero() -> None:
    nothing = machine_state(
        sm_clock_mhz=None, memory_clock_mhz=None, power_mw=None, temperature_c=None, reasons=None
    )
    assert nothing == UNKNOWN
    assert summarised([nothing, nothing]) == UNKNOWN
    assert summarised([]) == UNKNOWN


def test_a_gpu_that_nvml_does_not_know_tells_nothing() -> None:
    watch = GpuWatch("GPU-00000000-0000-0000-0000-000000000000")
    assert watch.state() == UNKNOWN
    assert watch.compute_processes() is None


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0x0, ()),
        (0x1, ()),
        (0x4, ("software power cap",)),
        (0x60, ("software thermal slowdown", "hardware thermal slowdown")),
        (0x89, ("hardware slowdown", "hardware power brake")),
        (0x1000, ("reason 0x1000",)),
    ],
)
def test_clock_event_reasons_are_words(bits: int, words: tuple[str, ...]) -> None:
    assert reason_words(bits) == words


def test_readings_are_summarised_by_their_median() -> None:
    readings = [state(1980), state(1965), state(300), UNKNOWN]
    assert summarised(readings).sm_clock_hz == 1_965_000_000


def test_a_flicker_of_the_power_cap_does_not_count_but_one_thermal_slowdown_does() -> None:
    capped, hot = state(1980, "software power cap"), state(1980, "hardware thermal slowdown")
    assert summarised([state(1980), state(1980), capped]).slowdowns == ()
    assert summarised([state(1980), capped]).slowdowns == ("software power cap",)
    assert summarised([state(1980)] * 5 + [hot]).slowdowns == ("hardware thermal slowdown",)
