"""What can go wrong around a run, apart from the kernels themselves."""


class MeasureError(Exception):
    """Base of everything this room raises on purpose."""


class WorkerError(MeasureError):
    """A worker process said something that is no answer."""


class SideError(MeasureError):
    """A revision or folder that was asked for is not there, or is no checkout."""


class SetupError(MeasureError):
    """This machine lacks something a run needs."""
