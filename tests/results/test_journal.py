"""A killed run keeps what it had finished."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.results.errors import RecordError
from ci.results.journal import Journal, journal_path, orphans, recover
from ci.results.model import RunRecord
from tests import builders

ROOT = Path(__file__).resolve().parents[2]
FIRST = "sgemm/01_naive[M=1,N=1,K=1]"
SECOND = "sgemm/01_naive[M=2,N=2,K=2]"


def _run() -> RunRecord:
    return builders.record(builders.case(FIRST))


def _written(folder: Path) -> Path:
    path = journal_path(folder / "machine" / "commit" / "run.json")
    journal = Journal(path, _run())
    journal.add(builders.stage())
    journal.add(builders.case(FIRST))
    journal.add(builders.case(SECOND))
    journal.close()
    return path


def test_every_finished_result_is_recovered_into_an_incomplete_record(tmp_path: Path) -> None:
    record = recover(_written(tmp_path))
    assert record is not None
    assert not record.complete
    assert record.revision == _run().revision
    assert record.stages == (builders.stage(),)
    assert [case.id for case in record.cases] == [FIRST, SECOND]


def test_of_two_lines_on_one_stage_the_later_counts(tmp_path: Path) -> None:
    path = tmp_path / "run.journal.jsonl"
    journal = Journal(path, _run())
    later = replace(builders.stage(), seconds=builders.stage().seconds + 1)
    for result in (builders.stage(), builders.case(FIRST), later):
        journal.add(result)
    journal.close()
    record = recover(path)
    assert record is not None
    assert record.stages == (later,)


@given(cut=st.integers(min_value=1))
def test_a_journal_cut_anywhere_loses_the_line_in_flight_only(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = _written(tmp_path_factory.mktemp("journal"))
    text = path.read_bytes()
    kept = text[: -(cut % len(text)) or None]
    path.write_bytes(kept)
    record = recover(path)
    cases = max(kept.count(b"\n") - 2, 0)
    assert (len(record.cases) if record else 0) == cases


@pytest.mark.parametrize("damage", [b"{", b"\xff\xfe", b"", b'{"case": 1}', b'{"speed": {}}'])
def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path, damage: bytes) -> None:
    path = _written(tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[1] = damage
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(RecordError, match=r"run\.journal\.jsonl:2: "):
        recover(path)


def test_a_journal_without_a_finished_case_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.journal.jsonl"
    Journal(path, _run()).close()
    assert recover(path) is None


def test_a_journal_is_never_shared_by_two_runs(tmp_path: Path) -> None:
    path = _written(tmp_path)
    with pytest.raises(FileExistsError):
        Journal(path, _run())


def test_a_journal_goes_away_with_its_run(tmp_path: Path) -> None:
    path = tmp_path / "run.journal.jsonl"
    journal = Journal(path, _run())
    journal.add(builders.case())
    journal.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_journal_of_a_run_that_is_going_on_is_no_orphan(tmp_path: Path) -> None:
    path = journal_path(tmp_path / "machine" / "commit" / "run.json")
    journal = Journal(path, _run())
    assert list(orphans(tmp_path)) == []
    journal.close()
    assert list(orphans(tmp_path)) == [path]


def test_the_journal_of_a_killed_process_is_an_orphan(tmp_path: Path) -> None:
    path = journal_path(tmp_path / "machine" / "commit" / "run.json")
    program = (
        "import os, signal; from pathlib import Path; from tests import builders; "
        "from ci.results.journal import Journal; "
        f"journal = Journal(Path({str(path)!r}), builders.record(builders.case({FIRST!r}))); "
        f"journal.add(builders.case({SECOND!r})); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)
    (found,) = orphans(tmp_path)
    record = recover(found)
    assert record is not None
    assert [case.id for case in record.cases] == [SECOND]
