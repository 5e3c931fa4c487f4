"""What the GPU's management library shows: clocks, power, heat, and who computes."""

from __future__ import annotations

import importlib
import os
import statistics
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ci.results.model import MachineState

Value = TypeVar("Value")

_REASONS = {
    0x2: "application clocks setting",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock setting",
}
"""Bit of the clock-event reasons → words. An idle GPU (1) is not slowed down.

Source: NVML API Reference, nvmlClocksEventReasons."""
_RARE = ("hardware", "thermal")
"""Reasons that count if they were seen once; others come and go with every power reading."""
_HZ_PER_MHZ = 1_000_000
_MW_PER_W = 1000

UNKNOWN = MachineState(
    sm_clock_hz=None, memory_clock_hz=None, power_w=None, temperature_c=None, slowdowns=None
)
"""Where the library cannot be asked."""


class GpuWatch:
    """One GPU as NVML shows it. What NVML cannot tell is None, never a number."""

    def __init__(self, uuid: str) -> None:
        """Look for a GPU; without the library or the GPU, nothing can be told of it."""
        self._library: Any = None
        self._gpu: Any = None
        try:
            # Not at the top: the package is there only beside a GPU.
            self._library = importlib.import_module("pynvml")
        except ImportError:
            return
        self._ask(self._library.nvmlInit)
        self._gpu = self._ask(lambda: self._library.nvmlDeviceGetHandleByUUID(uuid))

    def state(self) -> MachineState:
        """Return clocks, power, heat and slowdowns of this moment."""
        if self._gpu is None:
            return UNKNOWN
        nvml, gpu = self._library, self._gpu
        return machine_state(
            sm_clock_mhz=self._ask(lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
            memory_clock_mhz=self._ask(
                lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM)
            ),
            power_mw=self._ask(lambda: nvml.nvmlDeviceGetPowerUsage(gpu)),
            temperature_c=self._ask(
                lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)
            ),
            reasons=self._ask(lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)),
        )

    def compute_processes(self) -> tuple[int, ...] | None:
        """Return the ids of the other processes that compute on the GPU; None if unknown."""
        if self._gpu is None:
            return None
        found = self._ask(lambda: self._library.nvmlDeviceGetComputeRunningProcesses(self._gpu))
        if found is None:
            return None
        return tuple(each.pid for each in found if each.pid != os.getpid())

    def _ask(self, question: Callable[[], Value]) -> Value | None:
        """Return the answer, or None where the library refuses or lacks the question."""
        try:
            return question()
        except (self._library.NVMLError, AttributeError):
            return None


def machine_state(
    *,
    sm_clock_mhz: int | None,
    memory_clock_mhz: int | None,
    power_mw: int | None,
    temperature_c: int | None,
    reasons: int | None,
) -> MachineState:
    """Return what NVML said, in our units; None stays None."""
    return MachineState(
        sm_clock_hz=None if sm_clock_mhz is None else sm_clock_mhz * _HZ_PER_MHZ,
        memory_clock_hz=None if memory_clock_mhz is None else memory_clock_mhz * _HZ_PER_MHZ,
        power_w=None if power_mw is None else power_mw / _MW_PER_W,
        temperature_c=None if temperature_c is None else float(temperature_c),
        slowdowns=None if reasons is None else reason_words(reasons),
    )


def reason_words(bits: int) -> tuple[str, ...]:
    """Return clock-event reasons in words; bits without a word are named by their number."""
    known = [word for bit, word in _REASONS.items() if bits & bit]
    unknown = bits & ~(sum(_REASONS) | 1)
    return (*known, *([f"reason {unknown:#x}"] if unknown else []))


def summarised(states: Sequence[MachineState]) -> MachineState:
    """Return one state for several readings: medians, and the reasons that were usual.

    A power cap flickers from reading to reading, so it counts if half of them show it; a hardware
    or thermal reason counts if one does.
    """
    told = [state.slowdowns for state in states if state.slowdowns is not None]
    seen = dict.fromkeys(reason for slowdowns in told for reason in slowdowns)
    usual = tuple(
        reason
        for reason in seen
        if any(word in reason for word in _RARE)
        or 2 * sum(reason in slowdowns for slowdowns in told) >= len(told)
    )
    sm_clock = _median([state.sm_clock_hz for state in states])
    memory_clock = _median([state.memory_clock_hz for state in states])
    return MachineState(
        sm_clock_hz=None if sm_clock is None else round(sm_clock),
        memory_clock_hz=None if memory_clock is None else round(memory_clock),
        power_w=_median([state.power_w for state in states]),
        temperature_c=_median([state.temperature_c for state in states]),
        slowdowns=usual if told else None,
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
