"""Runs both sides of a gate, or one side alone, through worker processes into RunRecords."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ci.measure.errors import SetupError
from ci.measure.messages import (
    Answer,
    CaseDone,
    CaseFacts,
    Check,
    Inspect,
    PlanChecked,
    SetupFailed,
    StageInspected,
    SuiteFailed,
    SuiteLoaded,
)
from ci.measure.pool import Ended, run_jobs
from ci.measure.sides import Side
from ci.results.model import (
    SCHEMA_VERSION,
    CaseResult,
    Machine,
    RunRecord,
    StageResult,
    Status,
)

_WORKERS_PER_GPU = 8

StageKey = tuple[str, str]
"""(ladder, stage)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What to run and how."""

    device: str
    architectures: tuple[str, ...]
    cache: Path
    selects: Callable[[str], bool]
    """Case id → whether it was asked for."""
    selection: str
    """The expression behind ``selects``; empty: everything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Progress: one case of one side is through."""

    side: str
    done: int
    total: int
    result: CaseResult


class SideRun:
    """What is known so far of one side; becomes a RunRecord at any time."""

    def __init__(self, side: Side, plan: Plan, machine: Machine) -> None:
        """Start with nothing run."""
        now = datetime.now(UTC)
        self.side = side
        self.run = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        self.error = ""
        self.finished = False
        self._started = now.isoformat(timespec="milliseconds")
        self._plan = plan
        self._machine = machine
        self._listed: tuple[CaseFacts, ...] = ()
        self._stages: dict[StageKey, StageResult] = {}
        self._results: dict[str, CaseResult] = {}

    @property
    def cases(self) -> tuple[CaseFacts, ...]:
        """Return the selected cases this device can run, in suite order."""
        return tuple(
            case
            for case in self._listed
            if self._plan.device in case.devices and self._plan.selects(case.id)
        )

    @property
    def left_out(self) -> tuple[CaseFacts, ...]:
        """Return the selected cases that only another device can run."""
        return tuple(
            case
            for case in self._listed
            if self._plan.device not in case.devices and self._plan.selects(case.id)
        )

    def stage_keys(self) -> tuple[StageKey, ...]:
        """Return the stages of the selected cases, in suite order."""
        return tuple(dict.fromkeys((case.ladder, case.stage) for case in self.cases))

    def stage(self, key: StageKey) -> StageResult | None:
        """Return what is known of a stage."""
        return self._stages.get(key)

    def unfinished(self, key: StageKey) -> tuple[CaseFacts, ...]:
        """Return the stage's selected cases that have no result yet."""
        return tuple(
            case
            for case in self.cases
            if (case.ladder, case.stage) == key and case.id not in self._results
        )

    def hear(self, answer: Answer) -> StageResult | CaseResult | None:
        """Take in what a worker said; return the stage or case that it completes, if any."""
        match answer:
            case SuiteLoaded():
                self._listed = answer.cases
            case SuiteFailed():
                self.error = answer.message
            case SetupFailed():
                raise SetupError(answer.message)
            case StageInspected():
                return self._learn(answer.result)
            case PlanChecked():
                inspected = self._stages[answer.ladder, answer.stage]
                return self._learn(
                    replace(
                        inspected,
                        subchecks=answer.subchecks,
                        findings=answer.findings,
                        counters=answer.counters,
                        lines=answer.lines,
                        seconds=inspected.seconds + answer.seconds,
                    )
                )
            case CaseDone():
                return self.finish(answer.result)
        return None

    def _learn(self, stage: StageResult) -> StageResult:
        self._stages[stage.ladder, stage.stage] = stage
        return stage

    def finish(self, result: CaseResult) -> CaseResult:
        """Keep the result of a case and return it."""
        self._results[result.id] = result
        return result

    def give_up(self, key: StageKey, status: Status, reason: str) -> list[CaseResult]:
        """End a stage's unfinished cases with one status, and return them."""
        return [self.finish(_stopped(facts, status, reason)) for facts in self.unfinished(key)]

    def copy_from(self, other: SideRun, key: StageKey) -> list[CaseResult]:
        """Take over another side's results of a stage whose code is identical.

        The device is deterministic, so the same code under the same launch has the same results.
        """
        theirs = other.stage(key)
        mine = self._stages[key]
        if theirs is not None:
            self._stages[key] = replace(
                mine,
                subchecks=theirs.subchecks,
                findings=theirs.findings,
                counters=theirs.counters,
                lines=theirs.lines,
            )
        found = [other._results.get(facts.id) for facts in self.unfinished(key)]
        return [self.finish(result) for result in found if result is not None]

    def record(self) -> RunRecord:
        """Return everything known so far, in suite order."""
        known = [self._results.get(case.id) for case in self.cases]
        return RunRecord(
            schema_version=SCHEMA_VERSION,
            run=self.run,
            started=self._started,
            revision=self.side.revision,
            machine=self._machine,
            complete=self.finished,
            selection=self._plan.selection,
            error=self.error,
            stages=tuple(self._stages[key] for key in self.stage_keys() if key in self._stages),
            cases=tuple(result for result in known if result is not None),
        )


