"""Timed gates stay on the machine: bounded, whole, and also of a gate that was killed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from ci.results import gate_runs
from ci.results.gate_runs import KEPT, RoundJournal, keep, kept, recover
from tests.timed import gate_run, rounds

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = tuple(rounds("sgemm/x[M=1]", [0.01, 0.0]))
RUN = gate_run(ROUNDS)
MACHINE = RUN.machine.name


def test_the_last_gates_are_kept(tmp_path: Path) -> None:
    runs = [replace(RUN, run=f"20260101T{number:06d}Z-abc") for number in range(KEPT + 2)]
    for run in runs:
        keep(tmp_path, run)
    found, troubles = kept(tmp_path, MACHINE)
    assert [run.run for run in found] == [run.run for run in runs[2:]]
    assert troubles == ()
    assert kept(tmp_path, "another") == ((), ())


def test_a_damaged_file_is_named_and_the_others_count(tmp_path: Path) -> None:
    keep(tmp_path, RUN)
    (tmp_path / MACHINE / "20250101T000000Z-bad.json").write_text('{"run":')
    found, (trouble,) = kept(tmp_path, MACHINE)
    assert found == (RUN,)
    assert "20250101T000000Z-bad.json" in trouble


def test_the_rounds_of_a_killed_gate_are_kept(tmp_path: Path) -> None:
    program = (
        "import os, signal; from pathlib import Path; from dataclasses import replace;"
        "from tests.results.test_gate_runs import *;"
        f"journal = RoundJournal(Path({str(tmp_path)!r}), replace(RUN, rounds=()));"
        'journal.add(ROUNDS[0]); journal._file.write(b\'{"case": "in fl\');'
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)
    assert recover(tmp_path) == [replace(RUN, rounds=ROUNDS[:1])]
    assert kept(tmp_path, MACHINE)[0] == (replace(RUN, rounds=ROUNDS[:1]),)
    assert recover(tmp_path) == []


def test_the_journal_of_a_gate_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    journal = RoundJournal(tmp_path, replace(RUN, rounds=()))
    journal.add(ROUNDS[0])
    assert gate_runs.recover(tmp_path) == []
    journal.remove()
    assert not list(tmp_path.glob("*/*"))
