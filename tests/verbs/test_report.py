"""``flopwatch report`` inside a workflow: what is told, in which order, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ci.errors import UsageError
from ci.report.errors import EventError
from ci.results.model import GateResult, Outcome, Status
from ci.results.store import save_gate
from ci.verbs import report
from tests import builders
from tests.report.github_server import Clock, Fault, State, serving

HEAD, BASE = "a" * 40, "b" * 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A workflow job with a GitHub behind it."""

    state: State
    folder: Path
    environment: dict[str, str]

    @property
    def summary(self) -> str:
        return (self.folder / "summary.md").read_text(encoding="utf-8")

    def report(self, result: GateResult | None) -> int:
        verdict = self.folder / "verdict.json"
        if result is not None:
            save_gate(verdict, result)
        return report.run(
            str(verdict), suite="kernels", environment=self.environment, clock=Clock()
        )

    def announce(self) -> int:
        return report.announce(environment=self.environment, clock=Clock())


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"inputs": {"pr": "7", "head_sha": HEAD}}), encoding="utf-8")
    (tmp_path / "output").touch()
    with serving() as state:
        yield Job(
            state=state,
            folder=tmp_path,
            environment={
                "GITHUB_API_URL": state.address,
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_REPOSITORY": "o/r",
                "GITHUB_RUN_ID": "9",
                "GITHUB_WORKFLOW": "pr-bench-dispatch",
                "GITHUB_EVENT_NAME": "workflow_dispatch",
                "GITHUB_EVENT_PATH": str(event),
                "GITHUB_SHA": "c" * 40,
                "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
                "GITHUB_OUTPUT": str(tmp_path / "output"),
                "GITHUB_TOKEN": "not-a-real-token",
            },
        )
        assert state.problems == []


def verdict(outcome: Outcome = Outcome.FAILED, *, head: str = HEAD, base: str = BASE) -> GateResult:
    wrong = builders.case(status=Status.INCORRECT, findings=(builders.finding(),))
    result = builders.gate(
        builders.record(builders.case(), of=builders.revision(base)),
        builders.record(wrong, of=builders.revision(head)),
    )
    return replace(result, verdict=outcome)


@pytest.mark.parametrize(
    ("outcome", "code"), [(Outcome.PASSED, 0), (Outcome.FAILED, 1), (Outcome.UNDECIDED, 3)]
)
def test_a_verdict_is_told_everywhere_and_is_the_exit_code(
    job: Job, outcome: Outcome, code: int
) -> None:
    assert job.report(verdict(outcome)) == code
    (check,), (comment,) = job.state.checks, job.state.comments
    assert check["head_sha"] == HEAD
    assert len(check["sent"]) == 1
    assert f"head `{HEAD}`, base `{BASE}`" in comment["body"]
    assert job.summary in comment["body"]


def test_reporting_twice_leaves_one_comment_and_one_summary(job: Job) -> None:
    job.report(verdict())
    first = job.summary
    job.report(verdict())
    assert len(job.state.comments) == 1
    assert job.summary == first


def test_a_request_is_marked_pending_and_then_completed_in_place(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job.announce() == 0
    assert (job.folder / "output").read_text() == f"base={BASE}\nhead={HEAD}\n"
    assert capsys.readouterr().out == f"base={BASE}\nhead={HEAD}\n"
    assert job.state.checks[0]["status"] == "in_progress"
    job.report(verdict())
    assert [check["status"] for check in job.state.checks] == ["completed"]


def test_a_request_for_a_commit_that_is_no_longer_the_head_is_refused(job: Job) -> None:
    job.state.head = "e" * 40
    with pytest.raises(EventError, match="review the new commits"):
        job.announce()
    assert job.state.checks == []


def test_a_request_for_a_commit_that_is_merged_already_is_refused(job: Job) -> None:
    job.state.merge_base = HEAD
    with pytest.raises(EventError, match="nothing to compare"):
        job.announce()


def test_a_request_needs_a_token(job: Job) -> None:
    del job.environment["GITHUB_TOKEN"]
    with pytest.raises(UsageError, match="GITHUB_TOKEN"):
        job.announce()


def test_a_pull_request_that_moved_on_meanwhile_is_told_so(job: Job) -> None:
    job.state.head = "e" * 40
    assert job.report(verdict()) == 1
    assert "has moved on to" in job.state.comments[0]["body"]
    assert job.state.checks[0]["head_sha"] == HEAD


def test_without_a_token_only_the_summary_is_written(job: Job) -> None:
    del job.environment["GITHUB_TOKEN"]
    assert job.report(verdict()) == 1
    assert "sgemm/01" in job.summary
    assert job.state.requests == []


def test_a_github_that_refuses_is_exit_2_and_hides_nothing(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    job.state.faults = [Fault(status=403, method="POST", message="not accessible")]
    assert job.report(verdict()) == report.EXIT_NOT_REPORTED
    told = capsys.readouterr()
    assert told.out.startswith("failed: ")
    assert "not accessible" in told.err
    assert job.summary
    # The check run was refused; the comment was written all the same.
    assert len(job.state.comments) == 1


def test_a_github_that_is_away_still_leaves_sentence_and_summary(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    job.state.faults = [Fault(status=500) for _ in range(5)]
    assert job.report(verdict()) == report.EXIT_NOT_REPORTED
    assert capsys.readouterr().out.startswith("failed: ")
    assert "sgemm/01" in job.summary


@pytest.mark.parametrize("text", [None, "{", '{"schema_version": 1}', '{"seconds": NaN}'])
def test_a_missing_or_damaged_verdict_is_red_and_exit_2(job: Job, text: str | None) -> None:
    if text is not None:
        (job.folder / "verdict.json").write_text(text, encoding="utf-8")
    job.announce()
    assert job.report(None) == report.EXIT_NOT_REPORTED
    (check,) = job.state.checks
    assert (check["status"], check["conclusion"]) == ("completed", "failure")
    assert "No verdict" in job.summary


@pytest.mark.parametrize(
    "result", [verdict(Outcome.PASSED, head="e" * 40), verdict(Outcome.PASSED, base="e" * 40)]
)
def test_a_verdict_on_other_commits_than_the_approved_ones_is_red(
    job: Job, result: GateResult
) -> None:
    assert job.report(result) == report.EXIT_NOT_REPORTED
    assert job.state.checks[0]["conclusion"] == "failure"
    assert job.state.comments == []


def test_outside_a_workflow_the_missing_variable_is_named(job: Job) -> None:
    del job.environment["GITHUB_EVENT_PATH"]
    with pytest.raises(UsageError, match="GITHUB_EVENT_PATH"):
        job.report(verdict())