Keep = Callable[[SideRun, StageResult | CaseResult], None]
"""Stores what became known of a side."""


def run_sides(
    runs: Sequence[SideRun],
    plan: Plan,
    *,
    progress: Callable[[Step], None],
    keep: Keep,
) -> None:
    """Run every side to its end; the first is head, what is identical to it is not run again.

    Args:
        runs: Head, then base if there is one.
        plan: What to run.
        progress: Called once a finished case.
        keep: Called with each stage and case as it becomes known, to store it.

    Raises:
        SetupError: This machine lacks something every stage needs.
    """
    _inspect(runs, plan, keep)
    head = runs[0]
    jobs: list[tuple[SideRun, StageKey]] = [(head, key) for key in head.stage_keys()]
    copies: list[tuple[SideRun, StageKey]] = []
    for other in runs[1:]:
        for key in other.stage_keys():
            same = _identical(head.stage(key), other.stage(key))
            (copies if same else jobs).append((other, key))
    total = sum(len(run.unfinished(key)) for run, key in jobs)
    done = 0

    def finished(run: SideRun, results: Sequence[CaseResult], *, shown: bool = True) -> None:
        nonlocal done
        for result in results:
            keep(run, result)
            done += shown
            if shown:
                progress(Step(side=run.side.label, done=done, total=total, result=result))

    todo: list[tuple[SideRun, StageKey]] = []
    for run, key in jobs:
        stage = run.stage(key)
        if stage is None or stage.error:
            error = stage.error if stage else "the stage was not inspected"
            finished(run, run.give_up(key, Status.COMPILE_ERROR, error))
        else:
            todo.append((run, key))
    _check(todo, plan, finished, keep)
    for run, key in copies:
        finished(run, run.copy_from(head, key), shown=False)
    for run in runs:
        run.finished = True


def _inspect(runs: Sequence[SideRun], plan: Plan, keep: Keep) -> None:
    """Load and compile every side."""
    jobs = [
        Inspect(
            suite=str(run.side.suite),
            architectures=plan.architectures,
            device=plan.device,
            cache=str(plan.cache),
            selection=plan.selection,
        )
        for run in runs
    ]
    with closing(run_jobs(jobs, workers=worker_count(plan.device))) as events:
        for event in events:
            run = runs[event.job]
            if isinstance(event.said, Ended):
                if event.said.trouble and not run.error:
                    run.error = f"the process that loads and compiles {event.said.trouble}"
            else:
                learned = run.hear(event.said)
                if learned is not None:
                    keep(run, learned)


def _check(
    todo: Sequence[tuple[SideRun, StageKey]],
    plan: Plan,
    finished: Callable[[SideRun, Sequence[CaseResult]], None],
    keep: Keep,
) -> None:
    """Check and count the given stages, each in a process of its own."""
    jobs = [
        Check(
            suite=str(run.side.suite),
            architectures=plan.architectures,
            device=plan.device,
            cache=str(plan.cache),
            ladder=key[0],
            stage=key[1],
            cases=tuple(case.id for case in run.unfinished(key)),
        )
        for run, key in todo
    ]
    with closing(run_jobs(jobs, workers=worker_count(plan.device))) as events:
        for event in events:
            run, key = todo[event.job]
            if isinstance(event.said, Ended):
                status = Status.TIMEOUT if event.said.timed_out else Status.LAUNCH_ERROR
                reason = f"the worker process {event.said.trouble or 'ended without a result'}"
                finished(run, run.give_up(key, status, reason))
            else:
                learned = run.hear(event.said)
                if isinstance(learned, CaseResult):
                    finished(run, [learned])
                elif learned is not None:
                    keep(run, learned)


def _identical(one: StageResult | None, other: StageResult | None) -> bool:
    return bool(one and other and one.identity and one.identity == other.identity and not one.error)


def _stopped(facts: CaseFacts, status: Status, reason: str) -> CaseResult:
    """Return the result of a case that could not be run to its end."""
    return CaseResult(
        id=facts.id,
        suite=facts.suite,
        ladder=facts.ladder,
        stage=facts.stage,
        size=facts.size,
        role=facts.role,
        status=status,
        reason=reason,
        subcheck=None,
        findings=(),
        counters=None,
        lines=(),
        flops=facts.flops,
        compulsory_bytes=facts.compulsory_bytes,
        seconds=0.0,
    )


def worker_count(device: str) -> int:
    """Return how many worker processes this machine takes; each holds a context on a GPU."""
    processors = max(1, len(os.sched_getaffinity(0)))
    return min(processors, _WORKERS_PER_GPU) if device == "cuda" else processors
