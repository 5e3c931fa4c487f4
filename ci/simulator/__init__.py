"""Executes PTX on the CPU: numbers, hazards, and the counters a profiler would show."""

from __future__ import annotations

from ci.simulator.errors import (
    LaunchError,
    NotEmulatedError,
    PtxError,
    SimulatorError,
    StepLimitError,
)
from ci.simulator.launch import run
from ci.simulator.parser import parse
from ci.simulator.ptx import Kernel, Module
from ci.simulator.report import Buffer, Counts, Hazard, MachineAccesses, Place, Report, Sampling

__all__ = [
    "Buffer",
    "Counts",
    "Hazard",
    "Kernel",
    "LaunchError",
    "MachineAccesses",
    "Module",
    "NotEmulatedError",
    "Place",
    "PtxError",
    "Report",
    "Sampling",
    "SimulatorError",
    "StepLimitError",
    "parse",
    "run",
]
