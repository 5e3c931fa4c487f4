"""Timed gates that this machine keeps for its noise ledger: the last ones, killed ones too."""

from __future__ import annotations

import fcntl
import json
from dataclasses import replace
from pathlib import Path

from ci.results import codec
from ci.results.errors import ResultsError
from ci.results.model import GateRun, Round
from ci.results.store import load_gate_run, save_gate_run

KEPT = 60
"""Gates a machine: the ledger pools 30, and asks how 50 and more ended."""
_JOURNAL = ".journal.jsonl"


def keep(folder: Path, run: GateRun) -> Path:
    """Store a gate, drop the oldest ones beyond ``KEPT``, and return its path.

    Raises:
        OSError: The disk is full or the folder cannot be written.
    """
    path = _place(folder, run)
    save_gate_run(path, run)
    # Their names begin with the time they started.
    for old in sorted(path.parent.glob("*.json"))[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def kept(folder: Path, machine: str) -> tuple[tuple[GateRun, ...], tuple[str, ...]]:
    """Return a machine's gates, oldest first, and what is wrong with files that hold none."""
    runs, troubles = [], []
    for path in sorted((folder / machine).glob("*.json")):
        try:
            runs.append(load_gate_run(path))
        except (ResultsError, OSError) as error:
            troubles.append(str(error))
    return tuple(sorted(runs, key=lambda run: (run.started, run.run))), tuple(troubles)


class RoundJournal:
    """The rounds of a gate that is going on, locked for as long as its process lives."""

    def __init__(self, folder: Path, run: GateRun) -> None:
        """Create the journal of a gate that has no rounds yet.

        Raises:
            OSError: The disk is full or the folder cannot be written.
        """
        self._path = _place(folder, run).with_suffix(_JOURNAL)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("xb", buffering=0)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self.add(run)

    def add(self, entry: GateRun | Round) -> None:
        """Append a round and hand it to the system, which keeps it if this process dies."""
        line = json.dumps(codec.encode(entry), allow_nan=False).encode() + b"\n"
        while line:
            line = line[self._file.write(line) :]

    def remove(self) -> None:
        """Delete the journal: the gate is stored."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def recover(folder: Path) -> list[GateRun]:
    """Store the rounds of gates that were killed, and return those gates; journals are removed.

    A line without its end was in flight and is ignored, a journal that cannot be read dropped: the
    ledger does without it.
    """
    found = []
    for path in sorted(folder.glob(f"*/*{_JOURNAL}")):
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            first, *lines = file.read().split(b"\n")[:-1] or [b""]
        try:
            run = codec.loads(GateRun, first.decode(), str(path))
            rounds = tuple(_round(line.decode(), str(path)) for line in lines)
        except (ResultsError, UnicodeDecodeError):
            rounds = ()
        if rounds:
            found.append(replace(run, rounds=rounds))
            keep(folder, found[-1])
        path.unlink()
    return found


def _round(line: str, source: str) -> Round:
    return codec.decode(codec.parse(line, source), Round, source)


def _place(folder: Path, run: GateRun) -> Path:
    return folder / run.machine.name / f"{run.run}.json"
