"""The page of one case: verdict, checks and history. Changes when it says more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci.results.model import CaseResult, CaseVerdict, Change, StageResult, SubCheck
from dashboards import charts
from dashboards.case_figures import counters_table, lines_table, mix_table, static_table
from dashboards.case_times import Times, times_of, timing_facts
from dashboards.charts import Point
from dashboards.formatting import (
    difference,
    message,
    moment,
    plural,
    scientific,
    short_commit,
    whole,
)
from dashboards.history import Commit, MachineHistory
from dashboards.links import case_path, slug
from dashboards.page_parts import (
    CHARTED_COMMITS,
    Fact,
    Link,
    comparable_figures,
    findings_table,
    points_of,
    revision_fact,
    size_text,
    status_badge,
)
from dashboards.quantities import CHARTED, TIME, Quantity, field_of
from dashboards.tables import Badge, Cell, Column, Row, Table
from dashboards.timing import disbelief
from dashboards.words import FAILED_CHECK, PASSED_CHECK, VERDICTS

_FEWEST_COMMITS = 2
_READING = "▲ more and ▼ fewer than last time; + on the axis: no value there."
_READING_TIMES = (
    " A time's band holds the middle half of its samples; times of two runs are marked as a change "
    "from 10 % on."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """One history chart."""

    title: str
    unit: str
    note: str
    svg: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Folded:
    """A table that opens on demand."""

    summary: str
    table: Table
    open: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseSection:
    """What one machine knows about a case."""

    machine: str
    anchor: str
    badge: Badge
    """The verdict; the status where no gate judged the case."""
    alert: str
    """Why a time of the case cannot be true; empty if it can."""
    reasons: tuple[str, ...]
    facts: tuple[Fact, ...]
    error: str
    changes: Table | None
    findings: Table | None
    checks: Folded | None
    times: Times | None
    counters: Table | None
    lines: Table | None
    static: Table | None
    mix: Table | None
    charts: tuple[Chart, ...]
    history_note: str
    history: Folded | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CasePage:
    """A case on every machine that knows it."""

    id: str
    before: Link | None
    """The stage before this one in the ladder, at the same size."""
    after: Link | None
    facts: tuple[Fact, ...]
    sections: tuple[CaseSection, ...]


def case_page(case_id: str, history: Sequence[MachineHistory]) -> CasePage:
    """Return the page of a case, with a section for each machine whose records or gate name it."""
    knowing = [entry for entry in history if case_id in entry.case_ids]
    examples = [case for entry in knowing if (case := entry.latest.get(case_id))]
    before, after = _neighbours(knowing[0], examples[0]) if examples else (None, None)
    return CasePage(
        id=case_id,
        before=before,
        after=after,
        facts=_case_facts(examples[0]) if examples else (),
        sections=tuple(_section(case_id, entry) for entry in knowing),
    )


def _neighbours(history: MachineHistory, case: CaseResult) -> tuple[Link | None, Link | None]:
    rungs = [
        each
        for each in history.latest.values()
        if (each.ladder, each.size) == (case.ladder, case.size)
    ]
    position = [each.id for each in rungs].index(case.id)
    links = [Link(label=each.stage, href=f"../{case_path(each.id)}") for each in rungs]
    padded = [None, *links, None]
    return padded[position], padded[position + 2]


def _case_facts(case: CaseResult) -> tuple[Fact, ...]:
    return (
        Fact(label="Ladder", text=case.ladder, note=f"suite {case.suite}"),
        Fact(label="Stage", text=case.stage),
        Fact(label="Size", text=size_text(case.size), note=f"role {case.role}"),
        Fact(label="Work", text=f"{whole(case.flops)} FLOP"),
        Fact(label="Compulsory traffic", text=f"{whole(case.compulsory_bytes)} bytes"),
    )


def _section(case_id: str, history: MachineHistory) -> CaseSection:
    shown, base = history.shown, history.base
    example = history.latest.get(case_id)
    case = shown.cases.get(case_id) if shown else None
    stage = shown.stage_of(example) if shown and example else None
    verdict = history.verdicts.get(case_id)
    recorded = (*(case.findings if case else ()), *(stage.findings if stage else ()))
    plotted, note, table = _history(history.commits[-CHARTED_COMMITS:], example)
    return CaseSection(
        machine=history.machine.name,
        anchor=f"machine-{slug(history.machine.name)}",
        badge=VERDICTS[verdict.verdict] if verdict else status_badge(case),
        alert=disbelief(case, shown.roofs if shown else None),
        reasons=_reasons(case, verdict),
        facts=(
            *_section_facts(history, case),
            *timing_facts(verdict.timing if verdict else None),
        ),
        error=message(stage.error) if stage else "",
        changes=_changes_table(verdict.changes) if verdict and verdict.changes else None,
        findings=findings_table(recorded or (verdict.findings if verdict else ())),
        checks=_checks(case, stage),
        times=times_of(case, shown.roofs if shown else None),
        counters=counters_table(base, shown, case_id),
        lines=lines_table(case, verdict),
        static=static_table(stage),
        mix=mix_table(stage),
        charts=plotted,
        history_note=note,
        history=table,
    )


def _section_facts(history: MachineHistory, case: CaseResult | None) -> tuple[Fact, ...]:
    status = status_badge(case)
    if history.gate is None:
        shown = history.shown.revision if history.shown else None
        return (revision_fact("Commit", shown, "no record"),)
    return (
        Fact(label="Status at head", text=f"{status.glyph} {status.word}"),
        revision_fact("Base", history.gate.base, "head was checked alone"),
        revision_fact("Head", history.gate.head, ""),
    )


def _reasons(case: CaseResult | None, verdict: CaseVerdict | None) -> tuple[str, ...]:
    told = [verdict.reason] if verdict else []
    if verdict and verdict.acknowledged:
        told.append(f"Acknowledged: {verdict.acknowledged}")
    if case and case.reason not in (verdict.reason if verdict else ""):
        told.append(case.reason)
    return tuple(message(reason) for reason in told)


def _changes_table(changes: Sequence[Change]) -> Table:
    return Table(
        caption="What changed between base and head",
        shape="stacked",
        columns=(
            Column(label="Figure", header=True),
            Column(label="Where"),
            Column(label="Base", numeric=True),
            Column(label="Head", numeric=True),
            Column(label="Difference", numeric=True),
            Column(label="Means"),
            Column(label="Line that changed most", wide=True, code=True),
        ),
        rows=tuple(_change_row(change) for change in changes),
    )


def _change_row(change: Change) -> Row:
    field = field_of(change.metric)
    meaning = "worse" if change.fails else "better" if change.improves else "only shown"
    spot = ""
    if change.place:
        spot = f"{change.place}  {change.place_text}"
    return Row(
        marked=change.fails,
        cells=(
            Cell(text=field.label, unit=field.unit),
            Cell(text=change.where or "one launch"),
            Cell(text=field.show(change.base)),
            Cell(text=field.show(change.head)),
            Cell(text=difference(change.base, change.head)),
            Cell(text=meaning, tone={"worse": "bad", "better": "good"}.get(meaning, "")),
            Cell(
                text=spot,
                note=f"{whole(change.place_base)} → {whole(change.place_head)} on this line"
                if spot
                else "",
            ),
        ),
    )


def _checks(case: CaseResult | None, stage: StageResult | None) -> Folded | None:
    own = (case.subcheck,) if case and case.subcheck else ()
    checks = (*own, *(stage.subchecks if stage else ()))
    if not checks:
        return None
    failed = sum(1 for check in checks if not check.passed)
    table = Table(
        caption="Sub-checks, failed first",
        shape="stacked",
        columns=(
            Column(label="Result"),
            Column(label="Sub-check", header=True),
            Column(label="Largest error", unit="absolute", numeric=True),
            Column(label="Accepted", unit="absolute", numeric=True),
            Column(label="What is wrong", wide=True),
        ),
        rows=tuple(_check_row(check) for check in sorted(checks, key=lambda each: each.passed)),
    )
    passed = f"{len(checks) - failed:,} of {plural(len(checks), 'sub-check')} passed"
    return Folded(summary=passed, table=table, open=bool(failed))


def _check_row(check: SubCheck) -> Row:
    bound = "exact" if check.bound is None else scientific(check.bound)
    return Row(
        marked=not check.passed,
        cells=(
            Cell(badge=PASSED_CHECK if check.passed else FAILED_CHECK),
            Cell(text=check.name),
            Cell(text=scientific(check.max_error)),
            Cell(text=bound),
            Cell(text=message(check.detail)),
        ),
    )


def _history(
    commits: Sequence[Commit], example: CaseResult | None
) -> tuple[tuple[Chart, ...], str, Folded | None]:
    """Return the charts, a note on how to read them, and the same data as a table."""
    if example is None or len(commits) < _FEWEST_COMMITS:
        return (), f"{plural(len(commits), 'commit')} recorded: a history needs two.", None
    plotted, zero = [], []
    known = _known(commits, example)
    for quantity in known:
        points = points_of(commits, example, quantity)
        values = [point.value for point in points if point.value is not None]
        if any(values):
            plotted.append(_chart(quantity, points))
        elif values:
            zero.append(quantity.label.lower())
    note = f"The newest {plural(len(commits), 'commit')}, oldest on the left. {_READING}"
    if TIME in known:
        note += _READING_TIMES
    if zero:
        note += f" Zero wherever known: {', '.join(zero)}."
    table = _history_table(commits, example)
    folded = Folded(summary="The same data as a table", table=table, open=False)
    return tuple(plotted), note, folded


def _known(commits: Sequence[Commit], example: CaseResult) -> tuple[Quantity, ...]:
    """Return the quantities that some commit knows."""
    figures = comparable_figures(commits, example)
    return tuple(
        quantity for quantity in CHARTED if any(quantity.of(entry) is not None for entry in figures)
    )


def _chart(quantity: Quantity, points: Sequence[Point]) -> Chart:
    fitted = not charts.scale_of(points).starts_at_zero
    title = f"{quantity.label} ({quantity.unit}) over {plural(len(points), 'commit')}"
    return Chart(
        title=quantity.label,
        unit=quantity.unit,
        note="axis does not start at 0" if fitted else "axis starts at 0",
        svg=charts.history(
            points, title=title, worse=quantity.worse, least_change=quantity.least_change
        ),
    )


def _history_table(commits: Sequence[Commit], example: CaseResult) -> Table:
    known = _known(commits, example)
    columns = tuple(
        Column(label=quantity.label, unit=quantity.unit, numeric=True) for quantity in known
    )
    entries = zip(commits, comparable_figures(commits, example), strict=True)
    rows = [
        Row(
            cells=(
                Cell(text=short_commit(commit.revision.commit)),
                Cell(text=moment(commit.revision.committed)),
                Cell(badge=status_badge(figures.case)),
                *(Cell(text=quantity.text(figures)) for quantity in known),
            )
        )
        for commit, figures in entries
    ]
    return Table(
        caption="History, newest first",
        columns=(
            Column(label="Commit", header=True, code=True),
            Column(label="Date"),
            Column(label="Status"),
            *columns,
        ),
        rows=tuple(reversed(rows)),
    )
