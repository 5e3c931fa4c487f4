"""Shows how far a run is: one line that rewrites itself on a terminal, one a case in a log."""

from __future__ import annotations

import shutil
import sys
import time

from ci.measure.session import Step
from ci.report.terminal import case_line

_ERASE = "\r\x1b[K"


class Progress:
    """Prints to standard error; standard output is data."""

    def __init__(self) -> None:
        """Start the clock."""
        self._started_s = time.monotonic()
        self._live = sys.stderr.isatty()

    def show(self, step: Step) -> None:
        """Show that a case is through."""
        spent_s = time.monotonic() - self._started_s
        left_s = spent_s / step.done * (step.total - step.done)
        count = f"[{step.done:{len(str(step.total))}}/{step.total}]"
        line = f"{count} {step.side} {case_line(step.result)}"
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            left = f"  {left_s:.0f} s left" if step.done < step.total else ""
            line = line[: width - len(left)] + left
            sys.stderr.write(f"{_ERASE}{line}")
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Leave a clean line."""
        if self._live:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
