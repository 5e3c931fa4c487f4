"""Where results lie on disk: an append-only folder of records, and a gate's verdict file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ci.results import codec
from ci.results.errors import RecordError, StoreError
from ci.results.model import GateResult, GateRun, RunRecord

if TYPE_CHECKING:
    from pathlib import Path


def record_path(folder: Path, record: RunRecord) -> Path:
    """Return the place of ``record``: ``<folder>/<machine>/<commit>/<run>.json``.

    Raises:
        StoreError: Machine, commit or run is no name of a single folder or file.
    """
    machine = _folder_name("machine", record.machine.name)
    commit = _folder_name("commit", record.revision.commit)
    return folder / machine / commit / f"{_folder_name('run', record.run)}.json"


def save(folder: Path, record: RunRecord) -> Path:
    """Write ``record`` to its place and return the path; the same record again changes nothing.

    Raises:
        StoreError: The place holds another record, which is never overwritten.
        RecordError: The record breaks its own declaration.
        OSError: The disk is full or the folder cannot be written; nothing is left behind.
    """
    path = record_path(folder, record)
    text = codec.dumps(record)
    if path.exists():
        if path.read_bytes() == text.encode():
            return path
        msg = (
            f"{path}: expected no such file or this very record, got another one "
            f"(records are append-only: give the run a new id)"
        )
        raise StoreError(msg)
    write_text(path, text)
    return path


def load(path: Path) -> RunRecord:
    """Return the record in the file ``path``.

    Raises:
        RecordError: The file is no record of this schema version.
        OSError: The file cannot be read.
    """
    return codec.loads(RunRecord, _read(path), str(path))


def load_all(folder: Path) -> tuple[RunRecord, ...]:
    """Return every record under ``folder``, in order of their start; none if there is no folder.

    Raises:
        RecordError: A file is no record of this schema version.
        OSError: A file cannot be read.
    """
    records = [load(path) for path in folder.glob("*/*/*.json")]
    return tuple(sorted(records, key=lambda record: (record.started, record.run)))


def save_gate(path: Path, result: GateResult) -> None:
    """Write ``result`` to ``path``, in place of an earlier verdict.

    Raises:
        RecordError: The result breaks its own declaration.
        OSError: The disk is full or the folder cannot be written; nothing is left behind.
    """
    write_text(path, codec.dumps(result))


def load_gate(path: Path) -> GateResult:
    """Return the gate result in the file ``path``.

    Raises:
        RecordError: The file is no gate result of this schema version.
        OSError: The file cannot be read.
    """
    return codec.loads(GateResult, _read(path), str(path))


def save_gate_run(path: Path, run: GateRun) -> None:
    """Write the samples of a gate to ``path``, in place of an earlier gate's.

    Raises:
        RecordError: The samples break their own declaration.
        OSError: The disk is full or the folder cannot be written; nothing is left behind.
    """
    write_text(path, codec.dumps(run))


def load_gate_run(path: Path) -> GateRun:
    """Return the samples of a gate in the file ``path``.

    Raises:
        RecordError: The file holds no gate's samples of this schema version.
        OSError: The file cannot be read.
    """
    return codec.loads(GateRun, _read(path), str(path))


def load_gate_runs(folder: Path) -> tuple[GateRun, ...]:
    """Return the samples of every gate in ``folder``, oldest first; none if there is no folder.

    Raises:
        RecordError: A file holds no gate's samples of this schema version.
        OSError: A file cannot be read.
    """
    runs = [load_gate_run(path) for path in folder.glob("*.json")]
    return tuple(sorted(runs, key=lambda run: (run.started, run.run)))


def write_text(path: Path, text: str) -> None:
    """Write ``text`` so that ``path`` is whole or untouched, also after a power cut.

    Raises:
        OSError: The disk is full or the folder cannot be written; nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        msg = f"{path}: expected UTF-8, got {error} (move it away and measure the commit again)"
        raise RecordError(msg) from error


def _folder_name(part: str, name: str) -> str:
    """Return ``name`` if it can name one folder and leads nowhere else."""
    if not name or name.startswith(".") or "/" in name or "\\" in name or not name.isprintable():
        msg = (
            f"{part} {name!r}: expected a name without slashes, control characters and a leading "
            f"dot (it becomes a folder of the record store: rename it)"
        )
        raise StoreError(msg)
    return name
