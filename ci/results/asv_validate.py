"""Checks asv's files before asv reads them, since asv trusts what it finds.

One Infinity makes ``asv publish`` grow without bound; a broken index leaves no site at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from ci.results import codec
from ci.results.asv_export import (
    BENCHMARKS_FILE,
    BENCHMARKS_VERSION,
    COLUMNS,
    COMMIT,
    MACHINE_FILE,
    MACHINE_VERSION,
    RESULT_VERSION,
)
from ci.results.codec import Json
from ci.results.errors import RecordError, ResultsError

_SHOWN_PROBLEMS = 10
_REQUIRED = {
    "commit_hash": str,
    "env_name": str,
    "date": int,
    "params": dict,
    "python": str,
    "requirements": dict,
    "env_vars": dict,
    "result_columns": list,
    "results": dict,
    "durations": dict,
}
_BENCHMARK = {
    "code": str,
    "name": str,
    "param_names": list,
    "params": list,
    "type": str,
    "unit": str,
    "version": str,
}


class AsvFilesError(ResultsError):
    """The folder that asv reads holds something asv would trip over."""


def validate_results(folder: Path) -> None:
    """Check every file below asv's results folder; a folder that is not there is sound.

    Raises:
        AsvFilesError: Files are no strict JSON, of another version, or break asv's format.
    """
    problems = list(_problems(folder))
    if problems:
        shown = problems[:_SHOWN_PROBLEMS]
        more = len(problems) - len(shown)
        lines = [*shown, *([f"and {more} more"] if more else [])]
        msg = (
            "\n".join(lines)
            + f"\n(asv would drop these, or hang on them: move the files out of {folder}/ and run "
            "flopwatch site, which makes them anew from the records)"
        )
        raise AsvFilesError(msg)


def _problems(folder: Path) -> Iterator[str]:
    """Yield what is wrong, file by file."""
    files = sorted(folder.rglob("*.json"))
    if files and not (folder / BENCHMARKS_FILE).exists():
        yield f"{folder / BENCHMARKS_FILE}: expected the index of benchmarks, got no such file"
    for path in files:
        try:
            document = codec.parse(path.read_text(encoding="utf-8"), str(path))
        except (RecordError, UnicodeDecodeError) as error:
            yield f"{path}: {error}".removeprefix(f"{path}: ")
            continue
        if not isinstance(document, dict):
            yield f"{path}: expected an object, got {type(document).__name__}"
        elif path == folder / BENCHMARKS_FILE:
            yield from _in_file(path, _benchmarks_problems(document))
        elif path.parent.parent != folder:
            yield f"{path}: expected a file in the folder of a machine"
        elif path.name == MACHINE_FILE:
            yield from _in_file(path, _machine_problems(document, path.parent.name))
        else:
            yield from _in_file(path, _result_problems(document, path))


def _in_file(path: Path, problems: Iterator[str]) -> Iterator[str]:
    return (f"{path}: {problem}" for problem in problems)


def _version_problems(document: dict[str, Json], version: int) -> Iterator[str]:
    if document.get("version") != version:
        yield f"version: expected {version}, got {document.get('version')!r}"


def _field_problems(document: dict[str, Json], fields: Mapping[str, type]) -> Iterator[str]:
    for name, kind in fields.items():
        if not isinstance(document.get(name), kind):
            got = type(document.get(name)).__name__ if name in document else "nothing"
            yield f"{name}: expected {kind.__name__}, got {got}"


def _benchmarks_problems(document: dict[str, Json]) -> Iterator[str]:
    yield from _version_problems(document, BENCHMARKS_VERSION)
    for name, entry in document.items():
        if name == "version":
            continue
        if not isinstance(entry, dict):
            yield f"{name}: expected an object"
            continue
        yield from (f"{name}: {problem}" for problem in _field_problems(entry, _BENCHMARK))
        yield from (f"{name}: {problem}" for problem in _axes_problems(entry.get("params")))
        if entry.get("name") != name:
            yield f"{name}: name: expected its key, got {entry.get('name')!r}"


def _machine_problems(document: dict[str, Json], folder: str) -> Iterator[str]:
    yield from _version_problems(document, MACHINE_VERSION)
    if document.get("machine") != folder:
        yield f"machine: expected its folder's name {folder!r}, got {document.get('machine')!r}"
    nested = [key for key, value in document.items() if isinstance(value, list | dict)]
    if nested:
        yield f"{nested[0]}: expected a single value (asv publish fails on nested ones)"


def _result_problems(document: dict[str, Json], path: Path) -> Iterator[str]:
    yield from _version_problems(document, RESULT_VERSION)
    wrong = list(_field_problems(document, _REQUIRED))
    yield from wrong
    if wrong:
        return
    commit = str(document["commit_hash"])
    if not COMMIT.fullmatch(commit):
        yield f"commit_hash: expected 40 hexadecimal digits, got {commit!r}"
    elif not commit.startswith(path.name.partition("-")[0]):
        yield f"commit_hash: expected the commit in the file's name, got {commit}"
    params = document["params"]
    if isinstance(params, dict) and params.get("machine") != path.parent.name:
        yield f"params.machine: expected {path.parent.name!r}, got {params.get('machine')!r}"
    if not (path.parent / MACHINE_FILE).exists():
        yield f"expected {MACHINE_FILE} beside it, got no such file"
    columns = document["result_columns"]
    if columns != list(COLUMNS):
        yield f"result_columns: expected {', '.join(COLUMNS)}"
    results = document["results"]
    for name, row in results.items() if isinstance(results, dict) else ():
        yield from (f"{name}: {problem}" for problem in _row_problems(row))


def _row_problems(row: Json) -> Iterator[str]:
    """Yield what is wrong with the row of one benchmark."""
    if not isinstance(row, list) or not 3 <= len(row) <= len(COLUMNS):  # noqa: PLR2004
        yield "expected a row of at least result, params and version"
        return
    cells = dict(zip(COLUMNS, row, strict=False))
    wrong = list(_axes_problems(cells["params"]))
    yield from wrong
    if not isinstance(cells["version"], str):
        yield f"version: expected text, got {cells['version']!r}"
    if wrong or not isinstance(cells["params"], list):
        return
    length = math.prod(len(axis) for axis in cells["params"] if isinstance(axis, list))
    for column, cell in cells.items():
        if column == "result" or column.startswith("stats_") or column == "samples":
            if cell is None:
                continue
            if not isinstance(cell, list) or len(cell) != length:
                yield f"{column}: expected a list of {length}, one for each combination"
            elif not all(_is_sound(value, sampled=column == "samples") for value in cell):
                yield f"{column}: expected numbers and nulls"


def _is_sound(value: Json, *, sampled: bool) -> bool:
    """Return whether a cell's entry is null, a number or, among samples, a list of numbers."""
    if value is None:
        return True
    if sampled:
        return isinstance(value, list) and bool(value) and all(map(_is_number, value))
    return _is_number(value)


def _is_number(value: Json) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # A literal such as 1e999 is strict JSON and reads as infinite.
    return math.isfinite(value)


def _axes_problems(axes: Json) -> Iterator[str]:
    named = isinstance(axes, list) and all(
        isinstance(axis, list) and axis and all(isinstance(value, str) for value in axis)
        for axis in axes
    )
    if not named:
        yield "params: expected lists of text, one for each parameter"
