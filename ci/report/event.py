"""Which commit a workflow is about: changes when GitHub's event payloads do."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ci.report.errors import EventError
from ci.results.codec import Json
from ci.results.model import GateResult

_SHA = re.compile(r"[0-9a-f]{40}")
_PULL = re.compile(r"[1-9][0-9]{0,8}")
_NO_COMMIT = "0" * 40
"""What a push names as its other end when it makes or deletes a branch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """The commit to report on."""

    head: str
    """Full hash of the author's commit."""
    base: str = ""
    """Full hash it is compared with; empty: the merge's first parent, or not known."""
    merge: str = ""
    """Full hash of GitHub's test merge of head; empty if head itself was measured."""
    pull: int = 0
    """Number of the pull request; 0: none."""
    moved_to: str = ""
    """The pull request's present head where that is another one; empty otherwise."""


def read_event(name: str, payload: Json, commit: str) -> Target:
    """Return what the event is about.

    Args:
        name: The event's name, as in ``GITHUB_EVENT_NAME``.
        payload: The event itself, from the file at ``GITHUB_EVENT_PATH``.
        commit: The commit the workflow runs on, ``GITHUB_SHA``.

    Raises:
        EventError: The event names no commit, a deleted branch, or no such thing at all.
    """
    readers = {
        "pull_request": _pull_request,
        "merge_group": _merge_group,
        "push": _push,
        "workflow_dispatch": _dispatch,
    }
    if name not in readers:
        msg = f"event {name!r}: expected one of {', '.join(readers)} (start the workflow by those)"
        raise EventError(msg)
    target = readers[name](payload, commit)
    refuse_itself(target.base, target.head)
    return target


def require_measured(result: GateResult, target: Target) -> None:
    """Refuse a verdict on other commits than the target's.

    Raises:
        EventError: Head or base of the verdict is not what the event asked for.
    """
    measured = target.merge or target.head
    if result.head.commit not in {measured, target.head}:
        msg = (
            f"the verdict is on head {result.head.commit}, the event asks for {measured} "
            "(the measured checkout is another commit, or was edited: start the workflow again)"
        )
        raise EventError(msg)
    if result.base is None:
        return
    refuse_itself(result.base.commit, result.head.commit)
    parent = next(iter(result.head.parents), "") if target.merge == result.head.commit else ""
    expected = target.base or parent
    if expected and result.base.commit != expected:
        msg = (
            f"the verdict compares with base {result.base.commit}, expected {expected} "
            "(fetch the whole history and name the base: flopwatch gate --base)"
        )
        raise EventError(msg)


def refuse_itself(base: str, head: str) -> None:
    """Refuse a comparison of a commit with itself.

    Raises:
        EventError: Base and head are the same commit.
    """
    if base == head:
        msg = f"base and head are both {head}: nothing to compare (name another base)"
        raise EventError(msg)


def with_base(target: Target, base: str, present_head: str) -> Target:
    """Return the target with what GitHub says of its pull request.

    Args:
        target: A target without a base.
        base: Full hash of the merge base of head and the branch it goes to.
        present_head: Full hash of the pull request's head now.

    Raises:
        EventError: Head is already part of the branch it goes to.
    """
    refuse_itself(base, target.head)
    return replace(target, base=base, moved_to="" if present_head == target.head else present_head)


def _pull_request(payload: Json, commit: str) -> Target:
    head = _sha(payload, "pull_request", "head", "sha")
    return Target(
        head=head,
        merge="" if commit == head else commit,
        pull=_pull(_at(payload, "pull_request", "number")),
    )


def _merge_group(payload: Json, _commit: str) -> Target:
    return Target(
        head=_sha(payload, "merge_group", "head_sha"),
        base=_sha(payload, "merge_group", "base_sha"),
    )


def _push(payload: Json, _commit: str) -> Target:
    head = _sha(payload, "after")
    if head == _NO_COMMIT:
        msg = "push: the branch was deleted, there is nothing to report on"
        raise EventError(msg)
    before = _sha(payload, "before")
    return Target(head=head, base="" if before == _NO_COMMIT else before)


def _dispatch(payload: Json, _commit: str) -> Target:
    return Target(
        head=_sha(payload, "inputs", "head_sha"), pull=_pull(_at(payload, "inputs", "pr"))
    )


def _at(payload: Json, *keys: str) -> Json:
    value = payload
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            msg = f"event: {'.'.join(keys)} is missing (is GITHUB_EVENT_PATH this event's file?)"
            raise EventError(msg)
        value = value[key]
    return value


def _sha(payload: Json, *keys: str) -> str:
    value = _at(payload, *keys)
    if not isinstance(value, str) or not _SHA.fullmatch(value):
        msg = f"{'.'.join(keys)}: expected the 40 hexadecimal digits of a commit, got {value!r}"
        raise EventError(msg)
    return value


def _pull(value: Json) -> int:
    if isinstance(value, bool) or not _PULL.fullmatch(str(value)):
        msg = f"expected the number of a pull request, got {value!r}"
        raise EventError(msg)
    return int(str(value))
