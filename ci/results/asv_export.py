"""Records as asv reads them: ``results/<machine>/<commit>-<env>.json`` and its two indexes.

asv's files are derived from records and can be remade at any time. They are strict JSON, which
asv's own are not, and hold the statistics that asv computes of samples.

Source: the result format of asv 0.6.6, version 2.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ci.results import codec
from ci.results.asv_quantities import (
    PARAMETER_NAMES,
    QUANTITIES,
    Figure,
    Parameters,
    Quantity,
    StageQuantity,
    benchmark_name,
    benchmark_version,
    figures,
)
from ci.results.codec import Json
from ci.results.errors import StoreError
from ci.results.model import CaseResult, RunRecord, StageResult
from ci.results.store import write_text

ENVIRONMENT = "flopwatch"
"""asv's name of the one environment all commits are measured in."""

RESULT_VERSION = 2
BENCHMARKS_VERSION = 2
MACHINE_VERSION = 1

BENCHMARKS_FILE = "benchmarks.json"
MACHINE_FILE = "machine.json"

COLUMNS = (
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
    "stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples", "profile",
)  # fmt: skip
"""The columns of a result file, in asv's order."""

RUNS_KEY = "flopwatch_runs"
"""Key of the runs that a result file was made from; asv ignores it."""

COMMIT = re.compile(r"[0-9a-f]{40}")
"""What asv can show: edited trees and trees without git are no commits."""

_COMMIT_DIGITS = 8
_CONFIDENCE = 0.99


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """asv's files, and what asv cannot show."""

    files: Mapping[str, str]
    """Path below ``results/`` → text."""
    left_out: tuple[str, ...]
    """One sentence a record that is not about a commit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Commit:
    """Everything one machine knows about one commit."""

    runs: tuple[RunRecord, ...]
    """Complete runs first, the latest of them first: the same order as on the dashboard."""
    stages: tuple[StageResult, ...]
    cases: tuple[CaseResult, ...]

    @property
    def machine(self) -> str:
        """Return the machine's name."""
        return self.runs[0].machine.name

    @property
    def path(self) -> str:
        """Return the file's place below ``results/``."""
        commit = self.runs[0].revision.commit
        return f"{self.machine}/{commit[:_COMMIT_DIGITS]}-{ENVIRONMENT}.json"


def export(records: Sequence[RunRecord]) -> Export:
    """Return the asv files of all records: the same records give the same bytes."""
    shown = [record for record in records if COMMIT.fullmatch(record.revision.commit)]
    others = sorted(
        f"{record.revision.commit} on {record.machine.name}: asv shows commits only"
        for record in records
        if record not in shown
    )
    commits = _commits(shown)
    files = {BENCHMARKS_FILE: _as_asv_writes(_benchmarks(commits), BENCHMARKS_VERSION)}
    for commit in commits:
        files[f"{commit.machine}/{MACHINE_FILE}"] = _as_asv_writes(
            machine_entry(commit.machine), MACHINE_VERSION
        )
        if commit.path in files:
            msg = (
                f"{commit.path}: expected one commit, got two that begin with the same "
                f"{_COMMIT_DIGITS} digits (asv cannot tell them apart: move one record away)"
            )
            raise StoreError(msg)
        files[commit.path] = _as_rows(_result(commit))
    return Export(files=files, left_out=tuple(dict.fromkeys(others)))


def machine_entry(name: str) -> dict[str, Json]:
    """Return what asv is told of a machine.

    Its name alone, GPU model and runner slot: every further entry would start new series when it
    changes. Versions and clocks are in the records.
    """
    return {"machine": name}


def write(exported: Export, folder: Path) -> tuple[Path, ...]:
    """Write the files that are missing or older below ``folder``; return those written.

    A result file is replaced only where it says that it was made from fewer of the same runs.

    Raises:
        StoreError: A result file holds something else.
        OSError: The disk is full or the folder cannot be written.
    """
    changed = {
        folder / path: text
        for path, text in exported.files.items()
        if not (folder / path).exists() or (folder / path).read_text(encoding="utf-8") != text
    }
    for path, text in changed.items():
        if path.exists() and path.name not in (BENCHMARKS_FILE, MACHINE_FILE):
            _refuse_other_content(path, text)
    for path, text in changed.items():
        write_text(path, text)
    return tuple(changed)


def _refuse_other_content(path: Path, text: str) -> None:
    old, new = _runs(path.read_text(encoding="utf-8"), path), _runs(text, path)
    if not old or not old < new:
        msg = (
            f"{path}: expected the export of the records, or of fewer of them, got other content "
            f"(edited, or written by asv itself: the records hold every figure, so move the file "
            f"away and run flopwatch site again)"
        )
        raise StoreError(msg)


def _runs(text: str, path: Path) -> set[str]:
    document = codec.parse(text, str(path))
    runs = document.get(RUNS_KEY) if isinstance(document, dict) else None
    return {str(run) for run in runs} if isinstance(runs, list) else set()


def _commits(records: Sequence[RunRecord]) -> list[_Commit]:
    """Return what is known of each commit and machine, the latest run first."""
    groups: dict[tuple[str, str], list[RunRecord]] = {}
    newest_first = sorted(records, key=lambda each: (each.started, each.run), reverse=True)
    for record in newest_first:
        groups.setdefault((record.machine.name, record.revision.commit), []).append(record)
    commits = []
    for group in groups.values():
        runs = sorted(group, key=lambda each: not each.complete)
        stages: dict[tuple[str, str], StageResult] = {}
        cases: dict[str, CaseResult] = {}
        for run in runs:
            for stage in run.stages:
                stages.setdefault((stage.ladder, stage.stage), stage)
            for case in run.cases:
                cases.setdefault(case.id, case)
        commits.append(
            _Commit(runs=tuple(runs), stages=tuple(stages.values()), cases=tuple(cases.values()))
        )
    return commits


