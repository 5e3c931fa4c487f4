"""Which commits a workflow is about, from events as GitHub sends them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ci.report.errors import EventError
from ci.report.event import Target, read_event, require_measured, with_base
from ci.results.codec import Json
from ci.results.model import RunRecord
from tests import builders

HEAD, BASE, MERGE, OTHER = ("a" * 40, "b" * 40, "d" * 40, "e" * 40)
NONE = "0" * 40


def pull_request(number: int = 7, head: str = HEAD) -> dict[str, Json]:
    # A fork that is gone has no repository, and merge_commit_sha may be missing.
    return {
        "pull_request": {
            "number": number,
            "head": {"sha": head, "repo": None},
            "base": {"sha": OTHER},
            "merge_commit_sha": None,
        }
    }


def test_a_pull_request_is_its_head_measured_as_the_merge() -> None:
    target = read_event("pull_request", pull_request(), MERGE)
    assert target == Target(head=HEAD, merge=MERGE, pull=7)


def test_a_push_compares_what_was_before_with_what_is_after() -> None:
    target = read_event("push", {"before": BASE, "after": HEAD}, HEAD)
    assert (target.base, target.head) == (BASE, HEAD)


def test_a_push_of_a_new_branch_has_no_base_of_its_own() -> None:
    target = read_event("push", {"before": NONE, "after": HEAD}, HEAD)
    assert target == Target(head=HEAD)
    require_measured(builders.gate(_record(BASE), _record(HEAD)), target)


def test_a_merge_group_names_both() -> None:
    event: Json = {"merge_group": {"head_sha": HEAD, "base_sha": BASE}}
    assert read_event("merge_group", event, HEAD) == Target(head=HEAD, base=BASE)


def test_a_dispatch_is_the_commit_that_was_reviewed() -> None:
    event: Json = {"inputs": {"pr": "7", "head_sha": HEAD}}
    assert read_event("workflow_dispatch", event, OTHER) == Target(head=HEAD, pull=7)


@pytest.mark.parametrize(
    ("name", "event", "part"),
    [
        ("push", {"before": HEAD, "after": HEAD}, "nothing to compare"),
        ("push", {"before": BASE, "after": NONE}, "deleted"),
        ("push", {"before": BASE}, "after is missing"),
        ("push", [], "after is missing"),
        ("merge_group", {"merge_group": {"head_sha": HEAD, "base_sha": HEAD}}, "nothing to"),
        ("workflow_dispatch", {"inputs": {"pr": "7;id", "head_sha": HEAD}}, "number of a pull"),
        ("workflow_dispatch", {"inputs": {"pr": "7", "head_sha": "main"}}, "40 hexadecimal"),
        ("workflow_dispatch", {"inputs": {"pr": "7", "head_sha": HEAD + "\n"}}, "40 hexadecimal"),
        ("pull_request", pull_request(number=True), "number of a pull"),
        ("pull_request", pull_request(head=HEAD.upper()), "40 hexadecimal"),
        ("pull_request_target", pull_request(), "expected one of"),
        ("workflow_run", {}, "expected one of"),
    ],
)
def test_an_event_that_says_nonsense_is_refused(name: str, event: Json, part: str) -> None:
    with pytest.raises(EventError, match=part):
        read_event(name, event, MERGE)


def test_a_verdict_on_the_merge_is_one_on_the_pull_request() -> None:
    result = builders.gate(_record(BASE), _record(MERGE, parents=(BASE, HEAD)))
    require_measured(result, Target(head=HEAD, merge=MERGE, pull=7))


@pytest.mark.parametrize(
    ("base", "head", "part"),
    [
        (BASE, OTHER, "verdict is on head"),
        (BASE, f"{MERGE}-dirty-0123456789ab", "verdict is on head"),
        (MERGE, MERGE, "nothing to compare"),
        (OTHER, MERGE, "expected b"),
    ],
)
def test_a_verdict_on_other_commits_is_refused(base: str, head: str, part: str) -> None:
    result = builders.gate(_record(base), _record(head, parents=(BASE, HEAD)))
    with pytest.raises(EventError, match=part):
        require_measured(result, Target(head=HEAD, merge=MERGE, pull=7))


def test_a_verdict_against_another_base_than_the_events_is_refused() -> None:
    result = builders.gate(_record(OTHER), _record(HEAD))
    with pytest.raises(EventError, match=f"expected {BASE}"):
        require_measured(result, Target(head=HEAD, base=BASE))


def test_a_request_gets_its_base_and_is_told_where_the_pull_request_is_now() -> None:
    target = Target(head=HEAD, pull=7)
    assert with_base(target, BASE, HEAD) == replace(target, base=BASE)
    assert with_base(target, BASE, OTHER).moved_to == OTHER
    with pytest.raises(EventError, match="nothing to compare"):
        with_base(target, HEAD, HEAD)


def _record(commit: str, parents: tuple[str, ...] = (BASE,)) -> RunRecord:
    return builders.record(builders.case(), of=replace(builders.revision(commit), parents=parents))
