"""A worker process as its parent holds it: started, spoken to, and ended; none outlives us."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from ci.measure.errors import WorkerError

_HOME = Path(__file__).resolve().parents[2]
_LOG_LINES = 20
_END_S = 5.0
"""How long a process may take to end when its standard input is closed."""


class Child:
    """One worker process."""

    def __init__(self, module: str, *arguments: str) -> None:
        """Start ``python -m module`` of this very copy of flopwatch."""
        # The pipe to standard input stays open for as long as this process lives: the worker
        # reads its end of file as the death of its parent, even after kill -9.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            # -P and this path: the worker is the same copy, wherever it is started.
            env={**os.environ, "PYTHONPATH": str(_HOME)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C reaches the parent alone, which ends its workers in good order.
            start_new_session=True,
        )
        self._log: list[str] = []
        self._stderr = threading.Thread(target=self._read_stderr, daemon=True)
        self._stderr.start()

    def write(self, line: bytes) -> None:
        """Send a line; a worker that has died is noticed where its lines are read."""
        pipe = _pipe(self.process.stdin)
        with suppress(BrokenPipeError):
            pipe.write(line)
            pipe.flush()

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of its standard output until it ends."""
        with _pipe(self.process.stdout) as lines:
            yield from lines

    def how_it_ended(self) -> str:
        """Wait for the end and return what was wrong with it, in words; empty if nothing."""
        code = self.process.wait()
        self._stderr.join(timeout=_END_S)
        if code < 0:
            return f"was ended by signal {-code} (out of memory, or killed)"
        if code > 0:
            last = next((line for line in reversed(self._log) if line.strip()), "no message")
            return f"ended with exit code {code}: {last}"
        return ""

    def ask_to_end(self) -> None:
        """Close the worker's standard input, which it reads as the wish that it ends."""
        with suppress(BrokenPipeError):
            _pipe(self.process.stdin).close()

    def end(self) -> None:
        """Kill the process if it still runs, and wait for it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.ask_to_end()

    def end_in_good_order(self) -> None:
        """Let the process end by itself, then see to it."""
        self.ask_to_end()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=_END_S)
        self.end()

    def _read_stderr(self) -> None:
        with _pipe(self.process.stderr) as lines:
            for line in lines:
                text = line.decode(errors="replace").rstrip()
                self._log = [*self._log[-_LOG_LINES:], text]


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        msg = "the worker process was started without a pipe"
        raise WorkerError(msg)
    return pipe
