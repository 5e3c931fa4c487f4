"""What can go wrong before or instead of a simulated launch."""

from __future__ import annotations


class SimulatorError(Exception):
    """Base of every error of this room."""


class PtxError(SimulatorError):
    """The text is not PTX as this simulator reads it."""


class LaunchError(SimulatorError):
    """The kernel cannot be launched like this."""


class NotEmulatedError(SimulatorError):
    """The kernel reached an instruction that the simulator does not execute."""

    def __init__(self, instruction: str, file: str, line: int) -> None:
        """Name the instruction and the CUDA source line it comes from."""
        super().__init__(f"{file}:{line}: not emulated: {instruction}")
        self.instruction = instruction
        self.file = file
        self.line = line


class StepLimitError(SimulatorError):
    """The kernel did not end within the step limit."""


class StopLaunchError(SimulatorError):
    """A bad access to on-chip memory, reported as a hazard: nothing after it means anything."""
