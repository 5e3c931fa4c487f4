"""The figures of a case as tables: counters, source lines, cubins. Changes when they do."""

from __future__ import annotations

from ci.results.model import CaseResult, CaseVerdict, Counters, LineCounters, StageResult
from dashboards.charts import bar
from dashboards.formatting import DASH, difference, percent, plural, short_commit
from dashboards.history import Commit
from dashboards.page_parts import place
from dashboards.quantities import (
    COUNTER_FIELDS,
    LOADS_PER_FLOP,
    SECTORS_PER_REQUEST,
    STATIC_FIELDS,
    TRAFFIC,
    counter,
    figures_of,
    static_figure,
)
from dashboards.tables import Cell, Column, Row, Table

_TOP_OPCODES = 12
_DERIVED = (SECTORS_PER_REQUEST, LOADS_PER_FLOP, TRAFFIC)
_LINE_COUNTERS = (
    "global_load_sectors", "global_store_sectors", "shared_load_wavefronts",
    "shared_load_conflicts", "shared_store_wavefronts", "shared_store_conflicts", "local_bytes",
    "atomic_sectors", "atomic_requests",
)  # fmt: skip
"""Counters that cost time on a line; requests and elements follow from the source."""
_LINE_BARS = ("global_load_sectors", "shared_load_wavefronts")
"""Counters whose cost on a line is drawn as a bar beside the number."""


def counters_table(base: Commit | None, shown: Commit | None, case_id: str) -> Table | None:
    """Return what one launch counts, beside base's count where there is one.

    None if the shown commit has no counters of the case.
    """
    head_case = shown.cases.get(case_id) if shown else None
    if shown is None or head_case is None or head_case.counters is None:
        return None
    base_case = base.cases.get(case_id) if base and base is not shown else None
    before = base_case.counters if base_case else None
    columns = [Column(label=_commit_label("Head" if before else "Commit", shown), numeric=True)]
    if base and before:
        columns.insert(0, Column(label=_commit_label("Base", base), numeric=True))
        columns.append(Column(label="Difference", numeric=True))
    rows = [_counter_row(name, before, head_case.counters) for name in COUNTER_FIELDS]
    rows += _derived_rows(base_case if before else None, head_case)
    return Table(
        caption="Counters of one launch",
        columns=(Column(label="Counter", header=True), *columns),
        rows=tuple(rows),
        shape="compact",
    )


def _commit_label(side: str, commit: Commit) -> str:
    return f"{side} {short_commit(commit.revision.commit)}"


def _counter_row(name: str, before: Counters | None, after: Counters) -> Row:
    field = COUNTER_FIELDS[name]
    head = counter(after, name)
    label = Cell(text=field.label, unit=field.unit)
    shown = Cell(text=DASH if head is None else field.show(head))
    if before is None:
        return Row(cells=(label, shown))
    base = counter(before, name)
    earlier = Cell(text=DASH if base is None else field.show(base))
    change = Cell(text=DASH)
    if base is not None and head is not None:
        change = _difference(base, head)
    return Row(cells=(label, earlier, shown, change))


def _derived_rows(before: CaseResult | None, after: CaseResult) -> list[Row]:
    rows = []
    for quantity in _DERIVED:
        label = Cell(text=quantity.label, unit=quantity.unit)
        figures = figures_of(after, None)
        head, value = Cell(text=quantity.text(figures)), quantity.of(figures)
        if before is None:
            rows.append(Row(cells=(label, head)))
            continue
        earlier = figures_of(before, None)
        base_value = quantity.of(earlier)
        change = Cell(text=DASH)
        if value is not None and base_value is not None:
            change = _difference(base_value, value)
        rows.append(Row(cells=(label, Cell(text=quantity.text(earlier)), head, change)))
    return rows


def _difference(base: float, head: float) -> Cell:
    return Cell(text=difference(base, head), tone="quiet" if base == head else "")


def lines_table(case: CaseResult | None, verdict: CaseVerdict | None) -> Table | None:
    """Return the counters of every source line that has any, in the order of the source.

    The lines that the gate names as the place of a change are marked.
    """
    lines = case.lines if case else ()
    if not lines:
        return None
    named = {change.place for change in verdict.changes} if verdict else set()
    used = [name for name in _LINE_COUNTERS if any(counter(line.counters, name) for line in lines)]
    files = dict.fromkeys(line.file for line in lines)
    largest = {name: max(counter(line.counters, name) or 0 for line in lines) for name in used}
    columns = tuple(
        Column(label=COUNTER_FIELDS[name].label, unit=COUNTER_FIELDS[name].unit, numeric=True)
        for name in used
    )
    rows = tuple(
        Row(
            marked=place(line.file, line.line) in named,
            cells=(
                Cell(text=place(line.file if len(files) > 1 else "", line.line)),
                Cell(text=line.text),
                *(_line_cell(line, name, largest[name]) for name in used),
            ),
        )
        for line in lines
    )
    return Table(
        caption="Counters per source line",
        columns=(
            Column(label="Place" if len(files) > 1 else "Line", header=True, code=True),
            Column(label="Source" if len(files) > 1 else next(iter(files)), code=True, wide=True),
            *columns,
        ),
        rows=rows,
    )


def _line_cell(line: LineCounters, name: str, largest: int) -> Cell:
    value = counter(line.counters, name) or 0
    return Cell(
        text=COUNTER_FIELDS[name].show(value),
        tone="" if value else "quiet",
        graphic=bar(value / largest) if name in _LINE_BARS and value else "",
    )


def static_table(stage: StageResult | None) -> Table | None:
    """Return what the cubins tell: one row per architecture and variant."""
    if stage is None or not stage.static:
        return None
    numeric = tuple(
        Column(label=field.label, unit=field.unit, numeric=True) for field in STATIC_FIELDS.values()
    )
    rows = tuple(
        Row(
            cells=(
                Cell(text=f"{figures.arch} {figures.variant}".strip()),
                *(
                    Cell(text=field.show(static_figure(figures, name)))
                    for name, field in STATIC_FIELDS.items()
                ),
                Cell(text=", ".join(figures.limited_by) or DASH),
            )
        )
        for figures in stage.static
    )
    return Table(
        caption="Static figures",
        columns=(
            Column(label="Architecture, variant", header=True),
            *numeric,
            Column(label="Blocks limited by"),
        ),
        rows=rows,
    )


def mix_table(stage: StageResult | None) -> Table | None:
    """Return the commonest instructions of the reference figures, loops counted once."""
    static = figures_of(None, stage).static
    if static is None or not static.instructions:
        return None
    total = sum(static.instructions.values())
    ranked = sorted(static.instructions.items(), key=lambda item: (-item[1], item[0]))
    rest = ranked[_TOP_OPCODES:]
    rows = [_mix_row(opcode, count, total, ranked[0][1]) for opcode, count in ranked[:_TOP_OPCODES]]
    if rest:
        others = sum(count for _, count in rest)
        rows.append(_mix_row(plural(len(rest), "other opcode"), others, total, ranked[0][1]))
    return Table(
        caption=f"Instruction mix of {static.arch} {static.variant}".strip(),
        columns=(
            Column(label="Opcode", header=True, code=True),
            Column(label="In the code", unit="instructions", numeric=True),
            Column(label="Share", unit="%", numeric=True),
        ),
        rows=tuple(rows),
        shape="compact",
    )


def _mix_row(opcode: str, count: int, total: int, largest: int) -> Row:
    share = Cell(text=percent(count / total), graphic=bar(count / largest))
    return Row(cells=(Cell(text=opcode), Cell(text=f"{count:,}"), share))
