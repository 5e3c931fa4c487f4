"""What fails, what is only shown: every exact figure of a case and what a change in it means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ci.results.model import Change, Counters, StaticFigures


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """One figure of Counters or StaticFigures."""

    name: str
    """Field name; ``instructions`` is the sum over all opcodes."""
    can_fail: bool
    fewer_is_worse: bool = False


COUNTERS = (
    Metric(name="local_bytes", can_fail=True),
    Metric(name="global_load_sectors", can_fail=True),
    Metric(name="global_store_sectors", can_fail=True),
    Metric(name="shared_load_conflicts", can_fail=True),
    Metric(name="shared_store_conflicts", can_fail=True),
    Metric(name="shared_load_wavefronts", can_fail=True),
    Metric(name="shared_store_wavefronts", can_fail=True),
    Metric(name="global_load_requests", can_fail=False),
    Metric(name="global_load_elements", can_fail=False),
    Metric(name="global_store_requests", can_fail=False),
    Metric(name="atomic_sectors", can_fail=True),
    Metric(name="atomic_requests", can_fail=False),
    Metric(name="shared_atomic_requests", can_fail=False),
    Metric(name="local_load_requests", can_fail=False),
    Metric(name="local_store_requests", can_fail=False),
    Metric(name="global_load_ideal_sectors", can_fail=False),
    Metric(name="global_store_ideal_sectors", can_fail=False),
)
"""Counters, in the order in which equally large changes are reported."""

STATIC = (
    Metric(name="spill_store_bytes", can_fail=True),
    Metric(name="spill_load_bytes", can_fail=True),
    Metric(name="stack_bytes", can_fail=True),
    Metric(name="resident_blocks", can_fail=True, fewer_is_worse=True),
    Metric(name="registers", can_fail=False),
    Metric(name="instructions", can_fail=False),
    Metric(name="code_bytes", can_fail=False),
    Metric(name="occupancy", can_fail=False, fewer_is_worse=True),
    Metric(name="static_shared_bytes", can_fail=False),
    Metric(name="dynamic_shared_bytes", can_fail=False),
    Metric(name="threads_per_block", can_fail=False),
)
"""Static figures, in the order in which equally large changes are reported."""

STATIC_NAMES = frozenset(metric.name for metric in STATIC)

FAILING = tuple(metric.name for metric in (*COUNTERS, *STATIC) if metric.can_fail)
"""Names of the metrics that can fail a gate."""

_FEWER_IS_WORSE = frozenset(metric.name for metric in STATIC if metric.fewer_is_worse)


def counter(counters: Counters, metric: Metric) -> int | None:
    """Return a counter by its metric; None if it was not counted."""
    value: int | None = getattr(counters, metric.name)
    return value


def static_figure(figures: StaticFigures, metric: Metric) -> float:
    """Return a static figure by its metric."""
    if metric.name == "instructions":
        return sum(figures.instructions.values())
    value: float = getattr(figures, metric.name)
    return value


def worsening(change: Change) -> float:
    """Return how many times worse head is: head/base, or base/head where fewer is worse.

    Above 1 is worse; infinite if the better side has nothing where the worse one has something.
    """
    better, worse = change.base, change.head
    if change.metric in _FEWER_IS_WORSE:
        better, worse = worse, better
    return worse / better if better else math.inf
