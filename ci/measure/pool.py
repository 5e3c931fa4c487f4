"""Worker processes: one a job, a few at a time, none outlives its parent."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from ci.measure.errors import WorkerError
from ci.measure.messages import Answer, Job
from ci.measure.process import Child
from ci.measure.wire import read_answer, write_job

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
        self._child = Child("ci.measure.worker")
        self._child.write(write_job(job))
        threading.Thread(target=self._read_answers, daemon=True).start()
        self._timer = threading.Timer(JOB_LIMIT_S, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def _expire(self) -> None:
        self._timed_out = True
        self._child.process.kill()

    def _read_answers(self) -> None:
        trouble = ""
        for line in self._child.lines():
            try:
                answer = read_answer(line)
            except WorkerError as error:
                trouble = str(error)
                self._child.process.kill()
                break
            self._events.put(Event(job=self._index, said=answer))
        trouble = trouble or self._child.how_it_ended()
        self._timer.cancel()
        if self._timed_out:
            trouble = f"took longer than {JOB_LIMIT_S:.0f} s"
        ended = Ended(trouble=trouble, timed_out=self._timed_out)
        self._events.put(Event(job=self._index, said=ended))

    def end(self) -> None:
        """Kill the process if it still runs, and wait for it."""
        self._timer.cancel()
        self._child.end()


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
