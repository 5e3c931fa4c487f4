"""The roofline of a ladder on one machine. Changes when it says more."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ci.results.model import CaseResult
from dashboards import timing
from dashboards.formatting import (
    DASH,
    percent,
    plural,
    short_commit,
    significant,
    whole,
    with_prefix,
)
from dashboards.history import Commit, MachineHistory
from dashboards.links import case_path
from dashboards.logical import Counted, counted_launch
from dashboards.page_parts import Fact, revision_fact, size_text
from dashboards.roofline_chart import Mark, roofline
from dashboards.roofs import Roofs
from dashboards.tables import Cell, Column, Row, Table
from dashboards.words import BASELINE, TOO_FAST

_GIGA = 1e9
_PERF = "perf"
_FLOP_DIGITS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class RooflineSize:
    """One size under the roofs."""

    title: str
    anchor: str
    answer: str
    """Which roof binds, in a sentence."""
    alerts: tuple[str, ...]
    facts: tuple[Fact, ...]
    svg: str
    table: Table
    counted: tuple[str, ...]
    """Where logical traffic was counted, or why there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RooflinePage:
    """A ladder under the roofs of one machine."""

    machine: str
    ladder: str
    facts: tuple[Fact, ...]
    sizes: tuple[RooflineSize, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Stage:
    case: CaseResult
    counted: Counted | None

    @property
    def logical_bytes(self) -> int | None:
        return None if self.counted is None else self.counted.bytes_at(self.case.flops)


def rooflines(machine: MachineHistory, history: Sequence[MachineHistory]) -> list[RooflinePage]:
    """Return a page for each ladder that the machine has roofs and times for.

    Args:
        machine: The machine whose times are shown.
        history: Every machine, because only some of them count what a launch loads.
    """
    shown = machine.shown
    if shown is None or shown.roofs is None:
        return []
    # Work without flops, such as a copy, has no place under a compute roof.
    timed = dict.fromkeys(c.ladder for c in shown.cases.values() if c.cold and c.flops)
    return [_page(machine, shown, shown.roofs, ladder, history) for ladder in timed]


def _page(
    machine: MachineHistory,
    shown: Commit,
    roofs: Roofs,
    ladder: str,
    history: Sequence[MachineHistory],
) -> RooflinePage:
    sizes: dict[str, list[_Stage]] = {}
    for case in shown.cases.values():
        if case.ladder == ladder and (case.role == _PERF or case.cold) and case.compulsory_bytes:
            counted = counted_launch(history, shown, case)
            sizes.setdefault(size_text(case.size), []).append(_Stage(case=case, counted=counted))
    return RooflinePage(
        machine=machine.machine.name,
        ladder=ladder,
        facts=(
            revision_fact("Commit", shown.revision, "no record"),
            Fact(
                label="Compute roof",
                text=with_prefix(roofs.flop_per_s, "FLOP/s"),
                note="FP32 multiply-adds on all cores at the highest clock, no tensor cores",
            ),
            Fact(
                label="Memory roof",
                text=with_prefix(roofs.bytes_per_s, "B/s"),
                note="measured by a copy, bytes read and written",
            ),
            Fact(
                label="Ridge",
                text=f"{significant(roofs.ridge)} FLOP per byte",
                note="below it memory binds, above it compute",
            ),
        ),
        sizes=tuple(_size(title, stages, roofs) for title, stages in sizes.items()),
    )


def _size(title: str, stages: Sequence[_Stage], roofs: Roofs) -> RooflineSize:
    case = stages[0].case
    return RooflineSize(
        title=title,
        anchor="-".join(f"{axis}{extent}" for axis, extent in case.size.items()) or "size",
        answer=_answer(case, roofs),
        alerts=tuple(told for each in stages if (told := timing.disbelief(each.case, roofs))),
        facts=_size_facts(case, roofs),
        svg=roofline(
            _marks(stages), roofs, title=f"Roofline of {case.ladder} at {title}; table below"
        ),
        table=_table(title, stages, roofs),
        counted=_counted_where(stages),
    )


def _answer(case: CaseResult, roofs: Roofs) -> str:
    intensity = case.flops / case.compulsory_bytes
    roof = roofs.bound_by(intensity)
    if roof == "memory":
        return (
            "Bound by memory: even if every operand crossed device memory only once, "
            "moving it would take longer than computing."
        )
    return (
        "Bound by compute if reuse is perfect, that is if every operand crosses device memory "
        "once. A stage that loads more must be served by caches, or memory binds it."
    )


def _size_facts(case: CaseResult, roofs: Roofs) -> tuple[Fact, ...]:
    intensity = case.flops / case.compulsory_bytes
    compute_ms = timing.MS_PER_S * case.flops / roofs.flop_per_s
    memory_ms = timing.MS_PER_S * case.compulsory_bytes / roofs.bytes_per_s
    return (
        Fact(
            label="Fixed work",
            text=with_prefix(case.flops, "FLOP", _FLOP_DIGITS),
            note=f"{whole(case.flops)} FLOP, declared by the ladder",
        ),
        Fact(
            label="Least traffic",
            text=with_prefix(case.compulsory_bytes, "B"),
            note=f"{whole(case.compulsory_bytes)} bytes: every operand crosses memory once",
        ),
        Fact(
            label="Intensity at least traffic",
            text=f"{significant(intensity)} FLOP per byte",
            note=f"ridge at {significant(roofs.ridge)}",
        ),
        Fact(
            label="Least time (SOL)",
            text=f"{significant(max(compute_ms, memory_ms))} ms",
            note=f"compute {significant(compute_ms)} ms, memory {significant(memory_ms)} ms",
        ),
        Fact(label="Binding roof", text=roofs.bound_by(intensity), note="at the least traffic"),
    )


def _marks(stages: Sequence[_Stage]) -> list[Mark]:
    marks = []
    for stage in stages:
        case, logical = stage.case, stage.logical_bytes
        speed = timing.speed(case, case.cold)
        if speed is not None:
            marks.append(
                Mark(
                    label=case.stage,
                    flop_per_s=speed,
                    least=case.flops / case.compulsory_bytes,
                    logical=case.flops / logical if logical else None,
                )
            )
    case = stages[0].case
    baseline_s = _baseline_s(stages)
    if baseline_s is not None:
        marks.append(
            Mark(
                label=BASELINE,
                flop_per_s=case.flops / baseline_s,
                least=case.flops / case.compulsory_bytes,
                logical=None,
                baseline=True,
            )
        )
    return marks


def _baseline_s(stages: Sequence[_Stage]) -> float | None:
    """Return the middle of the medians that were taken beside the stages (s)."""
    medians = [median for each in stages if (median := timing.median_s(each.case.baseline))]
    return statistics.median(medians) if medians else None


def _table(title: str, stages: Sequence[_Stage], roofs: Roofs) -> Table:
    rows = [_stage_row(stage, roofs) for stage in stages]
    baseline_s = _baseline_s(stages)
    if baseline_s is not None:
        measured = sum(1 for each in stages if each.case.baseline)
        note = f"median of {plural(measured, 'measurement')}"
        name = Cell(text=BASELINE, note=note)
        speeds = _speed_cells(stages[0].case, baseline_s, roofs)
        rows.append(Row(cells=(name, *speeds, *(Cell(text=DASH),) * 4)))
    return Table(
        caption=f"Stages under the roofs at {title}",
        columns=(
            Column(label="Stage", header=True),
            Column(label="Time", unit="ms (median)", numeric=True),
            Column(label="Speed", unit="TFLOP/s", numeric=True),
            Column(label="Of FP32 peak", unit="%", numeric=True),
            Column(label="Of the roofline", unit="% of SOL", numeric=True),
            Column(label="Logical traffic", unit="GB loaded", numeric=True),
            Column(label="Over least", unit="\u00d7", numeric=True),
            Column(label="Logical intensity", unit="FLOP per byte", numeric=True),
            Column(label="Without caches bound by"),
        ),
        rows=tuple(rows),
    )


def _stage_row(stage: _Stage, roofs: Roofs) -> Row:
    case, logical = stage.case, stage.logical_bytes
    flagged = bool(timing.disbelief(case, roofs))
    traffic = [Cell(text=DASH)] * 4
    if logical:
        intensity = case.flops / logical
        traffic = [
            Cell(text=significant(logical / _GIGA)),
            Cell(text=significant(logical / case.compulsory_bytes)),
            Cell(text=significant(intensity)),
            Cell(text=roofs.bound_by(intensity)),
        ]
    name = Cell(
        text=case.stage,
        href=f"../{case_path(case.id)}",
        note=f"{TOO_FAST.glyph} {TOO_FAST.word}" if flagged else "",
    )
    return Row(
        marked=flagged,
        cells=(name, *_speed_cells(case, timing.median_s(case.cold), roofs), *traffic),
    )


def _speed_cells(case: CaseResult, time_s: float | None, roofs: Roofs) -> tuple[Cell, ...]:
    if time_s is None:
        return (Cell(text=DASH),) * 4
    speed = case.flops / time_s
    sol = roofs.least_s(case.flops, case.compulsory_bytes) / time_s
    return (
        Cell(text=significant(timing.MS_PER_S * time_s)),
        Cell(text=significant(speed / timing.FLOP_PER_TFLOP)),
        Cell(text=percent(speed / roofs.flop_per_s)),
        Cell(text=percent(sol)),
    )


def _counted_where(stages: Sequence[_Stage]) -> tuple[str, ...]:
    sources = {
        f"machine {each.counted.machine}, commit {short_commit(each.counted.commit)}, "
        f"at {size_text(each.counted.case.size)}"
        for each in stages
        if each.counted
    }
    uncounted = [each.case.stage for each in stages if each.counted is None]
    told = []
    if sources:
        told.append(
            "Logical traffic: the elements that the threads of a stage load from global memory, "
            "4 bytes each, whether a cache serves them or not. Counted in one launch of the same "
            f"source ({'; '.join(sorted(sources))}) and scaled by the flops of this size."
        )
    if uncounted:
        told.append(
            f"No logical traffic of {', '.join(uncounted)}: no record here counts a launch of "
            "this source (flopwatch measure on the simulator makes one)."
        )
    return tuple(told)
