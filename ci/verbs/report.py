"""``flopwatch report``: the verdict on GitHub, from inside a workflow."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci.errors import UsageError
from ci.gate.policy import exit_code
from ci.report import checks
from ci.report.errors import EventError, ReportError
from ci.report.event import Target, read_event, require_measured, with_base
from ci.report.github import Clock, GitHub, SystemClock
from ci.report.untrusted import prose
from ci.results import codec
from ci.results.codec import Json
from ci.results.errors import ResultsError
from ci.results.model import GateResult
from ci.results.store import load_gate
from ci.verbs.context import note

EXIT_NOT_REPORTED = 2
_MOST_VERDICT_BYTES = 64_000_000
"""A verdict comes from a job that ran strangers' code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Workflow:
    """What the workflow run says of itself."""

    target: Target
    origin: checks.Origin
    summary: Path
    """Where the job summary goes."""
    github: GitHub | None
    """None without a token: the job summary is all there is."""


def announce(*, environment: Mapping[str, str] = os.environ, clock: Clock | None = None) -> int:
    """Check the request for a benchmark, mark its commit as pending, and return 0.

    Base and head go to the workflow's step output.

    Raises:
        UsageError: This is no workflow run, or it has no token.
        ReportError: The request does not fit its pull request, or GitHub refused.
    """
    workflow = _workflow(environment, clock or SystemClock())
    if workflow.github is None:
        msg = "report --pending needs GITHUB_TOKEN (pass it in the step's env)"
        raise UsageError(msg)
    target = _asked_of_github(workflow)
    if target.moved_to:
        msg = (
            f"pull request {target.pull} is at {target.moved_to}, the request says {target.head} "
            "(review the new commits, then start the workflow with the new hash)"
        )
        raise EventError(msg)
    workflow.github.put_check([checks.pending(target, workflow.origin)])
    outputs = f"base={target.base}\nhead={target.head}\n"
    with Path(_variable(environment, "GITHUB_OUTPUT")).open("a", encoding="utf-8") as file:
        file.write(outputs)
    sys.stdout.write(outputs)
    return 0


def run(
    verdict: str,
    *,
    suite: str,
    environment: Mapping[str, str] = os.environ,
    clock: Clock | None = None,
) -> int:
    """Report a verdict and return the gate's exit code, or 2 if it is none or not fully told.

    The sentence is printed and the job summary written before anything is sent.

    Args:
        verdict: Path of the verdict.json.
        suite: The suite's folder in the repository.
        environment: The workflow's variables.
        clock: Time; None: the machine's.

    Raises:
        UsageError: This is no workflow run.
        EventError: The event names nothing to report on.
    """
    workflow = _workflow(environment, clock or SystemClock())
    try:
        result = _load(Path(verdict))
        sys.stdout.write(f"{result.sentence}\n")
        sys.stdout.flush()
        require_measured(result, workflow.target)
    except (ResultsError, OSError, UsageError, EventError) as error:
        return _tell_absence(workflow, str(error))
    _write(workflow.summary, checks.job_summary(result, workflow.target, workflow.origin))
    if workflow.github is None:
        note("no GITHUB_TOKEN: neither check run nor comment, only the job summary")
        return exit_code(result.verdict)
    try:
        target = _asked_of_github(workflow)
        require_measured(result, target)
    except EventError as error:
        return _tell_absence(workflow, str(error))
    except ReportError as error:
        note(f"not reported: {error}")
        return EXIT_NOT_REPORTED
    told = _tell(workflow.github, result, target, workflow.origin, suite)
    return exit_code(result.verdict) if told else EXIT_NOT_REPORTED


def _tell(
    github: GitHub, result: GateResult, target: Target, origin: checks.Origin, suite: str
) -> bool:
    """Return whether check run and comment were written; one that fails does not stop the other."""
    told = _try(lambda: github.put_check(checks.completed(result, target, origin, suite)))
    if target.pull:
        body = checks.comment(result, target, origin)
        told &= _try(lambda: github.put_comment(target.pull, origin.marker, body))
    return told


def _tell_absence(workflow: _Workflow, reason: str) -> int:
    """Say on GitHub that there is no verdict on the commit, and return 2."""
    note(f"no verdict: {reason}")
    _write(workflow.summary, f"**No verdict**: {prose(reason)}\n")
    check = checks.without_verdict(workflow.target, workflow.origin, reason)
    if (github := workflow.github) is not None:
        _try(lambda: github.put_check([check]))
    return EXIT_NOT_REPORTED


def _asked_of_github(workflow: _Workflow) -> Target:
    """Return the target with its base, which GitHub knows where the event names only a head."""
    target, github = workflow.target, workflow.github
    if github is None or not target.pull or target.merge:
        return target
    present_head, tip = github.pull_head_and_base(target.pull)
    return with_base(target, github.merge_base(tip, target.head), present_head)


def _load(path: Path) -> GateResult:
    if (size := path.stat().st_size) > _MOST_VERDICT_BYTES:
        msg = f"{path}: {size:,} bytes, at most {_MOST_VERDICT_BYTES:,} (is this a verdict.json?)"
        raise UsageError(msg)
    return load_gate(path)


def _workflow(environment: Mapping[str, str], clock: Clock) -> _Workflow:
    """Return what the run's variables say."""
    event = Path(_variable(environment, "GITHUB_EVENT_PATH"))
    payload: Json = codec.parse(event.read_text(encoding="utf-8"), str(event))
    target = read_event(
        _variable(environment, "GITHUB_EVENT_NAME"), payload, _variable(environment, "GITHUB_SHA")
    )
    repository = _variable(environment, "GITHUB_REPOSITORY")
    server, run_id = (_variable(environment, f"GITHUB_{name}") for name in ("SERVER_URL", "RUN_ID"))
    origin = checks.Origin(
        workflow=_variable(environment, "GITHUB_WORKFLOW"),
        link=f"{server}/{repository}/actions/runs/{run_id}",
    )
    token = environment.get("GITHUB_TOKEN", "")
    api = _variable(environment, "GITHUB_API_URL")
    return _Workflow(
        target=target,
        origin=origin,
        summary=Path(_variable(environment, "GITHUB_STEP_SUMMARY")),
        github=GitHub(api=api, repository=repository, token=token, clock=clock) if token else None,
    )


def _variable(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        msg = f"{name} is not set: flopwatch report runs inside a GitHub workflow (docs/github.md)"
        raise UsageError(msg)
    return value


def _write(summary: Path, text: str) -> None:
    # Written anew, not appended: reporting twice in a step leaves one summary.
    summary.write_text(text, encoding="utf-8")


def _try(act: Callable[[], None]) -> bool:
    """Return whether ``act`` was done; what GitHub refused is said and hides nothing else."""
    try:
        act()
    except ReportError as error:
        note(f"not reported: {error}")
        return False
    return True
