"""Why a device could not finish a launch. Every message says which kernel, what and where."""


class DeviceError(Exception):
    """Base of everything a device raises on purpose."""


class NotEmulatedError(DeviceError):
    """The device cannot execute an instruction of this kernel."""


class LaunchError(DeviceError):
    """The kernel cannot be launched, or broke the launch."""


class StepLimitError(DeviceError):
    """The kernel did not end within the step limit."""


class NoGpuError(DeviceError):
    """This machine has no GPU that can be used, or lacks a package for it."""


class NoBaselineError(DeviceError):
    """There is no vendor's routine to compare with, or its library is not installed."""
