"""Which code a side is: a revision, a folder or the working tree, and what base is by default."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path

from ci.measure.errors import SideError
from ci.results import codec
from ci.results.model import Revision
from ci.results.store import write_text

DIGEST_DIGITS = 12
REVISION_FILE = ".flopwatch-revision.json"
"""What git told of an exported commit, for machines without git; beside the suite's folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One side of a comparison, ready to load."""

    label: str
    """``base`` or ``head``."""
    suite: Path
    """Folder of the suite; it need not exist (a revision from before the suite)."""
    revision: Revision


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """Both sides, and why base is what it is."""

    head: Side
    base: Side | None
    note: str
    """How base was chosen, or why head is checked alone; empty if both were named."""

    def base_has_suite(self) -> bool:
        """Return whether base holds the suite's folder at all."""
        return self.base is not None and self.base.suite.is_dir()


def resolve(*, base: str | None, head: str | None, suite: Path, here: Path, scratch: Path) -> Sides:
    """Return the sides a gate compares.

    Args:
        base: What the user named: revision, folder, ``FOLDER@COMMIT``; None: the default.
        head: The same; None: the working tree.
        suite: The suite's folder relative to a checkout.
        here: Folder of the checkout in use.
        scratch: Empty folder that revisions are exported to.

    Raises:
        SideError: A side was named that is not there.
    """
    git = Git(here)
    head_side = resolve_one(head, suite=suite, here=here, scratch=scratch)
    if base is not None:
        return Sides(
            head=head_side,
            base=_named(base, label="base", suite=suite, git=git, scratch=scratch),
            note="",
        )
    commit, note = _default_base(git, head, suite)
    if commit is None:
        return Sides(head=head_side, base=None, note=note)
    return Sides(
        head=head_side,
        base=_exported(commit, label="base", suite=suite, git=git, scratch=scratch),
        note=note,
    )


def resolve_one(named: str | None, *, suite: Path, here: Path, scratch: Path) -> Side:
    """Return the side that is checked: a named one, or the working tree.

    Raises:
        SideError: A side was named that is not there.
    """
    git = Git(here)
    if named is not None:
        return _named(named, label="head", suite=suite, git=git, scratch=scratch)
    revision = _tree_revision(git, here, suite, described="working tree")
    return Side(label="head", suite=here / suite, revision=revision)


class Git:
    """Read-only questions to git about one checkout."""

    def __init__(self, folder: Path) -> None:
        """Ask about the checkout that holds ``folder``."""
        self._folder = folder

    def ask(self, *arguments: str) -> str | None:
        """Return git's answer without its last newline, or None where git refuses."""
        answer = self._run(*arguments)
        return None if answer is None else answer.decode(errors="replace").removesuffix("\n")

    def archive(self, commit: str, path: str) -> bytes | None:
        """Return a tar of one folder at a commit, or None if the commit lacks it."""
        return self._run("archive", "--format=tar", commit, "--", path)

    def commit(self, revision: str) -> str | None:
        """Return the full hash of a revision, or None."""
        return self.ask(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        )

    def _run(self, *arguments: str) -> bytes | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(self._folder), *arguments],
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            return None
        return done.stdout if done.returncode == 0 else None


def _default_base(git: Git, head: str | None, suite: Path) -> tuple[str | None, str]:
    """Return the commit to compare with and how it was chosen, or None and why there is none."""
    tip = git.commit(head or "HEAD")
    if tip is None:
        return None, "head is checked alone: this is no git checkout with a commit"
    if head is None and git.ask("status", "--porcelain", "--", str(suite)):
        return tip, f"base is HEAD: {suite}/ has changes that are not committed"
    branch = _default_branch(git)
    if branch is not None and git.ask("merge-base", "--is-ancestor", tip, branch) is None:
        merge_base = git.ask("merge-base", tip, branch)
        if merge_base:
            return merge_base, f"base is the merge base with {branch}"
    parent = git.commit(f"{tip}^")
    if parent is not None:
        return parent, "base is the first parent of head"
    if git.ask("rev-parse", "--is-shallow-repository") == "true":
        return None, (
            "head is checked alone: the clone is shallow and lacks the parent commit "
            "(git fetch --deepen 1 brings it)"
        )
    return None, "head is checked alone: it is a root commit"


