"""The GPU machine's own doorkeeper, which no pull request can edit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[2] / ".github/runner/job-started.sh"
MAIN = "refs/heads/main"
WORKFLOWS = "o/r/.github/workflows"
ADMITTED = {
    "FLOPWATCH_REPOSITORY": "o/r",
    "GITHUB_REPOSITORY": "o/r",
    "GITHUB_REF": MAIN,
    "GITHUB_EVENT_NAME": "workflow_dispatch",
    "GITHUB_WORKFLOW_REF": f"{WORKFLOWS}/pr-bench-dispatch.yml@{MAIN}",
}


def hook(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(HOOK)],
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("event", "workflow"),
    [
        ("workflow_dispatch", "pr-bench-dispatch.yml"),
        ("workflow_dispatch", "main-bench.yml"),
        ("push", "main-bench.yml"),
        ("schedule", "main-bench.yml"),
    ],
)
def test_the_benchmarks_of_main_are_admitted(event: str, workflow: str) -> None:
    reference = f"{WORKFLOWS}/{workflow}@{MAIN}"
    done = hook({**ADMITTED, "GITHUB_EVENT_NAME": event, "GITHUB_WORKFLOW_REF": reference})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_EVENT_NAME", "pull_request"),
        ("GITHUB_EVENT_NAME", "pull_request_target"),
        ("GITHUB_EVENT_NAME", "issue_comment"),
        ("GITHUB_EVENT_NAME", ""),
        ("GITHUB_REF", "refs/pull/7/merge"),
        ("GITHUB_REF", "refs/heads/main-2"),
        ("GITHUB_REF", "refs/tags/main"),
        ("GITHUB_REPOSITORY", "mallory/r"),
        ("GITHUB_WORKFLOW_REF", f"{WORKFLOWS}/mine.yml@{MAIN}"),
        ("GITHUB_WORKFLOW_REF", f"{WORKFLOWS}/main-bench.yml@refs/heads/mine"),
        ("GITHUB_WORKFLOW_REF", f"mallory/r/.github/workflows/main-bench.yml@{MAIN}"),
        ("FLOPWATCH_REPOSITORY", ""),
    ],
)
def test_everything_else_is_refused(name: str, value: str) -> None:
    done = hook({**ADMITTED, name: value})
    assert done.returncode != 0
    assert done.stderr
