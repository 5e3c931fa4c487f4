"""What a worker process is asked and what it answers: one strict-JSON line a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ci.results.model import (
    CaseResult,
    Counters,
    Finding,
    LineCounters,
    StageResult,
    Status,
    SubCheck,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspect:
    """Load a suite, compile every stage and read what the compiler tells."""

    suite: str
    """Folder of the suite."""
    architectures: tuple[str, ...]
    cache: str
    """Folder of the compile cache."""
    selection: str
    """``-k`` expression: only stages with a selected case are compiled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """Run the correctness plan of one stage, then its cases."""

    suite: str
    architectures: tuple[str, ...]
    cache: str
    ladder: str
    stage: str
    cases: tuple[str, ...]
    """Ids of the cases to run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseFacts:
    """What is known of a case before it runs."""

    id: str
    suite: str
    ladder: str
    stage: str
    size: Mapping[str, int]
    role: str
    devices: tuple[str, ...]
    flops: int
    compulsory_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteLoaded:
    """First answer to Inspect."""

    cases: tuple[CaseFacts, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class StageInspected:
    """One stage compiled, or refused by the compiler; the plan has not run yet."""

    result: StageResult


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanChecked:
    """The correctness plan of a stage is through."""

    ladder: str
    stage: str
    status: Status
    reason: str
    subchecks: tuple[SubCheck, ...]
    findings: tuple[Finding, ...]
    counters: Counters | None
    lines: tuple[LineCounters, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseDone:
    """A case is through."""

    result: CaseResult


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteFailed:
    """The suite does not load; the message is for people."""

    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SetupFailed:
    """This machine lacks something; the fault is not the suite's."""

    message: str


Job = Inspect | Check
Answer = SuiteLoaded | StageInspected | PlanChecked | CaseDone | SuiteFailed | SetupFailed
