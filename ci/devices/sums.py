"""Adds up what several launches did: findings, counters, counters of each source line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from ci.devices.protocol import Execution
from ci.results.model import Counters, Finding, LineCounters

_NAMES = tuple(field.name for field in fields(Counters))


def merged(executions: Sequence[Execution]) -> Execution:
    """Return several launches as one, with the findings in their order."""
    if len(executions) == 1:
        return executions[0]
    return Execution(
        findings=merged_findings(f for execution in executions for f in execution.findings),
        counters=summed(executions),
        lines=summed_lines(executions),
        output=tuple(line for execution in executions for line in execution.output),
        counting="; ".join(dict.fromkeys(e.counting for e in executions if e.counting)),
    )


def merged_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return one finding a kind and source line, the first seen, with the counts added."""
    seen: dict[tuple[str, str, int], Finding] = {}
    for finding in findings:
        key = (finding.kind, finding.file, finding.line)
        first = seen.get(key)
        seen[key] = replace(first, count=first.count + finding.count) if first else finding
    return tuple(seen.values())


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
    sums: dict[str, Any] = {
        name: _total([getattr(counters, name) for counters in counted]) for name in _NAMES
    }
    return Counters(**sums)


def _total(values: Sequence[int | None]) -> int | None:
    """Return the sum of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
