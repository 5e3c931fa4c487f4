"""The front page: the gate's answer, then ladders and commits. Changes when it says more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci.results.model import CaseVerdict, GateResult, Status, Timing, Word
from dashboards.case_times import interval, other_setting
from dashboards.formatting import (
    DASH,
    duration,
    message,
    moment,
    plural,
    ratio,
    short_commit,
    subject,
)
from dashboards.history import Commit, MachineHistory
from dashboards.ladder_view import LadderView, ladder_views
from dashboards.links import case_path, slug
from dashboards.page_parts import Fact, Link, revision_fact
from dashboards.tables import Badge, Cell, Column, Row, Table
from dashboards.timing import disbelief
from dashboards.words import BASELINE, OUTCOMES, VERDICTS

_LISTED_COMMITS = 50
_QUIET = (Word.UNCHANGED,)
_TIMING_COLUMNS = (
    Column(label="Time", unit="head over base", numeric=True),
    Column(label="Setting"),
)
_TIMES_LEGEND = (
    "Time: median over the samples of one run, operands outside the cache (cold). Speed: the "
    f"declared work over that time. Of {BASELINE}: median of {BASELINE} over median of the stage, "
    "both in the same run. SOL, the speed of light: the least time in which the machine can "
    "compute the declared work and move every operand once."
)
_COMPILED_LEGEND = "Compiled kernel: sm_90 where it was compiled, first layout variant."
_COUNTS_LEGEND = (
    "One launch: counted by the device at this size. Global traffic is the bytes of all load and "
    "store sectors over the bytes moved if every operand crossed device memory once."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """How many cases have one verdict."""

    badge: Badge
    number: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GateView:
    """A gate's answer."""

    outcome: Badge
    sentence: str
    facts: tuple[Fact, ...]
    counts: tuple[Count, ...]
    telling: Table | None
    """Cases that a reader must look at."""
    quiet: Table | None
    """Unchanged cases."""
    quiet_summary: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineView:
    """Everything the front page says about one machine."""

    name: str
    anchor: str
    facts: tuple[Fact, ...]
    gate: GateView | None
    alerts: tuple[str, ...]
    """What makes the figures below incomplete."""
    remarks: tuple[str, ...]
    ladders: tuple[LadderView, ...]
    legends: tuple[str, ...]
    """How the ladders' figures are to be read."""
    commits: Table | None
    commits_summary: str


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexPage:
    """The front page."""

    summary: str
    machines: tuple[MachineView, ...]


def index_page(history: Sequence[MachineHistory]) -> IndexPage:
    """Return the front page of all machines."""
    cases = {case_id for entry in history for case_id in entry.case_ids}
    commits = {commit.revision.commit for entry in history for commit in entry.commits}
    parts = (
        plural(len(cases), "case"),
        plural(len(commits), "commit"),
        plural(len(history), "machine"),
    )
    return IndexPage(
        summary=" · ".join(parts), machines=tuple(_machine(entry) for entry in history)
    )


def sections(page: IndexPage) -> tuple[Link, ...]:
    """Return links to the parts of the front page: of its one machine, else to each machine."""
    if len(page.machines) != 1:
        return tuple(
            Link(label=view.name, href=f"index.html#{view.anchor}") for view in page.machines
        )
    view = page.machines[0]
    verdicts = [Link(label="Verdicts", href=f"index.html#{view.anchor}-verdicts")]
    ladders = [Link(label=each.title, href=f"index.html#{each.anchor}") for each in view.ladders]
    commits = [Link(label="Commits", href=f"index.html#{view.anchor}-commits")]
    return (*(verdicts if view.gate else ()), *ladders, *(commits if view.commits else ()))


def _machine(history: MachineHistory) -> MachineView:
    machine = history.machine
    listed = history.commits[-_LISTED_COMMITS:]
    return MachineView(
        name=machine.name,
        anchor=f"machine-{slug(machine.name)}",
        facts=() if history.gate else _machine_facts(history),
        gate=_gate(history.gate) if history.gate else None,
        alerts=_alerts(history.shown),
        remarks=_remarks(history),
        ladders=ladder_views(history),
        legends=_legends(history),
        commits=_commits_table(listed) if listed else None,
        commits_summary=(
            f"{len(listed):,} of {plural(len(history.commits), 'commit')}, newest first."
        ),
    )


def _legends(history: MachineHistory) -> tuple[str, ...]:
    if not history.latest:
        return ()
    counted = any(case.counters for case in history.latest.values())
    return (
        *((_TIMES_LEGEND,) if history.timed else ()),
        _COMPILED_LEGEND,
        *((_COUNTS_LEGEND,) if counted else ()),
        "Bars start at zero; the longest is the largest of its column.",
    )


def _machine_facts(history: MachineHistory) -> tuple[Fact, ...]:
    revision = history.shown.revision if history.shown else None
    return (
        revision_fact("Newest commit", revision, "no record"),
        Fact(label="Device", text=history.machine.device),
        Fact(label="Architectures", text=", ".join(history.machine.architectures) or "none"),
    )


