"""asv's part of the site: result files from records, then ``asv publish``."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ci.errors import UsageError
from ci.measure.sides import Git
from ci.results.asv_export import COMMIT, export, write
from ci.results.asv_validate import validate_results
from ci.results.model import RunRecord
from ci.verbs.context import note

FOLDER = "asv"
"""Folder of asv's pages in the site."""

_HOME = Path(__file__).resolve().parents[2]
_LIMIT_S = 1800.0
_CONFIGURATION = "asv.conf.json"


def publish(records: Sequence[RunRecord], *, results: Path, checkout: Path, site: Path) -> str:
    """Remake asv's result files and its pages; return their front page below ``site``.

    Empty, with a note that says why, where asv's pages cannot be made: the rest of the site
    needs neither asv nor git.

    Args:
        records: All records.
        results: Folder of asv's result files.
        checkout: Root of the checkout, which holds the commits.
        site: Folder of the site.

    Raises:
        ResultsError: The result folder holds something that records do not explain.
        UsageError: asv refused.
    """
    exported = export(records)
    write(exported, results)
    validate_results(results)
    for sentence in exported.left_out:
        note(f"not on asv's pages: {sentence}")
    obstacle = _obstacle(records, checkout)
    if obstacle:
        note(f"the site is without asv's pages: {obstacle}")
        return ""
    configuration = json.loads((checkout / _CONFIGURATION).read_text(encoding="utf-8"))
    branches = _branches(configuration["branches"], Git(checkout))
    for sentence in _unreachable(records, branches, Git(checkout)):
        note(f"not on asv's pages: {sentence}")
    with tempfile.TemporaryDirectory(prefix="flopwatch-asv-") as scratch:
        html = Path(scratch) / "html"
        own = {
            **configuration,
            "repo": str(checkout.resolve()),
            "branches": branches,
            "results_dir": str(results.resolve()),
            "html_dir": str(html),
            # The other plug-in measures, which publishing does not.
            "plugins": [".ci.asv.pages"],
        }
        (Path(scratch) / _CONFIGURATION).write_text(json.dumps(own), encoding="utf-8")
        _run_asv(Path(scratch))
        place = site / FOLDER
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(html, place)
    return f"{FOLDER}/index.html"


def _obstacle(records: Sequence[RunRecord], checkout: Path) -> str:
    """Return why asv's pages cannot be made, empty if they can."""
    if importlib.util.find_spec("asv") is None:
        return "asv is not installed (pip install asv==0.6.6)"
    if not (checkout / _CONFIGURATION).exists():
        return f"{checkout} holds no {_CONFIGURATION}"
    if Git(checkout).commit("HEAD") is None:
        return f"{checkout} is no git checkout, and asv takes the order of commits from git"
    if not any(COMMIT.fullmatch(record.revision.commit) for record in records):
        return "no record is about a commit (flopwatch measure --revision HEAD makes one)"
    return ""


def _branches(configured: Sequence[str], git: Git) -> list[str]:
    """Return the configured branches that are here, else what is checked out."""
    here = [branch for branch in configured if git.commit(branch) is not None]
    return here or ["HEAD"]


def _unreachable(records: Sequence[RunRecord], branches: Sequence[str], git: Git) -> list[str]:
    """Return a sentence for each measured commit that is on no branch, as after a rebase."""
    listed = git.ask("rev-list", "--first-parent", *branches) or ""
    reachable = set(listed.split())
    commits = dict.fromkeys(
        record.revision.commit for record in records if COMMIT.fullmatch(record.revision.commit)
    )
    return [
        f"{commit} is not on {', '.join(branches)} (rebased away, or not fetched)"
        for commit in commits
        if commit not in reachable
    ]


def _run_asv(folder: Path) -> None:
    """Run ``asv publish`` by the configuration in a folder.

    Raises:
        UsageError: asv refused, or took too long.
    """
    command = [sys.executable, "-P", "-m", "asv", "publish", "--no-pull"]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(_HOME)},
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        msg = f"asv publish took longer than {_LIMIT_S:.0f} s (is a result file damaged?)"
        raise UsageError(msg) from error
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip().splitlines() or ["no message"]
        msg = f"asv publish ended with exit code {done.returncode}: {said[-1].strip()}"
        raise UsageError(msg)
