"""One case as one side, base or head, has it: the case's own result and its stage's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci.gate.errors import DuplicateCaseError
from ci.results.model import Status

if TYPE_CHECKING:
    from ci.results.model import CaseResult, Finding, RunRecord, StageResult, SubCheck

ERRORS = (Status.COMPILE_ERROR, Status.LAUNCH_ERROR, Status.TIMEOUT)
"""A case with such a status gave no result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """A case's result together with what holds for its whole stage."""

    case: CaseResult
    stage: StageResult | None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the hazards of the case and of its stage's correctness plan."""
        return (*self.case.findings, *(self.stage.findings if self.stage else ()))

    @property
    def wrong(self) -> tuple[SubCheck, ...]:
        """Return the failed sub-checks of the case and of its stage's correctness plan."""
        own = (self.case.subcheck,) if self.case.subcheck else ()
        plan = self.stage.subchecks if self.stage else ()
        return tuple(subcheck for subcheck in (*own, *plan) if not subcheck.passed)

    @property
    def status(self) -> Status:
        """Return the case's status, never better than what its stage's result allows."""
        if self.case.status in ERRORS:
            return self.case.status
        if self.stage and self.stage.error:
            return Status.COMPILE_ERROR
        if self.findings or self.wrong:
            return Status.INCORRECT
        return self.case.status

    @property
    def failed(self) -> bool:
        """Return whether the case is wrong or gave no result."""
        return self.status is Status.INCORRECT or self.status in ERRORS


def sides(record: RunRecord) -> dict[str, Side]:
    """Return case id → side, in the record's order.

    Raises:
        DuplicateCaseError: Two cases of the record have one id.
    """
    stages = {(stage.ladder, stage.stage): stage for stage in record.stages}
    found: dict[str, Side] = {}
    for case in record.cases:
        if case.id in found:
            msg = (
                f"run {record.run} of {record.revision.described}: expected one result a case, "
                f"{case.id} has two (two suites declare it: run them one by one)"
            )
            raise DuplicateCaseError(msg)
        found[case.id] = Side(case=case, stage=stages.get((case.ladder, case.stage)))
    return found
