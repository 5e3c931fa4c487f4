"""Records on their branch: many writers, nothing overwritten, nothing downloaded."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ci.results import codec
from ci.results.branch import append
from ci.results.errors import StoreError
from ci.results.model import RunRecord
from tests import builders

BRANCH = "perf-data"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(folder))
    git(folder, "config", "uploadpack.allowFilter", "true")
    return folder


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def add(remote: Path, *records: RunRecord) -> int:
    return append(
        records,
        remote=remote.as_uri(),
        branch=BRANCH,
        environment={},
        wait=lambda _: None,
    )


def files(remote: Path) -> list[str]:
    return git(remote, "ls-tree", "-r", "--name-only", BRANCH).splitlines()


def run(number: int) -> RunRecord:
    return builders.record(builders.case(), run=f"20250102T030405Z-{number:06d}")


def test_the_first_record_makes_the_branch(remote: Path) -> None:
    assert add(remote, run(1)) == 1
    (name,) = files(remote)
    assert name == f"records/simulator/{'a' * 40}/20250102T030405Z-000001.json"
    text = git(remote, "show", f"{BRANCH}:{name}") + "\n"
    assert codec.loads(RunRecord, text, name) == run(1)


def test_later_records_are_added_on_top(remote: Path) -> None:
    add(remote, run(1))
    assert add(remote, run(2), run(3)) == 2
    assert len(files(remote)) == 3
    assert git(remote, "rev-list", "--count", BRANCH) == "2"


def test_two_attempts_at_one_commit_are_two_records(remote: Path) -> None:
    add(remote, run(1))
    add(remote, run(2))
    assert len(files(remote)) == 2


def test_the_same_record_again_changes_nothing(remote: Path) -> None:
    add(remote, run(1))
    tip = git(remote, "rev-parse", BRANCH)
    assert add(remote, run(1)) == 0
    assert git(remote, "rev-parse", BRANCH) == tip


def test_another_record_of_the_same_name_is_refused(remote: Path) -> None:
    add(remote, run(1))
    other = builders.record(builders.case(), builders.case("sgemm/x[M=1]"), run=run(1).run)
    with pytest.raises(StoreError, match="append-only"):
        add(remote, other)
    assert len(files(remote)) == 1


def test_eight_writers_at_once_all_land(remote: Path) -> None:
    with ThreadPoolExecutor(8) as writers:
        added = list(writers.map(lambda number: add(remote, run(number)), range(8)))
    assert added == [1] * 8
    assert len(files(remote)) == 8


def test_a_remote_that_takes_nothing_is_named(remote: Path) -> None:
    hook = remote / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho protected >&2\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    with pytest.raises(StoreError, match="git push for branch perf-data"):
        add(remote, run(1))


def test_a_remote_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"git ls-remote for branch perf-data"):
        add(tmp_path / "nowhere", run(1))
