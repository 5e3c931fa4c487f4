"""What only a process that opens the GPU can tell of it, asked of a worker once a run."""

from __future__ import annotations

from contextlib import closing

from ci.measure.errors import SetupError
from ci.measure.messages import SetupFailed, Survey, Surveyed
from ci.measure.pool import Ended, run_jobs


def survey() -> Surveyed:
    """Return what a worker measured and read on the GPU.

    Raises:
        SetupError: The GPU cannot be used.
    """
    trouble = ""
    with closing(run_jobs([Survey()], workers=1)) as events:
        for event in events:
            match event.said:
                case Surveyed():
                    return event.said
                case SetupFailed():
                    raise SetupError(event.said.message)
                case Ended():
                    trouble = event.said.trouble
    raise SetupError(
        f"the process that opens the GPU {trouble or 'ended without a word'} "
        "(flopwatch doctor tells more)"
    )
