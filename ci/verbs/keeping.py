"""Keeps finished work on disk while a run goes on, and the record when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ci.measure.nvml import GpuWatch
from ci.measure.session import Plan, SideRun, run_sides
from ci.measure.time_side import time_side
from ci.results.journal import Journal, journal_path, orphans, recover
from ci.results.model import CaseResult, RunRecord, StageResult
from ci.results.store import record_path, save
from ci.verbs.context import note
from ci.verbs.progress import Progress


def run_and_keep(
    runs: Sequence[SideRun], plan: Plan, records: Path, *, timed_on: GpuWatch | None = None
) -> list[RunRecord]:
    """Run every side and return their records, which are stored below ``records``.

    Each finished case is in a journal the moment it is through. If the run breaks off, what is
    finished becomes an incomplete record before the exception goes on.

    Args:
        runs: Head, then base if there is one.
        plan: What to run.
        records: Folder of the records.
        timed_on: The GPU on which head's cases are timed too; None: they are not.
    """
    progress = Progress()
    recover_orphans(records)
    note(f"compiling {' and '.join(run.side.label for run in runs)}")
    journals = {run.run: _journal(run.record(), records) for run in runs}

    def keep(run: SideRun, result: StageResult | CaseResult) -> None:
        journals[run.run].add(result)

    try:
        run_sides(runs, plan, progress=progress.show, keep=keep)
        if timed_on:
            progress.end()
            time_side(runs[0], plan, timed_on, keep=keep, say=note)
    except BaseException:
        progress.end()
        for run in runs:
            kept = _store(run, records, journals[run.run])
            if kept is not None:
                note(f"kept: {kept}")
        raise
    progress.end()
    for run in runs:
        _store(run, records, journals[run.run])
    return [run.record() for run in runs]


def recover_orphans(records: Path) -> None:
    """Turn the journals of killed runs into incomplete records."""
    for journal in list(orphans(records)):
        record = recover(journal)
        if record is not None:
            note(f"kept of a run that was killed: {save(records, record)}")
        journal.unlink()


def _journal(record: RunRecord, records: Path) -> Journal:
    return Journal(journal_path(record_path(records, record)), record)


def _store(run: SideRun, records: Path, journal: Journal) -> Path | None:
    """Write a side's record, drop the journal it replaces, and return the record's path.

    A side without a single case, such as one whose suite does not load, leaves none.
    """
    record = run.record()
    path = save(records, record) if record.cases else None
    journal.remove()
    return path
