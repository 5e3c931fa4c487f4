"""Whatever asv would trip over is named before asv reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci.results.asv_export import export, write
from ci.results.asv_validate import AsvFilesError, validate_results
from tests.asv.asv_repository import GPU, history

COMMIT = "a" * 40
FILE = f"{GPU}/aaaaaaaa-flopwatch.json"
TIME = "sgemm.track_time"

Document = dict[str, Any]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write(export(history([COMMIT])), tmp_path)
    return tmp_path


def set_result(value: object) -> Callable[[Document], None]:
    def spoil(document: Document) -> None:
        document["results"][TIME][0][0] = value

    return spoil


def set_key(name: str, value: object) -> Callable[[Document], None]:
    return lambda document: document.update({name: value})


def drop(name: str) -> Callable[[Document], None]:
    return lambda document: document.pop(name)


def shorten(document: Document) -> None:
    document["results"][TIME][0].pop()


def empty_samples(document: Document) -> None:
    document["results"][TIME][11][0] = []


def nan_sample(document: Document) -> None:
    document["results"][TIME][11][0][0] = float("nan")


def empty_row(document: Document) -> None:
    document["results"][TIME] = []


RESULT_FAULTS: dict[str, tuple[Callable[[Document], None], str]] = {
    "NaN": (set_result(float("nan")), "NaN"),
    "Infinity": (set_result(float("inf")), "Infinity"),
    "text": (set_result("fast"), "result: expected numbers and nulls"),
    "list": (set_result([1.0]), "result: expected numbers and nulls"),
    "true": (set_result(True), "result: expected numbers and nulls"),
    "short list": (shorten, "result: expected a list of 2"),
    "no samples": (empty_samples, "samples: expected numbers and nulls"),
    "NaN sample": (nan_sample, "NaN"),
    "empty row": (empty_row, "expected a row of at least"),
    "other version": (set_key("version", 3), "version: expected 2, got 3"),
    "other columns": (set_key("result_columns", ["result"]), "result_columns"),
    "no date": (drop("date"), "date: expected int, got nothing"),
    "results are a list": (set_key("results", []), "results: expected dict"),
    "short commit": (set_key("commit_hash", "aaaaaaaa"), "40 hexadecimal digits"),
    "other commit": (set_key("commit_hash", "b" * 40), "the commit in the file's name"),
    "other machine": (set_key("params", {"machine": "laptop"}), "params.machine"),
}


@pytest.mark.parametrize("fault", RESULT_FAULTS)
def test_a_broken_result_file_is_refused(results: Path, fault: str) -> None:
    spoil, expected = RESULT_FAULTS[fault]
    validate_results(results)
    document = json.loads((results / FILE).read_text())
    spoil(document)
    (results / FILE).write_text(json.dumps(document))
    with pytest.raises(AsvFilesError, match=expected) as refused:
        validate_results(results)
    assert FILE in str(refused.value)
    assert "flopwatch site" in str(refused.value)


def test_a_number_that_only_reads_as_infinite_is_refused(results: Path) -> None:
    text = (results / FILE).read_text()
    assert f'"{TIME}": [[1.0' in text
    (results / FILE).write_text(text.replace(f'"{TIME}": [[1.0', f'"{TIME}": [[1e999', 1))
    with pytest.raises(AsvFilesError, match="expected numbers and nulls"):
        validate_results(results)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2', "\x00", '"text"'])
@pytest.mark.parametrize("name", [FILE, "benchmarks.json", f"{GPU}/machine.json"])
def test_a_cut_or_foreign_file_is_refused(results: Path, name: str, text: str) -> None:
    (results / name).write_text(text)
    with pytest.raises(AsvFilesError, match=name):
        validate_results(results)


@pytest.mark.parametrize("name", ["benchmarks.json", f"{GPU}/machine.json"])
def test_a_missing_index_is_refused(results: Path, name: str) -> None:
    (results / name).unlink()
    with pytest.raises(AsvFilesError, match="got no such file"):
        validate_results(results)


def test_a_stray_file_is_refused(results: Path) -> None:
    (results / "notes.json").write_text("{}")
    with pytest.raises(AsvFilesError, match="notes"):
        validate_results(results)


def test_a_machine_with_nested_facts_is_refused(results: Path) -> None:
    machine = {"machine": GPU, "clocks": [1], "version": 1}
    (results / GPU / "machine.json").write_text(json.dumps(machine))
    with pytest.raises(AsvFilesError, match="clocks"):
        validate_results(results)


def test_no_folder_and_no_files_are_sound(tmp_path: Path) -> None:
    validate_results(tmp_path / "nowhere")
    validate_results(tmp_path)
