"""What no linter knows of our workflows: who may run whose code with which rights."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PINS = {
    "actions/checkout": "3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1",
    "actions/setup-python": "5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0",
    "actions/upload-artifact": "043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1",
    "actions/download-artifact": "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1",
    "actions/upload-pages-artifact": "fc324d3547104276b827a68afc52ff2a11cc49c9 # v5.0.0",
    "actions/deploy-pages": "cd2ce8fcbc39b97be8ca5fce6e763baed58fa128 # v5.0.0",
}
"""The actions we use, each at its commit: a new one is a decision."""

_TRIGGERS = {
    "pull_request",
    "merge_group",
    "push",
    "schedule",
    "workflow_dispatch",
    "workflow_call",
}
_STRANGERS = {"pull_request", "merge_group"}
_DATA_BRANCH = "perf-data"
_COMMAND = re.compile(r"(make|\.venv/bin/flopwatch|\.venv/bin/asv)( [\w./=*-]+| \"\$[\w./$]+\")*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One job, and what holds for the workflow around it."""

    place: str
    triggers: frozenset[str]
    content: dict[str, Any]

    @property
    def steps(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = self.content.get("steps", [])
        return steps

    @property
    def self_hosted(self) -> bool:
        return "self-hosted" in self.content.get("runs-on", [])

    @property
    def permissions(self) -> dict[str, str]:
        granted: dict[str, str] = self.content.get("permissions", {})
        return granted

    @property
    def trusted(self) -> bool:
        """Return whether the job can change anything on GitHub."""
        return "write" in self.permissions.values()


def problems(folder: Path) -> list[str]:
    """Return what is wrong with the workflows in a folder; none if all is well."""
    found: list[str] = []
    for path in sorted(folder.glob("*.yml")):
        text = path.read_text(encoding="utf-8")
        found += (f"{path.name}: {problem}" for problem in _of_file(path.name, text))
    return found


def _of_file(name: str, text: str) -> Iterator[str]:
    workflow = yaml.safe_load(text)
    # YAML 1.1 takes the key `on` for a truth value.
    events = workflow[True]
    yield from _of_workflow(workflow, events)
    yield from _of_pins(text)
    if "secrets." in text or "secrets:" in text:
        yield "a secret; the token of the run is all we need"
    for key, content in workflow["jobs"].items():
        job = Job(place=f"{name} {key}", triggers=frozenset(events), content=content)
        for check in (_of_job, _of_self_hosted, _of_trusted):
            yield from (f"{key}: {problem}" for problem in check(job))
        for step in job.steps:
            yield from (f"{key}: {problem}" for problem in _of_step(job, step))


def _of_workflow(workflow: dict[str, Any], events: dict[str, Any]) -> Iterator[str]:
    yield from (f"trigger {event}" for event in set(events) - _TRIGGERS)
    if "push" in events and (events["push"] or {}).get("branches") != ["main"]:
        yield "push to other branches than main: results pushed by CI would start CI"
    if workflow.get("permissions") != {}:
        yield "permissions at the top are not {}"
    if "concurrency" not in workflow and set(events) != {"workflow_call"}:
        yield "no concurrency"


def _of_pins(text: str) -> Iterator[str]:
    for used in re.findall(r"uses: (.+)", text):
        action, _, pin = used.partition("@")
        if not action.startswith("$/.github/workflows/") and PINS.get(action) != pin:
            yield f"{used} is not one of our pins"


def _of_job(job: Job) -> Iterator[str]:
    if "permissions" not in job.content:
        yield "no permissions"
    if job.steps and "timeout-minutes" not in job.content:
        yield "no timeout"


def _of_self_hosted(job: Job) -> Iterator[str]:
    """Yield what would let a stranger's code do more than use the GPU."""
    if not job.self_hosted:
        return
    if job.triggers & _STRANGERS:
        yield "a self-hosted runner for events that strangers cause"
    if job.permissions != {"contents": "read"}:
        yield "a self-hosted runner with more than contents: read"
    if "github.token" in str(job.content):
        yield "a token in a step of a self-hosted runner"
    if "workflow_call" in job.triggers and job.content.get("environment") != "gpu-benchmarks":
        yield "a stranger's code on the GPU without the environment that asks for approval"


def _of_trusted(job: Job) -> Iterator[str]:
    """Yield what would let a stranger's code run with rights to change something."""
    if not job.trusted:
        return
    if job.triggers & _STRANGERS:
        yield "a right to write for events that strangers cause"
    for step in job.steps:
        options = step.get("with") or {}
        if options.get("ref", _DATA_BRANCH) != _DATA_BRANCH or "repository" in options:
            yield "a job with a right to write checks out other code than the workflow's own"
        if "cache" in str(step.get("uses")) or "cache" in options:
            yield "a job with a right to write reads a cache"
        fetched = step.get("uses", "").startswith("actions/download-artifact")
        if fetched and not options.get("path", "").startswith("${{ runner.temp }}/"):
            yield "an artifact is unpacked into the checkout"


def _of_step(job: Job, step: dict[str, Any]) -> Iterator[str]:
    action, options = step.get("uses", "").partition("@")[0], step.get("with") or {}
    if "run" in step and not _COMMAND.fullmatch(step["run"]):
        yield f"run is not one flopwatch, make or asv command: {step['run']!r}"
    if action == "actions/checkout":
        if options.get("persist-credentials") is not False:
            yield "a checkout that leaves credentials on disk"
        if "allow-unsafe-pr-checkout" in options:
            yield "a checkout of a stranger's code where GitHub refuses it"
    if action == "actions/upload-artifact":
        if "github.run_attempt" not in options["name"]:
            yield "an artifact's name is the same in the next attempt"
        if job.content.get("outputs", {}).get("artifact", options["name"]) != options["name"]:
            yield "the job's output names another than the uploaded artifact"
        if options.get("if-no-files-found") != "error":
            yield "a missing artifact is no error"
    if "github.token" in str(step) and not job.trusted:
        yield "a token in a job that may not write"
