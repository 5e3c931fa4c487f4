"""The client against a GitHub that takes only what the published description allows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ci.report.errors import GitHubError
from ci.report.github import GitHub
from ci.results.codec import Json
from tests.report.github_server import Clock, Fault, State, serving

MARKER = "<!-- flopwatch 1 pr-bench -->"
BODY = f"{MARKER}\n**failed**"
CHECK = {
    "name": "flopwatch: pr-bench",
    "head_sha": "a" * 40,
    "external_id": MARKER,
    "details_url": "https://github.com/o/r/actions/runs/9",
}


@pytest.fixture
def state() -> Iterator[State]:
    with serving() as state:
        yield state
        assert state.problems == []


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def github(state: State, clock: Clock) -> GitHub:
    return client(state, clock)


def client(state: State, clock: Clock, *, token: str = "not-a-real-token") -> GitHub:  # noqa: S107
    return GitHub(api=state.address, repository="o/r", token=token, clock=clock)


def test_a_comment_is_written_once_and_then_updated(github: GitHub, state: State) -> None:
    github.put_comment(7, MARKER, BODY)
    github.put_comment(7, MARKER, f"{BODY}!")
    assert [comment["body"] for comment in state.comments] == [f"{BODY}!"]


def test_a_comment_is_found_on_the_third_page(github: GitHub, state: State) -> None:
    for number in range(250):
        state.add_comment(f"talk {number}", author="octocat")
    state.add_comment(f"{MARKER}\nold")
    github.put_comment(7, MARKER, BODY)
    assert len(state.comments) == 251
    assert state.comments[-1]["body"] == BODY


def test_a_marker_that_a_contributor_planted_is_left_alone(github: GitHub, state: State) -> None:
    state.add_comment(f"{MARKER}\nall is well", author="mallory")
    state.add_comment(f"quoting\n{MARKER}")
    github.put_comment(7, MARKER, BODY)
    assert [c["body"] for c in state.comments[:2]] == [
        f"{MARKER}\nall is well",
        f"quoting\n{MARKER}",
    ]
    assert state.comments[2]["body"] == BODY


def test_comments_of_two_reporters_become_one(github: GitHub, state: State) -> None:
    state.add_comment(f"{MARKER}\nfirst")
    state.add_comment(f"{MARKER}\nsecond")
    github.put_comment(7, MARKER, BODY)
    assert [comment["body"] for comment in state.comments] == [BODY]


def test_a_comment_whose_answer_was_lost_is_not_written_twice(
    github: GitHub, state: State, clock: Clock
) -> None:
    state.faults = [Fault(status=502, method="POST", carried_out=True)]
    github.put_comment(7, MARKER, BODY)
    assert [comment["body"] for comment in state.comments] == [BODY]
    assert max(clock.waits) >= 2


def test_a_pending_check_run_is_completed_in_place(github: GitHub, state: State) -> None:
    github.put_check([{**CHECK, "status": "in_progress"}])
    github.put_check(done(3))
    (check,) = state.checks
    assert (check["status"], check["conclusion"]) == ("completed", "failure")
    assert len(check["sent"]) == 3


def test_more_annotations_than_a_call_takes_arrive_once_each(github: GitHub, state: State) -> None:
    github.put_check([*done(50), *done(50), *done(20)])
    (check,) = state.checks
    assert len(check["sent"]) == 120


def test_reporting_twice_does_not_double_the_annotations(github: GitHub, state: State) -> None:
    github.put_check(done(3))
    github.put_check(done(3))
    assert [len(check["sent"]) for check in state.checks] == [3, 3]


def test_another_apps_check_run_of_the_same_name_is_left_alone(
    github: GitHub, state: State
) -> None:
    github.put_check([{**CHECK, "status": "in_progress", "external_id": "another"}])
    github.put_check(done(1))
    assert [check["status"] for check in state.checks] == ["in_progress", "completed"]


def test_a_pull_requests_head_tip_and_merge_base_are_read(github: GitHub, state: State) -> None:
    assert github.pull_head_and_base(7) == (state.head, state.tip)
    assert github.merge_base(state.tip, state.head) == state.merge_base


@pytest.mark.parametrize(
    ("fault", "least_s"),
    [
        (Fault(status=403, headers={"Retry-After": "17"}), 17),
        (Fault(status=429, headers={"Retry-After": "17"}), 17),
        (
            Fault(
                status=403,
                headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1000040"},
            ),
            39,
        ),
        (Fault(status=429), 60),
        (Fault(status=403, message="You have exceeded a secondary rate limit"), 60),
        (Fault(status=500), 2),
        (Fault(status=503), 2),
    ],
)
def test_a_failure_that_passes_is_waited_out(
    github: GitHub, state: State, clock: Clock, fault: Fault, least_s: float
) -> None:
    state.faults = [fault]
    github.put_comment(7, MARKER, BODY)
    assert len(state.comments) == 1
    assert max(clock.waits) >= least_s


def test_waiting_has_an_end(github: GitHub, state: State, clock: Clock) -> None:
    state.faults = [Fault(status=429) for _ in range(20)]
    with pytest.raises(GitHubError, match="more than the 300 s"):
        github.put_comment(7, MARKER, BODY)
    assert sum(clock.waits) <= 300


def test_a_server_that_keeps_failing_is_given_up(github: GitHub, state: State) -> None:
    state.faults = [Fault(status=500) for _ in range(20)]
    with pytest.raises(GitHubError, match="GitHub failed with 500"):
        github.put_comment(7, MARKER, BODY)
    assert len(state.requests) == 5


def test_a_missing_permission_is_said_at_once(github: GitHub, state: State, clock: Clock) -> None:
    message = "Resource not accessible by integration"
    state.faults = [Fault(status=403, message=message)]
    with pytest.raises(GitHubError, match=message):
        github.put_comment(7, MARKER, BODY)
    assert sum(clock.waits) == 0


def test_writes_keep_a_second_between_them(github: GitHub, clock: Clock) -> None:
    github.put_comment(7, MARKER, BODY)
    before = clock.seconds
    github.put_comment(7, MARKER, BODY)
    github.put_comment(7, MARKER, BODY)
    assert clock.seconds - before >= 2


def test_a_moved_repository_is_named_and_not_followed(github: GitHub, state: State) -> None:
    headers = {"Location": "https://api.github.com/repositories/1"}
    state.faults = [Fault(status=307, method="POST", headers=headers)]
    with pytest.raises(GitHubError, match="new name"):
        github.put_comment(7, MARKER, BODY)


def test_the_token_goes_to_no_other_host(github: GitHub, state: State) -> None:
    link = '<https://elsewhere.example/?page=2>; rel="next"'
    state.faults = [Fault(status=200, headers={"Link": link})]
    with pytest.raises(GitHubError, match="not followed"):
        github.put_comment(7, MARKER, BODY)


def test_an_unreachable_github_is_one_clear_error(clock: Clock) -> None:
    with serving() as state:
        pass
    with pytest.raises(GitHubError, match="is the network up"):
        client(state, clock).put_comment(7, MARKER, BODY)


def done(annotations: int) -> list[dict[str, Json]]:
    remark: Json = {
        "path": "kernels/sgemm/01_naive.cu",
        "start_line": 14,
        "end_line": 14,
        "annotation_level": "failure",
        "message": "1,024 to 8,192",
    }
    output: Json = {
        "title": "failed",
        "summary": "**failed**",
        "annotations": [remark] * annotations,
    }
    return [{**CHECK, "status": "completed", "conclusion": "failure", "output": output}]
