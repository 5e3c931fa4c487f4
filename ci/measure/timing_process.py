"""The parent's end of a timing process: one question, one reply, and never a wait without end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from ci.measure.errors import MeasureError, SetupError, WorkerError
from ci.measure.messages import SetupFailed
from ci.measure.process import Child
from ci.measure.timing_messages import Command, Drop, Dropped, Open, Opened, Refused, Reply
from ci.measure.wire import read_reply, write_command

REPLY_LIMIT_S = 120.0
"""A process that is silent for longer hangs; the longest replies are those of warm-ups."""

Answer = TypeVar("Answer", bound=Reply)


class CaseRefusedError(MeasureError):
    """A case cannot be timed; its process goes on."""

    def __init__(self, message: str, *, harmless: bool = False) -> None:
        """Say why, and whether nothing was launched: then the process is as good as before."""
        super().__init__(message)
        self.harmless = harmless


class TimingProcess:
    """One process that times one side."""

    def __init__(self, bench: str) -> None:
        """Start the interpreter; the device is taken by ``open``."""
        self._child = Child("ci.measure.timing_worker", bench)
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def open(self, suites: Sequence[Path], cache: Path) -> Opened:
        """Take the device and load the suites.

        Raises:
            WorkerError: The process died, hangs or does not take the suite.
            SetupError: This machine lacks something.
        """
        try:
            return self.ask(Open(suites=tuple(map(str, suites)), cache=str(cache)), Opened)
        except CaseRefusedError as error:
            raise WorkerError(str(error)) from error

    def ask(self, command: Command, kind: type[Answer]) -> Answer:
        """Send a command and return its reply; see ``hear``."""
        self.tell(command)
        return self.hear(kind)

    def tell(self, command: Command) -> None:
        """Send a command, which the process begins to work on."""
        self._child.write(write_command(command))

    def hear(self, kind: type[Answer]) -> Answer:
        """Return the reply to the command that was sent.

        Raises:
            CaseRefusedError: The case cannot be timed.
            SetupError: This machine lacks something.
            WorkerError: The process died, hangs or babbles; it is of no more use.
        """
        try:
            line = self._lines.get(timeout=REPLY_LIMIT_S)
        except queue.Empty:
            self._child.end()
            msg = f"the timing process said nothing for {REPLY_LIMIT_S:.0f} s and was ended"
            raise WorkerError(msg) from None
        if not line:
            trouble = self._child.how_it_ended() or "ended by itself"
            msg = f"the timing process {trouble}"
            raise WorkerError(msg)
        reply = read_reply(line)
        if isinstance(reply, kind):
            return reply
        if isinstance(reply, Refused):
            raise CaseRefusedError(reply.message, harmless=reply.harmless)
        if isinstance(reply, SetupFailed):
            raise SetupError(reply.message)
        msg = f"the timing process said {type(reply).__name__}, expected {kind.__name__}"
        raise WorkerError(msg)

    def drop(self) -> None:
        """Have the operands of the case given back."""
        self.ask(Drop(), Dropped)

    def ask_to_end(self) -> None:
        """Let the process begin to end."""
        self._child.ask_to_end()

    def end(self) -> None:
        """End the process and wait for it."""
        self._child.end_in_good_order()

    def _read(self) -> None:
        for line in self._child.lines():
            self._lines.put(line)
        self._lines.put(b"")
