"""Records on a branch of their own: changes when the way they reach that branch does.

One file a run and no shared one, so that writers at the same time never conflict; nothing is
checked out and no old record is downloaded, however long the branch has grown.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci.results import codec
from ci.results.errors import StoreError
from ci.results.model import RunRecord
from ci.results.store import record_path

FOLDER = Path("records")
"""Where records lie, on the branch as in a checkout."""

_TRIES = 20
_NO_SUCH_BRANCH = 2
_IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "flopwatch"), ("EMAIL", "flopwatch@users.noreply.github.com"))
}


def append(
    records: Sequence[RunRecord],
    *,
    remote: str,
    branch: str,
    environment: Mapping[str, str],
    wait: Callable[[float], None] = time.sleep,
) -> int:
    """Add records to a branch of a remote repository and return how many it did not have yet.

    Args:
        records: What to add.
        remote: Address of the repository.
        branch: Name of the branch; it is made if there is none.
        environment: Variables for git beside the process's own, such as credentials.
        wait: Returns after so many seconds.

    Raises:
        StoreError: The branch has another record in a record's place, or git refused.
    """
    contents = {
        record_path(FOLDER, record).as_posix(): codec.dumps(record).encode() for record in records
    }
    with tempfile.TemporaryDirectory(prefix="flopwatch-branch-") as folder:
        clone = _Clone(folder=Path(folder), remote=remote, branch=branch, environment=environment)
        clone.git("init", "--quiet", "--bare", ".")
        for left in reversed(range(_TRIES)):
            tip = clone.fetch()
            added = clone.stage(contents, tip)
            if not added or clone.push(
                tip, f"Add {added} record{'s'[: added != 1]}", last=not left
            ):
                return added
            # Another writer was first. The spread keeps the same writers from meeting again.
            wait(random.uniform(0.1, 0.5 * (_TRIES - left)))  # noqa: S311
    return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Clone:
    """A bare repository that holds the branch's newest commit without its files."""

    folder: Path
    remote: str
    branch: str
    environment: Mapping[str, str]

    @property
    def ref(self) -> str:
        """Return the branch's full name."""
        return f"refs/heads/{self.branch}"

    def fetch(self) -> str:
        """Return the branch's newest commit, which is now here; empty if there is no branch."""
        found = self._run("ls-remote", "--exit-code", self.remote, self.ref)
        if found.returncode == _NO_SUCH_BRANCH:
            return ""
        self._require(found, "ls-remote")
        self.git("fetch", "--quiet", "--depth=1", "--filter=blob:none", self.remote, self.ref)
        return self.git("rev-parse", "FETCH_HEAD")

    def stage(self, contents: Mapping[str, bytes], tip: str) -> int:
        """Put the files that ``tip`` lacks into the index and return their number."""
        self.git("read-tree", tip or "--empty")
        rows = (row.split("\t", 1) for row in self.git("ls-files", "--stage").splitlines())
        there = {path: entry.split()[1] for entry, path in rows}
        lines = []
        for path, content in contents.items():
            blob = self.git("hash-object", "-w", "--stdin", given=content)
            if there.get(path, blob) != blob:
                msg = (
                    f"{path} on branch {self.branch}: expected no such file or this very record, "
                    "got another one (records are append-only: give the run a new id)"
                )
                raise StoreError(msg)
            if path not in there:
                lines.append(f"100644 {blob}\t{path}\n")
        self.git("update-index", "--add", "--index-info", given="".join(lines).encode())
        return len(lines)

    def push(self, tip: str, message: str, *, last: bool) -> bool:
        """Commit the index on ``tip`` and return whether the remote took it."""
        tree = self.git("write-tree", "--missing-ok")
        parents = ("-p", tip) if tip else ()
        commit = self.git("commit-tree", tree, *parents, "-m", message)
        pushed = self._run("push", "--quiet", self.remote, f"{commit}:{self.ref}")
        if last:
            self._require(pushed, "push")
        return pushed.returncode == 0

    def git(self, *arguments: str, given: bytes = b"") -> str:
        """Return what git prints, without the last newline."""
        done = self._run(*arguments, given=given)
        self._require(done, arguments[0])
        return done.stdout.decode().removesuffix("\n")

    def _run(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **_IDENTITY, "GIT_TERMINAL_PROMPT": "0", **self.environment},
            input=given,
            capture_output=True,
            check=False,
        )

    def _require(self, done: subprocess.CompletedProcess[bytes], verb: str) -> None:
        if done.returncode:
            said = " ".join(done.stderr.decode(errors="replace").split())
            msg = (
                f"git {verb} for branch {self.branch} of {self.remote}: {said} "
                "(may this token write, and is the network up?)"
            )
            raise StoreError(msg)
