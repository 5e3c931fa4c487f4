"""Worker processes: one a job, a few at a time, none outlives its parent."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ci.measure.errors import WorkerError
from ci.measure.messages import Answer, Job
from ci.measure.wire import read_answer, write_job

_HOME = Path(__file__).resolve().parents[2]

JOB_LIMIT_S = 900.0
"""A worker that takes longer is ended: its unfinished cases are TIMEOUT."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """A worker's process is over."""

    trouble: str
    """Empty if it ended well, else what happened, for people."""
    timed_out: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something a job's worker said, or its end."""

    job: int
    """Index of the job in the sequence given to run_jobs."""
    said: Answer | Ended


class _Worker:
    """One job in one process of its own."""

    def __init__(self, index: int, job: Job, events: queue.Queue[Event]) -> None:
        self._index = index
        self._events = events
        self._timed_out = False
        # The pipe to standard input stays open for as long as this process lives: the worker
        # reads its end of file as the death of its parent, even after kill -9.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ci.measure.worker"],
            # -P and this path: the worker is the same copy of flopwatch, wherever it is started.
            env={**os.environ, "PYTHONPATH": str(_HOME)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C reaches the parent alone, which ends its workers in good order.
            start_new_session=True,
        )
        self._write(job)
        self._log: list[str] = []
        self._stderr = threading.Thread(target=self._read_stderr, daemon=True)
        self._stderr.start()
        threading.Thread(target=self._read_answers, daemon=True).start()
        self._timer = threading.Timer(JOB_LIMIT_S, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def _write(self, job: Job) -> None:
        pipe = self._pipe(self.process.stdin)
        # A worker that died at once is reported by the reading thread.
        with suppress(BrokenPipeError):
            pipe.write(write_job(job))
            pipe.flush()

    def _pipe(self, pipe: IO[bytes] | None) -> IO[bytes]:
        if pipe is None:
            msg = "the worker process was started without a pipe"
            raise WorkerError(msg)
        return pipe

    def _expire(self) -> None:
        self._timed_out = True
        self.process.kill()

    def _read_stderr(self) -> None:
        with self._pipe(self.process.stderr) as lines:
            for line in lines:
                self._log = [*self._log[-20:], line.decode(errors="replace").rstrip()]

    def _read_answers(self) -> None:
        trouble = ""
        with self._pipe(self.process.stdout) as lines:
            for line in lines:
                try:
                    answer = read_answer(line)
                except WorkerError as error:
                    trouble = str(error)
                    self.process.kill()
                    break
                self._events.put(Event(job=self._index, said=answer))
        code = self.process.wait()
        self._timer.cancel()
        self._stderr.join(timeout=5)
        if self._timed_out:
            trouble = f"took longer than {JOB_LIMIT_S:.0f} s"
        elif code < 0:
            trouble = trouble or f"was ended by signal {-code} (out of memory, or killed)"
        elif code > 0:
            last = next((line for line in reversed(self._log) if line.strip()), "no message")
            trouble = trouble or f"ended with exit code {code}: {last}"
        ended = Ended(trouble=trouble, timed_out=self._timed_out)
        self._events.put(Event(job=self._index, said=ended))

    def end(self) -> None:
        """Kill the process if it still runs, and wait for it."""
        self._timer.cancel()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        with suppress(BrokenPipeError):
            self._pipe(self.process.stdin).close()


def run_jobs(jobs: Sequence[Job], *, workers: int) -> Generator[Event, None, None]:
    """Yield what the jobs' workers say as it comes, at most ``workers`` processes at a time.

    Closing the iterator (also by an exception such as KeyboardInterrupt at the consumer) kills
    the processes that still run.
    """
    events: queue.Queue[Event] = queue.Queue()
    waiting = list(enumerate(jobs))
    running: dict[int, _Worker] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                index, job = waiting.pop(0)
                running[index] = _Worker(index, job, events)
            event = events.get()
            if isinstance(event.said, Ended):
                running.pop(event.job).end()
            yield event
    finally:
        for worker in running.values():
            worker.end()
