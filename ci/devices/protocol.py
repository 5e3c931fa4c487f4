"""One protocol, two devices: what the check and the measurement ask of a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ci.results.model import Counters, Finding, LineCounters
from kernels.build import BuiltStage
from kernels.spec import Launch


@dataclass(frozen=True, kw_only=True, slots=True)
class Buffer:
    """An array argument: the kernel may touch exactly these elements."""

    name: str
    """Operand name, for findings."""
    data: NDArray[np.generic]
    """One-dimensional, contiguous; read and written in place."""
    misalignment_bytes: int = 0
    """The address of element 0 modulo 256; 0 is what an allocator gives."""
    scratch: bool = False
    """Whether its elements mean nothing before and after: a device need not carry them over."""
    initialised: bool = True
    """Whether its elements were written: a kernel may not read what neither it nor others wrote."""


Argument = Buffer | np.generic
"""A buffer, or a scalar of exactly the parameter's type."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepLaunch:
    """Everything a device is told about the launch of one kernel."""

    variant: str
    """Which of the stage's kernels, such as ``A=row,B=column``; see ``kernels.build``."""
    launch: Launch
    """Grid, block and dynamic shared memory."""
    arguments: tuple[Argument, ...]
    """In the entry's parameter order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Execution:
    """What the launches of one stage did, besides writing their buffers."""

    findings: tuple[Finding, ...]
    counters: Counters | None
    lines: tuple[LineCounters, ...]
    output: tuple[str, ...] = ()
    """Lines that the kernel printed, where the device can tell."""
    counting: str = ""
    """How the counters came about where not every block was executed: how many were, and whether
    the figures are exact or an estimate."""


class Device(Protocol):
    """Something that executes a built stage."""

    name: str
    """``cuda`` or ``simulator``."""

    def tile(self, built: BuiltStage) -> Mapping[str, int]:
        """Return the tile parameters of the code this device runs.

        Raises:
            NotEmulatedError: The stage has no code for this device.
        """
        ...

    def run(self, built: BuiltStage, steps: Sequence[StepLaunch], *, count: bool) -> Execution:
        """Execute the launches of a stage in order and return what was seen.

        Args:
            built: The compiled stage.
            steps: One launch a kernel; buffers of one name are one memory throughout.
            count: Whether to count memory traffic, which costs time.

        Raises:
            NotEmulatedError: The device cannot execute an instruction of this kernel.
            LaunchError: The kernel cannot be launched, or broke the launch.
            StepLimitError: The kernel did not end within the step limit.
        """
        ...


class SamplingDevice(Device, Protocol):
    """A device that can count a launch from a few of its blocks."""

    def sample(self, built: BuiltStage, steps: Sequence[StepLaunch]) -> Execution:
        """Execute some blocks of the launches and count what all would do; buffers are spoilt.

        Raises:
            NotEmulatedError: As ``run``; LaunchError and StepLimitError likewise.
        """
        ...
