"""A commit that was exported for a machine without git keeps what git told of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ci.measure.sides import REVISION_FILE, Git, export_commit, resolve_one
from ci.results.errors import RecordError

ROOT = Path(__file__).resolve().parents[2]
SUITE = Path("kernels")


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    git = Git(ROOT)
    commit = git.commit("HEAD")
    if commit is None:
        pytest.skip("this copy has no git")
    folder = tmp_path / commit
    export_commit(commit, suite=SUITE, git=git, folder=folder)
    return folder


def test_a_folder_with_its_commit_tells_subject_date_and_parents(
    exported: Path, tmp_path: Path
) -> None:
    here = resolve_one("HEAD", suite=SUITE, here=ROOT, scratch=tmp_path / "scratch").revision
    there = resolve_one(
        f"{exported}@{exported.name}", suite=SUITE, here=tmp_path, scratch=tmp_path
    ).revision
    assert there.committed
    assert (there.commit, there.subject, there.committed, there.parents) == (
        here.commit,
        here.subject,
        here.committed,
        here.parents,
    )


def test_another_commit_than_the_exported_one_borrows_nothing(
    exported: Path, tmp_path: Path
) -> None:
    side = resolve_one(f"{exported}@{'e' * 40}", suite=SUITE, here=tmp_path, scratch=tmp_path)
    assert (side.revision.commit, side.revision.subject) == ("e" * 40, "")


def test_a_damaged_revision_file_is_refused(exported: Path, tmp_path: Path) -> None:
    (exported / REVISION_FILE).write_text("{")
    with pytest.raises(RecordError, match="revision"):
        resolve_one(f"{exported}@{exported.name}", suite=SUITE, here=tmp_path, scratch=tmp_path)


def test_the_script_exports_a_commit_under_its_full_hash(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this copy has no git")
    done = subprocess.run(
        [sys.executable, "scripts/record_commit.py", "--only-export", "--into", tmp_path, "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    folder = Path(done.stdout.strip())
    assert folder == tmp_path / (Git(ROOT).commit("HEAD") or "")
    assert (folder / "kernels/sgemm/ladder.py").is_file()