def _default_branch(git: Git) -> str | None:
    """Return the branch others merge into, None where HEAD itself is on it or none is known."""
    current = git.ask("symbolic-ref", "--quiet", "--short", "HEAD")
    remote = git.ask("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    names = [remote] if remote else ["main", "master"]
    for name in names:
        if name and git.commit(name) is not None:
            return None if current == name.removeprefix("origin/") else name
    return None


def _named(text: str, *, label: str, suite: Path, git: Git, scratch: Path) -> Side:
    """Return the side a user named: a revision first, then a folder."""
    commit = git.commit(text)
    if commit is not None:
        return _exported(commit, label=label, suite=suite, git=git, scratch=scratch, described=text)
    folder, _, named_commit = text.rpartition("@") if "@" in text else (text, "", "")
    path = Path(folder)
    if not folder or not path.is_dir():
        msg = (
            f"--{label} {text}: neither a revision git knows nor a folder "
            "(git fetch, or name a folder that holds a checkout)"
        )
        raise SideError(msg)
    if not (path / suite).is_dir():
        msg = f"--{label} {text}: the folder holds no {suite}/ (name the root of a checkout)"
        raise SideError(msg)
    revision = (
        _told_revision(path, named_commit, described=text)
        if named_commit
        else _tree_revision(Git(path), path, suite, described=text)
    )
    return Side(label=label, suite=path / suite, revision=revision)


def _exported(
    commit: str, *, label: str, suite: Path, git: Git, scratch: Path, described: str = ""
) -> Side:
    """Return a side whose suite is exported from git into ``scratch``.

    An export runs no hook and no filter of the checkout, and leaves the working tree alone.
    """
    folder = scratch / label
    revision = export_commit(commit, suite=suite, git=git, folder=folder)
    return Side(
        label=label,
        suite=folder / suite,
        revision=replace(revision, described=described or revision.described),
    )


def export_commit(commit: str, *, suite: Path, git: Git, folder: Path) -> Revision:
    """Put a commit's suite into a new folder, with what git tells of the commit beside it.

    Args:
        commit: Full hash.
        suite: The suite's folder relative to a checkout; a commit without it leaves none.
        git: The checkout that knows the commit.
        folder: Where to; made.

    Raises:
        SideError: A link of the commit's leads out of the folder.
    """
    folder.mkdir(parents=True)
    archive = git.archive(commit, suite.as_posix())
    if archive is not None:
        _unpack(archive, folder)
    revision = _commit_revision(git, commit, commit[:DIGEST_DIGITS])
    write_text(folder / REVISION_FILE, json.dumps(codec.encode(revision)) + "\n")
    return revision


def _unpack(archive: bytes, folder: Path) -> None:
    """Unpack what git packed: folders, files and links, none named outside.

    Python's own filter of archives is not there in 3.11.2, which Debian 12 has.
    """
    links = []
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            path = folder / member.name
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif member.issym():
                path.symlink_to(member.linkname)
                links.append(path)
            elif (data := tar.extractfile(member)) is not None:
                path.write_bytes(data.read())
    for link in links:
        if not Path(os.path.realpath(link)).is_relative_to(folder.resolve()):
            msg = f"{link.relative_to(folder)} is a link to {link.readlink()}, outside the suite"
            raise SideError(f"{msg} (commit the file itself)")


def _told_revision(folder: Path, commit: str, described: str) -> Revision:
    """Return what an exported folder tells of its commit, which may be its hash alone.

    Raises:
        RecordError: The folder's revision file is damaged.
    """
    told = folder / REVISION_FILE
    if told.exists():
        revision = codec.decode(
            codec.parse(told.read_text(encoding="utf-8"), str(told)), Revision, str(told)
        )
        if revision.commit == commit:
            return replace(revision, described=described)
    return Revision(commit=commit, subject="", committed="", parents=(), described=described)


def _commit_revision(git: Git, commit: str, described: str) -> Revision:
    """Return what git tells of a commit."""
    told = git.ask("show", "--no-patch", "--format=%P%n%cI%n%s", commit) or "\n\n"
    parents, committed, subject = [*told.split("\n", 2), "", ""][:3]
    return Revision(
        commit=commit,
        subject=subject,
        committed=committed,
        parents=tuple(parents.split()),
        described=described,
    )


def _tree_revision(git: Git, folder: Path, suite: Path, described: str) -> Revision:
    """Return the revision of files as they lie: HEAD if unchanged, else HEAD and a digest."""
    top = git.ask("rev-parse", "--show-toplevel")
    commit = git.commit("HEAD") if top and Path(top).resolve() == folder.resolve() else None
    digest = tree_digest(folder / suite)[:DIGEST_DIGITS]
    if commit is None:
        return Revision(
            commit=f"tree-{digest}", subject="", committed="", parents=(), described=described
        )
    revision = _commit_revision(git, commit, described)
    if not git.ask("status", "--porcelain", "--", str(suite)):
        return revision
    return Revision(
        commit=f"{commit}-dirty-{digest}",
        subject=f"edited: {revision.subject}",
        committed="",
        parents=(commit,),
        described=described,
    )


def tree_digest(folder: Path) -> str:
    """Return the sha256 over names and contents of the files below a folder, hexadecimal."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()
