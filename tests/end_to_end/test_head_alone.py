"""Where there is nothing to compare with, head is checked alone, and a line says so."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True)


def archive(folder: Path) -> None:
    del folder


def root_commit(folder: Path) -> None:
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")


def depth_one(folder: Path) -> None:
    root_commit(folder)
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "two")
    deep = folder.with_name("deep")
    folder.rename(deep)
    git(folder.parent, "clone", "--quiet", "--depth", "1", f"file://{deep}", str(folder))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (archive, "no git checkout"),
        (root_commit, "root commit"),
        (depth_one, "the clone is shallow"),
    ],
)
def test_head_is_checked_alone_and_a_line_says_why(tmp_path: Path, make: object, told: str) -> None:
    folder = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "kernels", folder / "kernels", ignore=ignored)
    assert callable(make)
    make(folder)
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ci", "gate", "-k", "01_naive", "--out", str(out)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    verdict = json.loads((out / "verdict.json").read_text())
    assert verdict["base"] is None
    assert {case["verdict"] for case in verdict["cases"]} == {"NEW"}
    assert any("head is checked alone" in note and told in note for note in verdict["notes"])
    assert "head is checked alone" in done.stdout
