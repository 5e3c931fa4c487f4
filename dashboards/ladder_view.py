"""The tables of a ladder: every stage at one size. Changes when their columns change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci.results.model import CaseResult
from dashboards.charts import bar, sparkline
from dashboards.formatting import DASH, plural
from dashboards.history import MachineHistory
from dashboards.links import case_path, roofline_path, slug
from dashboards.page_parts import figures_at, points_of, size_text, status_badge
from dashboards.quantities import (
    BANK_CONFLICTS,
    COMPILED,
    COUNTED,
    LOAD_SECTORS,
    SHARED_WAVEFRONTS,
    TIME,
    TIMED,
    Figures,
    Quantity,
)
from dashboards.tables import Cell, Column, Group, Row, Table
from dashboards.timing import disbelief
from dashboards.words import TOO_FAST

_SPARK_COMMITS = 24
_WITH_BARS = (TIME, LOAD_SECTORS, SHARED_WAVEFRONTS, BANK_CONFLICTS)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Quantities:
    """Neighbouring columns under one heading."""

    label: str
    quantities: tuple[Quantity, ...]


_TIMED = _Quantities(label="One launch, cold", quantities=TIMED)
_COMPILED = _Quantities(label="Compiled kernel", quantities=COMPILED)
_COUNTED = _Quantities(label="One launch", quantities=COUNTED)


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeView:
    """All stages of a ladder at one size."""

    title: str
    summary: str
    table: Table


@dataclass(frozen=True, kw_only=True, slots=True)
class LadderView:
    """One ladder on one machine."""

    title: str
    anchor: str
    first: SizeView
    """The largest size that was timed, else counted."""
    others: tuple[SizeView, ...]
    roofline: str
    """Path of its roofline page; empty where there is none."""


def ladder_views(history: MachineHistory) -> tuple[LadderView, ...]:
    """Return the ladders of a machine, in the order of its latest record."""
    ladders: dict[str, dict[str, list[CaseResult]]] = {}
    for case in history.latest.values():
        sizes = ladders.setdefault(case.ladder, {})
        sizes.setdefault(size_text(case.size), []).append(case)
    return tuple(_ladder(history, name, sizes) for name, sizes in ladders.items())


def _ladder(history: MachineHistory, name: str, sizes: dict[str, list[CaseResult]]) -> LadderView:
    def weight(cases: Sequence[CaseResult]) -> tuple[bool, bool, int]:
        return (
            any(case.cold for case in cases),
            any(case.counters for case in cases),
            max(case.flops for case in cases),
        )

    ordered = sorted(sizes.items(), key=lambda item: weight(item[1]), reverse=True)
    views = tuple(_size(history, name, title, cases) for title, cases in ordered)
    return LadderView(
        title=name,
        anchor=f"ladder-{slug(history.machine.name)}-{slug(name)}",
        first=views[0],
        others=views[1:],
        roofline=roofline_path(history.machine.name, name) if _has_roofline(history, name) else "",
    )


def _has_roofline(history: MachineHistory, ladder: str) -> bool:
    shown = history.shown
    if shown is None or shown.roofs is None:
        return False
    return any(c.ladder == ladder and c.cold and c.flops for c in shown.cases.values())


def _size(
    history: MachineHistory, ladder: str, title: str, examples: Sequence[CaseResult]
) -> SizeView:
    figures = [figures_at(history.shown, case) for case in examples]
    groups = _groups(history, examples)
    rows = tuple(
        _row(history, example, entry, figures, groups)
        for example, entry in zip(examples, figures, strict=True)
    )
    timed = sum(1 for entry in figures if entry.case and entry.case.cold)
    counted = sum(1 for entry in figures if entry.case and entry.case.counters)
    summary = [plural(len(rows), "stage")]
    summary += [f"{timed:,} timed"] if _TIMED in groups else []
    summary += [f"{counted:,} counted"] if _COUNTED in groups else []
    return SizeView(
        title=title,
        summary=", ".join(summary),
        table=Table(
            caption=f"Ladder {ladder} at {title}",
            columns=_columns(groups, over_time=len(history.commits) > 1),
            groups=_headings(groups, over_time=len(history.commits) > 1),
            rows=rows,
        ),
    )


def _groups(history: MachineHistory, examples: Sequence[CaseResult]) -> tuple[_Quantities, ...]:
    """Return the groups of columns: a size that was only timed has no empty counters, and back."""
    ids = {example.id for example in examples}
    cases = [
        case for commit in history.commits for case_id in ids if (case := commit.cases.get(case_id))
    ]
    timed = any(case.cold for case in cases)
    counted = any(case.counters for case in cases)
    times = (_TIMED,) if timed else ()
    counts = (_COUNTED,) if counted or not timed else ()
    return (*times, _COMPILED, *counts)


def _columns(groups: Sequence[_Quantities], *, over_time: bool) -> tuple[Column, ...]:
    figures = tuple(
        Column(label=quantity.label, unit=quantity.unit, numeric=True)
        for group in groups
        for quantity in group.quantities
    )
    charted = _charted(groups)
    spark = (Column(label="Over commits", unit=charted.label.lower()),) if over_time else ()
    return (Column(label="Stage", header=True), Column(label="Status"), *figures, *spark)


def _headings(groups: Sequence[_Quantities], *, over_time: bool) -> tuple[Group, ...]:
    return (
        Group(label="", span=2),
        *(Group(label=group.label, span=len(group.quantities)) for group in groups),
        *((Group(label="History", span=1),) if over_time else ()),
    )


def _row(
    history: MachineHistory,
    example: CaseResult,
    figures: Figures,
    column: Sequence[Figures],
    groups: Sequence[_Quantities],
) -> Row:
    flagged = disbelief(figures.case, figures.roofs)
    spark = (_spark_cell(history, example, _charted(groups)),) if len(history.commits) > 1 else ()
    return Row(
        marked=bool(flagged),
        cells=(
            Cell(text=example.stage, href=case_path(example.id)),
            Cell(badge=TOO_FAST if flagged else status_badge(figures.case)),
            *(
                _cell(quantity, figures, column)
                for group in groups
                for quantity in group.quantities
            ),
            *spark,
        ),
    )


def _charted(groups: Sequence[_Quantities]) -> Quantity:
    return TIME if _TIMED in groups else LOAD_SECTORS


def _cell(quantity: Quantity, figures: Figures, column: Sequence[Figures]) -> Cell:
    value = quantity.of(figures)
    largest = max((quantity.of(entry) or 0.0 for entry in column), default=0.0)
    if value is None or quantity not in _WITH_BARS or not largest:
        return Cell(text=quantity.text(figures))
    return Cell(text=quantity.text(figures), graphic=bar(value / largest))


def _spark_cell(history: MachineHistory, example: CaseResult, quantity: Quantity) -> Cell:
    points = points_of(history.commits[-_SPARK_COMMITS:], example, quantity)
    known = [point for point in points if point.value is not None]
    if not known:
        return Cell(text=DASH)
    title = (
        f"{quantity.label} of {example.stage} over {plural(len(points), 'commit')}: "
        f"{known[0].text} at {known[0].label}, {known[-1].text} at {known[-1].label}"
    )
    return Cell(
        graphic=sparkline(
            points, title=title, worse=quantity.worse, least_change=quantity.least_change
        )
    )
