"""Makes the records of commits on the machine at hand, which need not have git.

With git:      scripts/record_commit.py HEAD~2 HEAD~1 HEAD
Without git:   scripts/record_commit.py --only-export HEAD      where git is,
               scripts/record_commit.py build/commits/<hash>    on the machine that measures.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ci.measure.sides import Git, export_commit  # noqa: E402

SUITE = Path("kernels")


def main() -> int:
    """Record every commit that was named; return the worst exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="+", help="revision, or folder of an exported commit")
    parser.add_argument("--only-export", action="store_true", help="export, measure elsewhere")
    parser.add_argument("--into", type=Path, default=Path("build/commits"), help="for exports")
    parser.add_argument("--records", default="records", help="folder of the records")
    arguments = parser.parse_args()
    worst = 0
    for named in arguments.commit:
        folder = Path(named) if Path(named).is_dir() else exported(named, arguments.into)
        if arguments.only_export:
            print(folder)
        else:
            worst = max(worst, measure(folder, arguments.records))
    return worst


def exported(revision: str, into: Path) -> Path:
    """Return the folder of a commit's suite, named by its full hash."""
    git = Git(ROOT)
    commit = git.commit(revision)
    if commit is None:
        sys.exit(f"{revision}: neither a revision that git knows in {ROOT} nor a folder")
    folder = into / commit
    if not folder.exists():
        export_commit(commit, suite=SUITE, git=git, folder=folder)
    return folder


def measure(folder: Path, records: str) -> int:
    """Measure an exported commit and return flopwatch's exit code."""
    side = f"{folder}@{folder.resolve().name}"
    command = [sys.executable, "-P", "-m", "ci", "measure", "--revision", side]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, "--records", records], env=environment, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
