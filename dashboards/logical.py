"""Logical traffic: what a stage's threads load. Changes when it is counted otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci.results.model import CaseResult
from dashboards.history import Commit, MachineHistory

_ELEMENT_BYTES = 4
"""float32, the only element type of the ladders with roofs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """A counted launch of the very source that was timed."""

    case: CaseResult
    elements: int
    """Elements its threads loaded from global memory."""
    machine: str
    commit: str

    def bytes_at(self, flops: int) -> int:
        """Return the bytes that as much work would load, in proportion to its flops."""
        return self.elements * _ELEMENT_BYTES * flops // self.case.flops


def counted_launch(
    history: Sequence[MachineHistory], shown: Commit, case: CaseResult
) -> Counted | None:
    """Return the largest counted launch of a stage's own source, whoever counted it.

    What threads load is a property of the source, so the count of one machine holds on another;
    a count of another source does not. None if this source was never counted.
    """
    stage = shown.stage_of(case)
    if stage is None or not stage.source_digest:
        return None
    counted = [
        Counted(
            case=other,
            elements=other.counters.global_load_elements,
            machine=entry.machine.name,
            commit=commit.revision.commit,
        )
        for entry in history
        for commit in reversed(entry.commits)
        if (found := commit.stage_of(case)) and found.source_digest == stage.source_digest
        for other in commit.cases.values()
        if (other.ladder, other.stage) == (case.ladder, case.stage)
        and other.counters is not None
        and other.flops
    ]
    return max(counted, key=lambda each: each.case.flops, default=None)
