"""Which runs count, and in what order commits stand. Changes when records are chosen otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ci.results.model import (
    CaseResult,
    CaseVerdict,
    GateResult,
    Machine,
    Revision,
    RunRecord,
    StageResult,
)
from dashboards.formatting import parse_moment
from dashboards.roofs import Roofs, roofs_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """Everything one machine knows about one commit."""

    revision: Revision
    runs: tuple[RunRecord, ...]
    """Complete runs first, the latest of them first: the run that counts is ``runs[0]``."""

    cases: Mapping[str, CaseResult]
    """Case id → the case from the first run that holds it, in that run's order."""
    stages: Mapping[tuple[str, str], StageResult]
    """(ladder, stage) → the stage from the first run that holds it."""

    @property
    def roofs(self) -> Roofs | None:
        """Return the machine's roofs as the latest run found them; None without a GPU."""
        return next((roofs for run in self.runs if (roofs := roofs_of(run.machine.peaks))), None)

    def stage_of(self, case: CaseResult) -> StageResult | None:
        """Return the stage that a case belongs to, as this commit knows it."""
        return self.stages.get((case.ladder, case.stage))


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineHistory:
    """The commits of one machine, oldest first, and its latest gate."""

    machine: Machine
    commits: tuple[Commit, ...]
    gate: GateResult | None
    shown: Commit | None
    """The commit whose figures stand for today: the gate's head, else the last one."""
    base: Commit | None
    """The commit that the gate compared with, if its record is here."""
    latest: Mapping[str, CaseResult]
    """Case id → the case as the newest commit that holds it knows it: today's cases in ladder
    order, then those that are gone."""
    verdicts: Mapping[str, CaseVerdict]
    """Case id → the gate's verdict."""

    @property
    def timed(self) -> bool:
        """Return whether any case of any commit was timed here."""
        return any(case.cold for commit in self.commits for case in commit.cases.values())

    @property
    def case_ids(self) -> tuple[str, ...]:
        """Return every case that a record or the gate of this machine names."""
        return tuple(dict.fromkeys([*self.latest, *self.verdicts]))


def histories(
    records: Sequence[RunRecord], gates: Sequence[GateResult]
) -> tuple[MachineHistory, ...]:
    """Return one history per machine, by name. Machines are never mixed."""
    names = {record.machine.name for record in records} | {gate.machine.name for gate in gates}
    return tuple(
        _history(
            [record for record in records if record.machine.name == name],
            [gate for gate in gates if gate.machine.name == name],
        )
        for name in sorted(names)
    )


def ordered_by_topology(revisions: Iterable[Revision]) -> tuple[Revision, ...]:
    """Return revisions so that parents stand before children, and by commit date otherwise.

    The order of runs says nothing: an old commit may be measured late. A tree that was edited
    follows the commit it was made from. Revisions without a date come last.
    """
    waiting = sorted(revisions, key=_date_key)
    known = {revision.commit for revision in waiting}
    placed: dict[str, Revision] = {}
    while waiting:
        ready = next(
            (
                revision
                for revision in waiting
                if all(parent in placed for parent in _parents(revision) & known)
            ),
            # Only damaged records hold a circle of parents; the date decides there.
            waiting[0],
        )
        waiting.remove(ready)
        placed[ready.commit] = ready
    return tuple(placed.values())


def _history(records: Sequence[RunRecord], gates: Sequence[GateResult]) -> MachineHistory:
    gate = max(gates, key=lambda each: (each.started, each.head.commit), default=None)
    newest = max(records, key=lambda record: (record.started, record.run), default=None)
    owner = newest or gate
    if owner is None:
        msg = "a machine's history needs a record or a gate of that machine, got neither"
        raise ValueError(msg)
    commits = _commits(records)
    by_hash = {commit.revision.commit: commit for commit in commits}
    shown = by_hash.get(gate.head.commit) if gate else None
    shown = shown or (commits[-1] if commits else None)
    latest: dict[str, CaseResult] = {}
    for commit in (shown, *reversed(commits)):
        for case_id, case in commit.cases.items() if commit else ():
            latest.setdefault(case_id, case)
    return MachineHistory(
        machine=owner.machine,
        commits=commits,
        gate=gate,
        shown=shown,
        base=by_hash.get(gate.base.commit) if gate and gate.base else None,
        latest=latest,
        verdicts={verdict.id: verdict for verdict in gate.cases} if gate else {},
    )


def _commits(records: Sequence[RunRecord]) -> tuple[Commit, ...]:
    runs: dict[str, list[RunRecord]] = {}
    for record in sorted(records, key=_run_key, reverse=True):
        runs.setdefault(record.revision.commit, []).append(record)
    order = ordered_by_topology(best[0].revision for best in runs.values())
    return tuple(_commit(revision, runs[revision.commit]) for revision in order)


def _commit(revision: Revision, runs: Sequence[RunRecord]) -> Commit:
    cases: dict[str, CaseResult] = {}
    stages: dict[tuple[str, str], StageResult] = {}
    for run in runs:
        for case in run.cases:
            cases.setdefault(case.id, case)
        for stage in run.stages:
            stages.setdefault((stage.ladder, stage.stage), stage)
    return Commit(revision=revision, runs=tuple(runs), cases=cases, stages=stages)


def _run_key(record: RunRecord) -> tuple[bool, str, str]:
    return (record.complete, record.started, record.run)


def _date_key(revision: Revision) -> tuple[bool, float, str]:
    committed = parse_moment(revision.committed)
    return (committed is None, committed.timestamp() if committed else 0.0, revision.commit)


def _parents(revision: Revision) -> set[str]:
    base, dirty, _ = revision.commit.partition("-dirty-")
    return {*revision.parents, base} if dirty else set(revision.parents)
