"""How an asv run gets its figures: one ``flopwatch measure`` a commit, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from ci.results.model import RunRecord
from ci.results.store import load

SCRATCH = Path(".asv", "records")
"""Where records wait, below the folder of asv.conf.json, until asv saves its results."""

COMMIT_VARIABLE = "ASV_COMMIT"
"""Set by asv where it chose a commit; absent with ``--python=same``."""

_HOME = Path(__file__).resolve().parents[2]
_LOOK_AFTER_PARENT_S = 2.0


def measured(checkout: Path) -> RunRecord:
    """Return a fresh record of the commit that asv asks for, else of the working tree.

    Args:
        checkout: Folder of asv.conf.json.

    Raises:
        RuntimeError: Nothing was measured; the message is flopwatch's own.
    """
    commit = os.environ.get(COMMIT_VARIABLE)
    command = [sys.executable, "-P", "-m", "ci", "measure", "--records", str(checkout / SCRATCH)]
    done = _run([*command, *(["--revision", commit] if commit else [])], checkout)
    # Exit code 1 is a case that did not pass: the record says which.
    if done.returncode > 1 or not done.stdout.strip():
        msg = done.stderr.strip() or f"flopwatch measure ended with exit code {done.returncode}"
        raise RuntimeError(msg)
    return load(Path(done.stdout.strip().splitlines()[-1]))


def _run(command: list[str], checkout: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, or end it when asv dies: a killed asv leaves its children."""
    parent = os.getppid()
    with subprocess.Popen(
        command,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(_HOME)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while True:
            with suppress(subprocess.TimeoutExpired):
                out, log = process.communicate(timeout=_LOOK_AFTER_PARENT_S)
                return subprocess.CompletedProcess(command, process.returncode, out, log)
            if os.getppid() != parent:
                process.send_signal(signal.SIGINT)
                process.wait()
                sys.exit("asv is gone: what was finished is kept")
