"""One run of asv over a small history, shared by the tests that look at what it left."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.asv.asv_repository import commit, empty_repository, run

WIDE = 'grid=(-(-size["N"] // 16), -(-size["M"] // 8), 1), block=(16, 8, 1)'
NARROW = 'grid=(-(-size["N"] // 8), -(-size["M"] // 16), 1), block=(8, 16, 1)'


@dataclass(frozen=True, kw_only=True, slots=True)
class AsvRun:
    """A repository after ``asv run ALL``."""

    folder: Path
    home: Path
    commits: tuple[str, str, str]
    """Sound; with a suite that does not load; sound again, with more sectors."""
    done: subprocess.CompletedProcess[str]

    def asv(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run asv again."""
        return run(self.folder, "asv", *arguments, home=self.home)


@pytest.fixture(scope="session")
def asv_run(tmp_path_factory: pytest.TempPathFactory) -> AsvRun:
    folder = empty_repository(tmp_path_factory.mktemp("asv") / "repository")
    home = tmp_path_factory.mktemp("home")
    ladder = folder / "kernels/product/ladder.py"
    text = ladder.read_text()
    assert WIDE in text
    first = commit(folder, "A kernel", "2026-01-01T12:00:00+00:00")
    ladder.write_text("LADDER = 1 +\n")
    broken = commit(folder, "A slip", "2026-01-02T12:00:00+00:00")
    ladder.write_text(text.replace(WIDE, NARROW))
    last = commit(folder, "Narrow blocks", "2026-01-03T12:00:00+00:00")
    done = run(folder, "asv", "run", "ALL", home=home)
    return AsvRun(folder=folder, home=home, commits=(first, broken, last), done=done)
