"""``flopwatch store``: records of a run into the branch that keeps them."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ci.errors import UsageError
from ci.measure.sides import Git
from ci.results.branch import FOLDER, append
from ci.results.store import load_all, record_path
from ci.verbs.context import checkout_root, note


def run(records: str, *, branch: str, environment: Mapping[str, str] = os.environ) -> int:
    """Append the records in a folder to a branch of this checkout's remote, and return 0.

    Records that are committed at HEAD are left out. The token comes from ``GITHUB_TOKEN``;
    without one, git's own credentials serve.

    Raises:
        UsageError: The checkout has no remote, or there is no such folder.
        ResultsError: A file is no record, or the branch could not be written.
    """
    folder = Path(records)
    if not folder.is_dir():
        msg = f"{folder}: no such folder (name the folder that flopwatch or asv left records in)"
        raise UsageError(msg)
    here = checkout_root()
    git = Git(here)
    remote = git.ask("remote", "get-url", "origin")
    if not remote:
        msg = f"{here} has no remote 'origin' to push to (git remote add origin ADDRESS)"
        raise UsageError(msg)
    committed = (git.ask("ls-tree", "-r", "--name-only", "HEAD", "--", f"{FOLDER}/") or "").split()
    new = [
        record
        for record in load_all(folder)
        if record_path(FOLDER, record).as_posix() not in committed
    ]
    added = append(new, remote=remote, branch=branch, environment=_credentials(environment))
    note(f"{added:,} of {len(new):,} records were new")
    sys.stdout.write(f"{added}\n")
    return 0


def _credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """Return git's settings for the token: in variables, since other users see command lines."""
    token, server = environment.get("GITHUB_TOKEN", ""), environment.get("GITHUB_SERVER_URL", "")
    if not token or not server:
        return {}
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{server}/.extraheader",
        "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {basic}",
    }
