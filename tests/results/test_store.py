"""The store only ever gains records, and a file in it is whole or absent."""

from __future__ import annotations

import errno
import os
import resource
import signal
from typing import TYPE_CHECKING

import pytest

from ci.results.errors import RecordError, StoreError
from ci.results.store import load, load_all, load_gate, save, save_gate, write_text
from tests import builders

if TYPE_CHECKING:
    from pathlib import Path


def test_a_record_lies_below_its_machine_and_commit(tmp_path: Path) -> None:
    path = save(tmp_path, builders.record(builders.case()))
    place = path.relative_to(tmp_path)
    assert str(place) == f"simulator/{'a' * 40}/20250102T030405Z-abcdef.json"
    assert load(path) == builders.record(builders.case())


def test_two_runs_of_one_commit_are_two_records(tmp_path: Path) -> None:
    first = builders.record(builders.case(), run="run-1")
    second = builders.record(builders.case(), run="run-2", started="2025-01-02T03:05:00+00:00")
    save(tmp_path, second)
    save(tmp_path, first)
    assert load_all(tmp_path) == (first, second)


def test_a_record_is_never_overwritten_with_other_content(tmp_path: Path) -> None:
    path = save(tmp_path, builders.record(builders.case()))
    before = path.read_bytes()
    with pytest.raises(StoreError, match="append-only"):
        save(tmp_path, builders.record())
    assert path.read_bytes() == before


def test_the_same_record_again_changes_nothing(tmp_path: Path) -> None:
    path = save(tmp_path, builders.record(builders.case()))
    before = path.stat()
    assert save(tmp_path, builders.record(builders.case())) == path
    assert path.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../other", "a/b", "a\\b", ".hidden", "a\nb", "a\0b"]
)
def test_a_machine_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="machine"):
        save(tmp_path, builders.record(on=builders.machine(name=name)))
    assert list(tmp_path.iterdir()) == []


def test_no_folder_holds_no_records(tmp_path: Path) -> None:
    assert load_all(tmp_path / "records") == ()


def test_leftovers_of_killed_writers_are_no_records(tmp_path: Path) -> None:
    path = save(tmp_path, builders.record(builders.case()))
    path.with_name(".other.json.123.tmp").write_text('{"schema_ver')
    path.with_name("other.journal.jsonl").write_text("")
    assert load_all(tmp_path) == (builders.record(builders.case()),)


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    path = save(tmp_path, builders.record(builders.case()))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RecordError, match=str(path)):
        load_all(tmp_path)


def test_a_record_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    path = save(tmp_path, builders.record(builders.case()))
    path.write_bytes(b'{"subject": "\xff"}')
    with pytest.raises(RecordError, match="expected UTF-8"):
        load(path)


def test_a_full_disk_is_an_os_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: the write itself fails."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, former[1]))
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            save(tmp_path, builders.record(builders.case()))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, handler)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_text_is_replaced_whole_and_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "out" / "report.md"
    write_text(path, "first\n")
    write_text(path, "second\n")
    umask = os.umask(0)
    os.umask(umask)
    assert path.read_text() == "second\n"
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    assert list(path.parent.iterdir()) == [path]


def test_a_gate_result_is_read_as_it_was_saved(tmp_path: Path) -> None:
    result = builders.gate(None, builders.record(builders.case()))
    save_gate(tmp_path / "verdict.json", result)
    assert load_gate(tmp_path / "verdict.json") == result
