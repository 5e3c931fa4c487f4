"""The workflows are sound, and every weakness planted in them turns a check red."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflows import policy

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
DISPATCH, BENCH, MAIN, GATE, PAGES = (
    "pr-bench-dispatch.yml",
    "pr-bench.yml",
    "main-bench.yml",
    "pr-gate.yml",
    "pages.yml",
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with nothing but a copy of the workflows."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    return tmp_path


def said_by(check: str, repository: Path) -> str:
    """Return what a check finds wrong; empty if nothing."""
    folder = repository / ".github/workflows"
    if check == "policy":
        return "\n".join(policy.problems(folder))
    files = sorted(map(str, folder.glob("*.yml")))
    commands = {
        "zizmor": [
            *("zizmor", "--quiet", "--offline", "--strict-collection", "--no-progress"),
            *("--persona=pedantic", "--format=plain", "--color=never", ".github"),
        ],
        "actionlint": ["actionlint", "-no-color", "-oneline"],
        "schema": ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files],
    }
    program, *arguments = commands[check]
    done = subprocess.run(
        [str(BIN / program), *arguments],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr if done.returncode else ""


@pytest.mark.parametrize("check", ["policy", "zizmor", "actionlint", "schema"])
def test_the_workflows_are_sound(repository: Path, check: str) -> None:
    assert said_by(check, repository) == ""


PUSH = r"  push:\n    branches: \[main\]\n"
KEEP = "          persist-credentials: false\n"
PLANTED = [
    (GATE, r"pull_request:", "pull_request_target:", "zizmor", "dangerous-triggers"),
    (GATE, r"pull_request:", "pull_request_target:", "policy", "trigger pull_request_target"),
    (MAIN, PUSH, "  workflow_run:\n    workflows: [pr-gate]\n", "zizmor", "dangerous-triggers"),
    (MAIN, PUSH, "  issue_comment:\n    types: [created]\n", "policy", "trigger issue_comment"),
    (MAIN, PUSH, "  pull_request:\n    branches: [main]\n", "policy", "strangers cause"),
    (MAIN, r"branches: \[main\]", 'branches: ["**"]', "policy", "would start CI"),
    (MAIN, r"branches: \[main\]", "branches: [main, perf-data]", "policy", "would start CI"),
    (GATE, r"checkout@\w+ # v7.0.1", "checkout@v7", "zizmor", "unpinned-uses"),
    (GATE, r"checkout@\w+ # v7.0.1", "checkout@v7", "policy", "not one of our pins"),
    (GATE, r"# v7.0.1", "# v3.0.0", "policy", "not one of our pins"),
    (GATE, r"make test", 'make "${{ github.head_ref }}"', "zizmor", "template-injection"),
    (GATE, r"make test", 'make "${{ github.head_ref }}"', "policy", "not one flopwatch"),
    (GATE, r"make test", "make test && curl https://a.example", "policy", "not one flopwatch"),
    (GATE, r"make test", "make test $(id)", "policy", "not one flopwatch"),
    (GATE, r"run: make test", "run: |\n          make test\n          id", "policy", "not one"),
    (BENCH, r"permissions: \{\}\n", "", "zizmor", "excessive-permissions"),
    (BENCH, r"permissions: \{\}", "permissions: write-all", "policy", "not {}"),
    (BENCH, r"contents: read", "contents: write", "policy", "more than contents: read"),
    (GATE, KEEP, "", "zizmor", "artipacked"),
    (BENCH, KEEP, "", "policy", "credentials on disk"),
    (
        BENCH,
        KEEP,
        f"{KEEP}          allow-unsafe-pr-checkout: true\n",
        "policy",
        "where GitHub refuses it",
    ),
    (BENCH, r"    environment: gpu-benchmarks\n", "", "policy", "asks for approval"),
    (BENCH, r"    timeout-minutes: 60\n", "", "policy", "no timeout"),
    (
        BENCH,
        r"      - run: make install\n",
        "      - run: make install\n        env:\n          T: ${{ github.token }}\n",
        "policy",
        "a token in a step of a self-hosted runner",
    ),
    (
        BENCH,
        r"      - run: make install\n",
        "      - run: make install\n        env:\n          T: ${{ secrets.DEPLOY }}\n",
        "policy",
        "a secret",
    ),
    (DISPATCH, r"pr-bench.yml\n", "pr-bench.yml\n    secrets: inherit\n", "zizmor", "inherit"),
    (DISPATCH, r"pr-bench.yml\n", "pr-bench.yml\n    secrets: inherit\n", "policy", "a secret"),
    (
        DISPATCH,
        KEEP,
        KEEP + "          ref: ${{ inputs.head_sha }}\n",
        "policy",
        "other code than the workflow's own",
    ),
    (
        DISPATCH,
        r'          python-version: "3.13"\n',
        '          python-version: "3.13"\n          cache: pip\n',
        "policy",
        "reads a cache",
    ),
    (DISPATCH, r"\$\{\{ runner.temp \}\}/gate", "gate-out", "policy", "into the checkout"),
    (GATE, r"contents: read", "contents: write", "policy", "a right to write for events"),
    (BENCH, r"flopwatch-gpu", "flopwatch-gqu", "actionlint", "runner-label"),
    (DISPATCH, r"needs: request", "needs: requests", "actionlint", "job-needs"),
    (
        DISPATCH,
        r"needs.request.outputs.base",
        "needs.request.outputs.bsae",
        "actionlint",
        "expression",
    ),
    (BENCH, r"timeout-minutes: 60", "timeout-minutes: soon", "schema", "soon"),
    (MAIN, r"cancel-in-progress: false", "queue: all", "actionlint", "syntax-check"),
    (MAIN, r"name: main-bench-\S+ \S+ }}", "name: records", "policy", "in the next attempt"),
    (MAIN, r"artifact: main-", "artifact: mian-", "policy", "another than the uploaded"),
    (GATE, r"if-no-files-found: error", "if-no-files-found: warn", "policy", "is no error"),
    (PAGES, r"\nconcurrency:\n.*\n.*\n", "\n", "policy", "no concurrency"),
    (PAGES, r"  workflow_call:\n", "  workflow_call: [\n", "zizmor", "failed"),
]


@pytest.mark.parametrize(("file", "old", "new", "check", "part"), PLANTED)
def test_a_planted_weakness_is_caught(
    repository: Path, file: str, old: str, new: str, check: str, part: str
) -> None:
    path = repository / ".github/workflows" / file
    text = path.read_text(encoding="utf-8")
    planted = re.sub(old, lambda _: new, text, count=1)
    assert planted != text
    path.write_text(planted, encoding="utf-8")
    assert part in said_by(check, repository)
