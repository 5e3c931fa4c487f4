"""The simulator as a device: project data in, simulator data out, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from ci import simulator
from ci.devices import errors
from ci.devices.protocol import Argument, Buffer, Execution, StepLaunch
from ci.devices.sums import merged
from ci.results.model import Counters, Finding, LineCounters
from kernels.build import BuiltStage
from kernels.source import quoted_lines

_COUNTER_NAMES = tuple(field.name for field in fields(Counters))
_ADDED_LATER = tuple(field.name for field in fields(Counters) if field.default is None)

Accesses = tuple[frozenset[int], frozenset[int], bool]
"""Widths in bytes above 4 of a kernel's shared loads and of its shared stores, and whether it may
reach local memory."""


class SimulatorDevice:
    """Executes the PTX of a built stage on the CPU, watches it and counts its memory traffic."""

    name = "simulator"

    def __init__(self, accesses: Mapping[str, Accesses]) -> None:
        """Start with no parsed module.

        Args:
            accesses: Variant → what its machine code tells of its accesses: how the compiler
                merged scalar ones, and whether it kept arrays in registers. A variant without an
                entry counts as its PTX says.
        """
        self._accesses = {
            variant: simulator.MachineAccesses(load=load, store=store, local=local)
            for variant, (load, store, local) in accesses.items()
        }
        self._parsed: tuple[str, simulator.Module] | None = None

    def tile(self, built: BuiltStage) -> Mapping[str, int]:
        """Return the tile of the PTX."""
        return built.tile

    def run(self, built: BuiltStage, steps: Sequence[StepLaunch], *, count: bool) -> Execution:
        """Execute the launches of a stage; see ``ci.devices.protocol.Device.run``."""
        written = _Written()
        return merged([self._step(built, step, written, count=count) for step in steps])

    def sample(self, built: BuiltStage, steps: Sequence[StepLaunch]) -> Execution:
        """Count from a few blocks; see ``ci.devices.protocol.SamplingDevice.sample``."""
        return merged([self._step(built, step, None, count=True) for step in steps])

    def _step(
        self, built: BuiltStage, step: StepLaunch, written: _Written | None, *, count: bool
    ) -> Execution:
        """Execute one launch: without ``written`` only a sample of its blocks."""
        kernel = built.ptx_kernels[step.variant]
        launch = step.launch
        try:
            report = simulator.run(
                self._module(built.ptx),
                kernel.symbol,
                grid=launch.grid,
                block=launch.block,
                arguments=[_simulated(argument, written) for argument in step.arguments],
                dynamic_shared_bytes=launch.dynamic_shared_bytes,
                accesses=self._accesses.get(step.variant),
                count=count,
                sample=written is None,
            )
        except simulator.NotEmulatedError as error:
            raise errors.NotEmulatedError(str(error)) from error
        except simulator.StepLimitError as error:
            raise errors.StepLimitError(str(error)) from error
        except simulator.SimulatorError as error:
            raise errors.LaunchError(str(error)) from error
        return Execution(
            findings=tuple(
                Finding(
                    kind=hazard.kind,
                    kernel=kernel.expression,
                    file=hazard.file,
                    line=hazard.line,
                    count=hazard.count,
                    example=hazard.example,
                    subcheck="",
                )
                for hazard in report.hazards
            ),
            counters=_counters(report.totals) if count else None,
            lines=_lines(report, built.text) if count else (),
            output=report.output,
            counting=_counting(report.sampling),
        )

    def _module(self, ptx: str) -> simulator.Module:
        # A stage is launched some forty times in a row, and decoding is a good part of a launch.
        if self._parsed is None or self._parsed[0] != ptx:
            self._parsed = (ptx, simulator.parse(ptx))
        return self._parsed[1]


class _Written:
    """Which bytes of the operands were written, over the launches of a stage."""

    def __init__(self) -> None:
        self._known: dict[int, NDArray[np.bool_]] = {}

    def of(self, buffer: Buffer) -> NDArray[np.bool_] | None:
        """Return the bytes of a buffer that were written; None: all of them."""
        if buffer.initialised:
            return None
        address = buffer.data.ctypes.data
        return self._known.setdefault(address, np.zeros(buffer.data.nbytes, np.bool_))


def _simulated(argument: Argument, written: _Written | None) -> simulator.Buffer | np.generic:
    if isinstance(argument, Buffer):
        return simulator.Buffer(
            name=argument.name,
            data=argument.data,
            misalignment_bytes=argument.misalignment_bytes,
            written=None if written is None else written.of(argument),
        )
    return argument


def _counting(sampling: simulator.Sampling | None) -> str:
    """Return in words how counts came about; empty if every block was executed."""
    if sampling is None:
        return ""
    sentence = f"{sampling.executed:,} of {sampling.blocks:,} blocks executed"
    if sampling.obstacle:
        return f"{sentence}, an estimate: {sampling.obstacle}"
    return f"{sentence}, exact"


def _counters(counts: simulator.Counts) -> Counters:
    return Counters(**{name: getattr(counts, name) for name in _COUNTER_NAMES})


def _of_line(counts: simulator.Counts) -> Counters:
    """Return the share of a line, without a word of what it does not do."""
    given = {name: getattr(counts, name) for name in _COUNTER_NAMES}
    return Counters(**{n: value for n, value in given.items() if value or n not in _ADDED_LATER})


def _lines(report: simulator.Report, text: str) -> tuple[LineCounters, ...]:
    """Return the counters of each source line, with the line itself.

    Args:
        report: What the simulator saw.
        text: Flattened source with ``#line`` directives, from which the lines are quoted.
    """
    quoted = quoted_lines(text)
    return tuple(
        LineCounters(
            file=place.file,
            line=place.line,
            text=quoted.get((place.file, place.line), ""),
            counters=_of_line(report.lines[place]),
        )
        for place in sorted(report.lines, key=lambda place: (place.file, place.line))
    )
