"""Workers that die, hang or babble end in a plain answer, and none outlives its parent."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ci.measure import pool
from ci.measure.messages import Inspect, SuiteFailed, SuiteLoaded
from ci.measure.pool import Ended, Event, run_jobs

ROOT = Path(__file__).resolve().parents[2]


def suite(folder: Path, ladder: str) -> Inspect:
    (folder / "suite/bad").mkdir(parents=True)
    (folder / "suite/bad/ladder.py").write_text(ladder)
    return Inspect(
        suite=str(folder / "suite"),
        architectures=("sm_90",),
        device="simulator",
        cache=str(folder / "cache"),
        selection="",
    )


def last(events: list[Event]) -> Ended:
    said = events[-1].said
    assert isinstance(said, Ended)
    return said


def test_a_suite_that_kills_its_process_is_reported_as_killed(tmp_path: Path) -> None:
    job = suite(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert "signal 9" in last(list(run_jobs([job], workers=1))).trouble


def test_a_suite_that_exits_is_reported_with_its_exit_code(tmp_path: Path) -> None:
    job = suite(tmp_path, "import os\nos._exit(7)\n")
    assert "exit code 7" in last(list(run_jobs([job], workers=1))).trouble


def test_a_suite_that_hangs_is_ended_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "JOB_LIMIT_S", 3.0)
    job = suite(tmp_path, "while True:\n    pass\n")
    end = last(list(run_jobs([job], workers=1)))
    assert end.timed_out
    assert "longer than 3 s" in end.trouble


def test_what_a_suite_prints_is_no_answer(tmp_path: Path) -> None:
    job = suite(tmp_path, 'print(\'{"SuiteLoaded": {"cases": []}}\')\n')
    events = list(run_jobs([job], workers=1))
    assert not any(isinstance(event.said, SuiteLoaded) for event in events)
    assert any(isinstance(event.said, SuiteFailed) for event in events)


def test_every_job_is_answered_when_there_are_more_jobs_than_workers(tmp_path: Path) -> None:
    jobs = [suite(tmp_path / str(number), "LADDER = None\n") for number in range(4)]
    events = list(run_jobs(jobs, workers=2))
    failed = {event.job for event in events if isinstance(event.said, SuiteFailed)}
    assert failed == {0, 1, 2, 3}


def test_leaving_the_events_early_ends_the_workers(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    job = suite(tmp_path, _HANG.format(told=str(told)))
    quick = suite(tmp_path / "quick", f"{_AWAIT.format(told=str(told))}LADDER = None\n")
    events = run_jobs([job, quick], workers=2)
    next(events)
    handle = os.pidfd_open(int(told.read_text()))
    events.close()
    assert ended_within(handle, seconds=5)


def test_a_worker_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    job = suite(tmp_path, _HANG.format(told=str(told)))
    program = (
        "from ci.measure.messages import Inspect; from ci.measure.pool import run_jobs; "
        f"list(run_jobs([{job!r}], workers=1))"
    )
    os.mkfifo(told)
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    # Opening the pipe waits until the worker has written to it.
    worker = int(told.read_text())
    handle = os.pidfd_open(worker)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert ended_within(handle, seconds=5)


_HANG = """
import os, pathlib
pathlib.Path({told!r}).write_text(str(os.getpid()))
while True:
    pass
"""

_AWAIT = """
import pathlib
while not (pathlib.Path({told!r}).exists() and pathlib.Path({told!r}).read_text()):
    pass
"""


def ended_within(handle: int, *, seconds: float) -> bool:
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)