def _alerts(shown: Commit | None) -> tuple[str, ...]:
    if shown is None:
        return ("No record of this machine is stored: there are verdicts, but no figures.",)
    run = shown.runs[0]
    alerts = []
    if run.error:
        alerts.append(f"The suite did not load.\n{message(run.error)}")
    if not run.complete:
        alerts.append(f"Run {run.run} was interrupted: cases may be absent.")
    alerts += [told for case in shown.cases.values() if (told := disbelief(case, shown.roofs))]
    return tuple(alerts)


def _remarks(history: MachineHistory) -> tuple[str, ...]:
    notes = history.gate.notes if history.gate else ()
    run = history.shown.runs[0] if history.shown else None
    if run is None or not run.selection:
        return notes
    return (*notes, f"Run {run.run} holds only the cases selected by: {run.selection}")


def _gate(gate: GateResult) -> GateView:
    order = {word: rank for rank, word in enumerate(VERDICTS)}
    by_severity = sorted(gate.cases, key=lambda case: (not case.fails, order[case.verdict]))
    telling = [case for case in by_severity if case.verdict not in _QUIET]
    quiet = [case for case in by_severity if case.verdict in _QUIET]
    return GateView(
        outcome=OUTCOMES[gate.verdict],
        sentence=gate.sentence,
        facts=(
            revision_fact("Base", gate.base, "head was checked alone"),
            revision_fact("Head", gate.head, ""),
            Fact(label="Machine", text=gate.machine.name, note=_machine_note(gate)),
            Fact(label="Took", text=duration(gate.seconds), note=moment(gate.started)),
        ),
        counts=tuple(
            Count(badge=badge, number=f"{number:,}")
            for word, badge in VERDICTS.items()
            if (number := sum(1 for case in gate.cases if case.verdict is word))
        ),
        telling=_verdict_table("Verdicts", telling) if telling else None,
        quiet=_verdict_table("Unchanged cases", quiet) if quiet else None,
        quiet_summary=plural(len(quiet), "unchanged case"),
    )


def _machine_note(gate: GateResult) -> str:
    architectures = ", ".join(gate.machine.architectures)
    return f"compiled for {architectures}" if architectures else gate.machine.device


def _verdict_table(caption: str, cases: Sequence[CaseVerdict]) -> Table:
    timed = any(case.timing for case in cases)
    return Table(
        caption=caption,
        shape="stacked",
        columns=(
            Column(label="Verdict"),
            Column(label="Case", header=True),
            Column(label="Reason", wide=True),
            *(_TIMING_COLUMNS if timed else ()),
            Column(label="Base"),
            Column(label="Head"),
        ),
        rows=tuple(
            Row(
                cells=(
                    Cell(badge=VERDICTS[case.verdict]),
                    Cell(text=case.id, href=case_path(case.id)),
                    Cell(
                        text=message(case.reason),
                        note=f"Acknowledged: {case.acknowledged}" if case.acknowledged else "",
                    ),
                    *(_timing_cells(case.timing) if timed else ()),
                    Cell(text=_status_word(case.base)),
                    Cell(text=_status_word(case.head)),
                ),
            )
            for case in cases
        ),
    )


def _timing_cells(timing: Timing | None) -> tuple[Cell, ...]:
    if timing is None:
        return (Cell(text=DASH),) * len(_TIMING_COLUMNS)
    return (
        Cell(text=ratio(timing.ratio), note=interval(timing)),
        Cell(
            text=f"{timing.setting}, {plural(timing.rounds, 'round')}", note=other_setting(timing)
        ),
    )


def _status_word(status: str) -> str:
    return status.lower().replace("_", " ")


def _commits_table(commits: Sequence[Commit]) -> Table:
    return Table(
        caption="Commits",
        shape="stacked",
        columns=(
            Column(label="Commit", header=True, code=True),
            Column(label="Date"),
            Column(label="Subject", wide=True),
            Column(label="Passed", unit="cases", numeric=True),
            Column(label="All", unit="cases", numeric=True),
            Column(label="Run"),
        ),
        rows=tuple(_commit_row(commit) for commit in reversed(commits)),
    )


def _commit_row(commit: Commit) -> Row:
    cases = commit.cases.values()
    run = commit.runs[0]
    state = [] if run.complete else ["interrupted"]
    state += ["suite did not load"] if run.error else []
    state += [f"{len(commit.runs) - 1:,} more of this commit"] if len(commit.runs) > 1 else []
    passed = sum(1 for case in cases if case.status is Status.PASSED)
    return Row(
        cells=(
            Cell(text=short_commit(commit.revision.commit)),
            Cell(text=moment(commit.revision.committed)),
            Cell(text=subject(commit.revision.subject) or commit.revision.described),
            Cell(text=f"{passed:,}"),
            Cell(text=f"{len(cases):,}"),
            Cell(text=run.run, note=", ".join(state)),
        )
    )