def _benchmarks(commits: Sequence[_Commit]) -> dict[str, Json]:
    """Return the index of benchmarks: parameters of every commit, the latest commit's first."""
    stages = [stage for commit in commits for stage in commit.stages]
    cases = [case for commit in commits for case in commit.cases]
    index: dict[str, Json] = {}
    for ladder in dict.fromkeys(stage.ladder for stage in stages):
        for quantity in QUANTITIES:
            found = list(figures(ladder, quantity, stages, cases))
            if found:
                entry = benchmark_entry(ladder, quantity, _axes(found))
                index[benchmark_name(ladder, quantity)] = entry
    return index


def benchmark_entry(
    ladder: str, quantity: Quantity, axes: Sequence[Sequence[str]]
) -> dict[str, Json]:
    """Return what asv is told of a quantity of a ladder.

    Args:
        ladder: The ladder's name.
        quantity: The quantity.
        axes: Stages, then sizes if the quantity has them.
    """
    return {
        "code": quantity.meaning,
        "name": benchmark_name(ladder, quantity),
        "param_names": list(PARAMETER_NAMES[: len(axes)]),
        "params": [[repr(value) for value in axis] for axis in axes],
        "type": "track",
        "unit": quantity.unit,
        "version": benchmark_version(ladder, quantity),
    }


def _axes(found: Iterable[Parameters]) -> list[list[str]]:
    """Return the values of each parameter, in the order they come."""
    return [list(dict.fromkeys(values)) for values in zip(*found, strict=True)]


def _result(commit: _Commit) -> dict[str, Json]:
    """Return the result file of one commit."""
    newest = commit.runs[0]
    results: dict[str, Json] = {}
    for ladder in dict.fromkeys(stage.ladder for stage in commit.stages):
        for quantity in QUANTITIES:
            found = figures(ladder, quantity, commit.stages, commit.cases)
            if any(figure is not None for figure in found.values()):
                row = _row(ladder, quantity, found, _milliseconds(newest.started))
                results[benchmark_name(ladder, quantity)] = row
    return {
        "commit_hash": newest.revision.commit,
        "env_name": ENVIRONMENT,
        "date": _milliseconds(newest.revision.committed or newest.started),
        "params": machine_entry(commit.machine),
        "python": newest.machine.versions.get("python", ""),
        "requirements": {},
        "env_vars": {},
        "result_columns": list(COLUMNS),
        "results": results,
        "durations": {},
        RUNS_KEY: [run.run for run in commit.runs],
        "version": RESULT_VERSION,
    }


def _row(
    ladder: str, quantity: Quantity, found: Mapping[Parameters, Figure | None], started_ms: int
) -> list[Json]:
    """Return the row of one benchmark, its trailing nulls cut as asv does."""
    axes = _axes(found)
    values = [found.get(combination) for combination in itertools.product(*axes)]
    medians: list[Json] = [
        statistics.median(value) if isinstance(value, tuple) else value for value in values
    ]
    params: Json = [[repr(value) for value in axis] for axis in axes]
    row: list[Json] = [medians, params, benchmark_version(ladder, quantity), started_ms]
    if isinstance(quantity, StageQuantity) or not any(isinstance(each, tuple) for each in values):
        return row
    summaries = [_summary(value) if isinstance(value, tuple) else None for value in values]
    columns: list[Json] = [
        [summary and summary[number] for summary in summaries] for number in range(6)
    ]
    samples: Json = [list(value) if isinstance(value, tuple) else None for value in values]
    return [*row, None, *columns, samples]


def _summary(samples: Sequence[float]) -> tuple[float, float, float, float, int, int]:
    """Return asv's statistics: 99 % interval of the median, quartiles, launches, samples."""
    ordered = sorted(samples)
    low, high = _median_interval(ordered)
    return low, high, _quantile(ordered, 0.25), _quantile(ordered, 0.75), 1, len(ordered)


def _median_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a 99 % interval of the median; all samples where they are too few.

    Source: the interval between two order statistics, whose coverage is binomial whatever the
    distribution (H. A. David, H. N. Nagaraja, Order Statistics, 3rd edition, 7.1).
    """
    count = len(ordered)
    outside = 0.0
    rank = 0
    while rank < count // 2:
        outside += 2 * math.comb(count, rank) / 2**count
        if outside > 1 - _CONFIDENCE:
            break
        rank += 1
    rank = max(rank - 1, 0)
    return ordered[rank], ordered[count - 1 - rank]


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile, linear between its two neighbours."""
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _milliseconds(moment: str) -> int:
    """Return an ISO 8601 moment as asv stores it: ms since 1970."""
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


def _as_asv_writes(document: Mapping[str, Json], version: int) -> str:
    """Return an index exactly as asv would write it, so that its own runs change nothing."""
    return json.dumps({**document, "version": version}, indent=4, sort_keys=True, allow_nan=False)


def _as_rows(document: Mapping[str, Json]) -> str:
    """Return a result file with one line a key and a benchmark, so that changes read well."""
    lines = []
    for key, value in document.items():
        if key == "results" and isinstance(value, dict):
            rows = [f"  {json.dumps(name)}: {_line(row)}" for name, row in value.items()]
            lines.append(f' "{key}": {{\n' + ",\n".join(rows) + "}")
        else:
            lines.append(f" {json.dumps(key)}: {_line(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _line(value: Json) -> str:
    return json.dumps(value, allow_nan=False)
