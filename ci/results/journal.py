"""Finished work of a run that is still going: one line a result, so a killed run keeps them."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ci.results import codec
from ci.results.errors import RecordError
from ci.results.model import CaseResult, RunRecord, StageResult

_SUFFIX = ".journal.jsonl"
_KINDS: dict[str, type[RunRecord | StageResult | CaseResult]] = {
    "run": RunRecord,
    "stage": StageResult,
    "case": CaseResult,
}


def journal_path(record: Path) -> Path:
    """Return the place of the journal of the run whose record will lie at ``record``."""
    return record.with_suffix(_SUFFIX)


class Journal:
    """Journal of one run, locked for as long as the run's process lives."""

    def __init__(self, path: Path, run: RunRecord) -> None:
        """Create the journal ``path`` and the folders above it.

        Args:
            path: Where.
            run: The run's record as far as it is known at its start.

        Raises:
            FileExistsError: Another run has this journal.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        # Without a buffer, a full disk shows where a line is added and not where it is closed.
        self._file = path.open("xb", buffering=0)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self.add(replace(run, complete=False, stages=(), cases=()))

    def add(self, result: RunRecord | StageResult | CaseResult) -> None:
        """Append ``result`` and hand it to the system, which keeps it if this process dies.

        Raises:
            RecordError: The result breaks its own declaration.
            OSError: The disk is full.
        """
        (name,) = [name for name, kind in _KINDS.items() if isinstance(result, kind)]
        line = json.dumps({name: codec.encode(result)}).encode() + b"\n"
        while line:
            line = line[self._file.write(line) :]

    def close(self) -> None:
        """Let go of the file, which stays."""
        self._file.close()

    def remove(self) -> None:
        """Delete the journal: its run's record is written."""
        self.close()
        self._path.unlink()


def orphans(folder: Path) -> Iterator[Path]:
    """Yield the journals below ``folder`` whose run has died."""
    for path in sorted(folder.glob(f"*/*/*{_SUFFIX}")):
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
        yield path


def recover(path: Path) -> RunRecord | None:
    """Return what a killed run had finished, as an incomplete record; None if nothing.

    A line without its end was in flight when the run died and is ignored. Of two lines on one
    stage or case the later counts.

    Raises:
        RecordError: A finished line is damaged.
        OSError: The journal cannot be read.
    """
    finished, _, _ = path.read_bytes().rpartition(b"\n")
    results = [
        _read_line(line, f"{path}:{number}")
        for number, line in enumerate(finished.splitlines(), start=1)
    ]
    if not results or not isinstance(results[0], RunRecord):
        return None
    stages = {(r.ladder, r.stage): r for r in results if isinstance(r, StageResult)}
    cases = {r.id: r for r in results if isinstance(r, CaseResult)}
    if not cases:
        return None
    return replace(results[0], stages=tuple(stages.values()), cases=tuple(cases.values()))


def _read_line(line: bytes, source: str) -> RunRecord | StageResult | CaseResult:
    document = codec.parse(line.decode(errors="replace"), source)
    for name, kind in _KINDS.items():
        if isinstance(document, dict) and document.keys() == {name}:
            return codec.decode(document[name], kind, source)
    msg = f"{source}: expected an object with the one key run, stage or case (delete the journal)"
    raise RecordError(msg)
