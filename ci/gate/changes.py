"""Every exact figure that differs between the two sides of a case. Compared with ``==``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci.gate.lines import most_changed
from ci.gate.metrics import COUNTERS, STATIC, counter, static_figure, worsening
from ci.results.model import CaseResult, Change, Counters, StageResult

if TYPE_CHECKING:
    from ci.gate.lines import LineChange
    from ci.gate.metrics import Metric
    from ci.gate.sides import Side
    from ci.results.model import StaticFigures


PLAN = "plan"
"""Where a change of the sum over the correctness plan's launches is."""


def changes(base: Side, head: Side) -> tuple[Change, ...]:
    """Return the figures that both sides have and that differ, worst first.

    Figures that fail come first, then improvements, then those only shown; within each the
    case's own before the plan's, and the largest ratio first.
    """
    found = (
        *_counter_changes(base.case, head.case, where=""),
        *_plan_changes(base.stage, head.stage),
        *_static_changes(base, head),
    )
    return tuple(
        sorted(
            found,
            key=lambda change: (
                not change.fails,
                not change.improves,
                change.where == PLAN,
                -worsening(change),
            ),
        )
    )


def missing_figures(base: Side, head: Side) -> tuple[str, ...]:
    """Return what only base has figures of: counters, or architecture and variant."""
    counters = _missing_counters(base.case.counters, head.case.counters)
    kept = _static(head)
    return (*counters, *(where for where in _static(base) if where not in kept))


def _missing_counters(base: Counters | None, head: Counters | None) -> tuple[str, ...]:
    """Return ``counters`` if head has none, else the names of those it does not count."""
    if base is None:
        return ()
    if head is None:
        return ("counters",)
    return tuple(
        metric.name
        for metric in COUNTERS
        if counter(base, metric) is not None and counter(head, metric) is None
    )


def comparable(base: Side, head: Side) -> bool:
    """Return whether the two sides have any figure in common."""
    counted = base.case.counters is not None and head.case.counters is not None
    return counted or bool(_static(base).keys() & _static(head).keys())


def identical(base: Side, head: Side) -> bool:
    """Return whether both stages were compiled, to the same cubin on every architecture."""
    if base.stage is None or head.stage is None:
        return False
    return bool(head.stage.identity) and base.stage.identity == head.stage.identity


def _counter_changes(
    base: CaseResult | StageResult, head: CaseResult | StageResult, *, where: str
) -> list[Change]:
    found: list[Change] = []
    if base.counters is None or head.counters is None:
        return found
    for metric in COUNTERS:
        before = counter(base.counters, metric)
        after = counter(head.counters, metric)
        # Not counted is not zero: a record of an older flopwatch says nothing of newer counters.
        if before is not None and after is not None and before != after:
            line = most_changed(metric, base.lines, head.lines)
            found.append(_change(metric, where, before, after, line))
    return found


def _plan_changes(base: StageResult | None, head: StageResult | None) -> list[Change]:
    """Return the changes of the plan's sum, if both sides ran the same launches."""
    if base is None or head is None:
        return []
    if [check.name for check in base.subchecks] != [check.name for check in head.subchecks]:
        return []
    return _counter_changes(base, head, where=PLAN)


def _static_changes(base: Side, head: Side) -> list[Change]:
    found: list[Change] = []
    former = _static(base)
    for where, figures in _static(head).items():
        if where not in former:
            continue
        for metric in STATIC:
            before = static_figure(former[where], metric)
            after = static_figure(figures, metric)
            if before != after:
                found.append(_change(metric, where, before, after, None))
    return found


def _static(side: Side) -> dict[str, StaticFigures]:
    """Return ``architecture variant`` → static figures of the side's stage."""
    figures = side.stage.static if side.stage else ()
    return {f"{figure.arch} {figure.variant}".strip(): figure for figure in figures}


def _change(
    metric: Metric, where: str, base: float, head: float, line: LineChange | None
) -> Change:
    worse = head < base if metric.fewer_is_worse else head > base
    return Change(
        metric=metric.name,
        where=where,
        base=base,
        head=head,
        fails=metric.can_fail and worse,
        improves=metric.can_fail and not worse,
        place=line.place if line else "",
        place_text=line.line.text.strip() if line else "",
        place_base=line.base if line else 0,
        place_head=line.head if line else 0,
    )
