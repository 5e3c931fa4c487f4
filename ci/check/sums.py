"""Adds up what the launches of a plan cost, in all and per source line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from ci.devices.protocol import Execution
from ci.results.model import Counters, LineCounters

_NAMES = tuple(field.name for field in fields(Counters))


def summed(executions: Sequence[Execution]) -> Counters | None:
    """Return the sum of the launches' counters; None if the device does not count."""
    counted = [execution.counters for execution in executions if execution.counters]
    return _sum(counted) if len(counted) == len(executions) else None


def summed_lines(executions: Sequence[Execution]) -> tuple[LineCounters, ...]:
    """Return the sum of the launches' counters per source line, in file and line order."""
    found: dict[tuple[str, int], list[LineCounters]] = {}
    for execution in executions:
        for line in execution.lines:
            found.setdefault((line.file, line.line), []).append(line)
    return tuple(
        replace(same[0], counters=_sum([line.counters for line in same]))
        for _, same in sorted(found.items())
    )


def _sum(counted: Sequence[Counters]) -> Counters:
    return Counters(
        **{name: sum(getattr(counters, name) for counters in counted) for name in _NAMES}
    )
