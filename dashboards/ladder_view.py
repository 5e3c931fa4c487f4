"""The tables of a ladder: every stage at one size. Changes when their columns change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci.results.model import CaseResult
from dashboards.charts import bar, sparkline
from dashboards.formatting import DASH, plural
from dashboards.history import MachineHistory
from dashboards.links import case_path, slug
from dashboards.page_parts import figures_at, points_of, size_text, status_badge
from dashboards.quantities import (
    BANK_CONFLICTS,
    COMPILED,
    COUNTED,
    LOAD_SECTORS,
    SHARED_WAVEFRONTS,
    Figures,
    Quantity,
)
from dashboards.tables import Cell, Column, Group, Row, Table

_SPARK_COMMITS = 24
_WITH_BARS = (LOAD_SECTORS, SHARED_WAVEFRONTS, BANK_CONFLICTS)


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
    """The largest counted size."""
    others: tuple[SizeView, ...]


def ladder_views(history: MachineHistory) -> tuple[LadderView, ...]:
    """Return the ladders of a machine, in the order of its latest record."""
    ladders: dict[str, dict[str, list[CaseResult]]] = {}
    for case in history.latest.values():
        sizes = ladders.setdefault(case.ladder, {})
        sizes.setdefault(size_text(case.size), []).append(case)
    return tuple(_ladder(history, name, sizes) for name, sizes in ladders.items())


def _ladder(history: MachineHistory, name: str, sizes: dict[str, list[CaseResult]]) -> LadderView:
    def weight(cases: Sequence[CaseResult]) -> tuple[bool, int]:
        return (any(case.counters for case in cases), max(case.flops for case in cases))

    ordered = sorted(sizes.items(), key=lambda item: weight(item[1]), reverse=True)
    views = tuple(_size(history, name, title, cases) for title, cases in ordered)
    return LadderView(
        title=name,
        anchor=f"ladder-{slug(history.machine.name)}-{slug(name)}",
        first=views[0],
        others=views[1:],
    )


def _size(
    history: MachineHistory, ladder: str, title: str, examples: Sequence[CaseResult]
) -> SizeView:
    figures = [figures_at(history.shown, case) for case in examples]
    over_time = len(history.commits) > 1
    rows = tuple(
        _row(history, example, entry, figures, over_time=over_time)
        for example, entry in zip(examples, figures, strict=True)
    )
    counted = sum(1 for entry in figures if entry.case and entry.case.counters)
    return SizeView(
        title=title,
        summary=f"{plural(len(rows), 'stage')}, {counted:,} counted",
        table=Table(
            caption=f"Ladder {ladder} at {title}",
            columns=_columns(over_time=over_time),
            groups=_groups(over_time=over_time),
            rows=rows,
        ),
    )


def _columns(*, over_time: bool) -> tuple[Column, ...]:
    figures = tuple(
        Column(label=quantity.label, unit=quantity.unit, numeric=True)
        for quantity in (*COMPILED, *COUNTED)
    )
    spark = (Column(label="Over commits", unit="load sectors"),) if over_time else ()
    return (Column(label="Stage", header=True), Column(label="Status"), *figures, *spark)


def _groups(*, over_time: bool) -> tuple[Group, ...]:
    return (
        Group(label="", span=2),
        Group(label="Compiled kernel", span=len(COMPILED)),
        Group(label="One launch", span=len(COUNTED)),
        *((Group(label="History", span=1),) if over_time else ()),
    )


def _row(
    history: MachineHistory,
    example: CaseResult,
    figures: Figures,
    column: Sequence[Figures],
    *,
    over_time: bool,
) -> Row:
    return Row(
        cells=(
            Cell(text=example.stage, href=case_path(example.id)),
            Cell(badge=status_badge(figures.case)),
            *(Cell(text=quantity.text(figures)) for quantity in COMPILED),
            *(_counted_cell(quantity, figures, column) for quantity in COUNTED),
            *((_spark_cell(history, example),) if over_time else ()),
        )
    )


def _counted_cell(quantity: Quantity, figures: Figures, column: Sequence[Figures]) -> Cell:
    value = quantity.of(figures)
    largest = max((quantity.of(entry) or 0.0 for entry in column), default=0.0)
    if value is None or quantity not in _WITH_BARS or not largest:
        return Cell(text=quantity.text(figures))
    return Cell(text=quantity.text(figures), graphic=bar(value / largest))


def _spark_cell(history: MachineHistory, example: CaseResult) -> Cell:
    points = points_of(history.commits[-_SPARK_COMMITS:], example, LOAD_SECTORS)
    known = [point for point in points if point.value is not None]
    if not known:
        return Cell(text=DASH)
    title = (
        f"{LOAD_SECTORS.label} of {example.stage} over {plural(len(points), 'commit')}: "
        f"{known[0].text} at {known[0].label}, {known[-1].text} at {known[-1].label}"
    )
    return Cell(graphic=sparkline(points, title=title, worse=LOAD_SECTORS.worse))
