"""The words of a verdict: one sentence a case, with figures and the source line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci.results.model import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ci.gate.sides import Side
    from ci.results.model import Change, Finding, SubCheck


def first_line(text: str) -> str:
    """Return the first line of ``text`` that is not blank."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def plural(count: int, noun: str) -> str:
    """Return count and noun: ``1 case``, ``1,024 cases``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def figure(value: float) -> str:
    """Return a figure with thousands separators; decimals only where it has some."""
    return f"{value:,.3f}" if value % 1 else f"{int(value):,}"


def change_sentence(change: Change) -> str:
    """Return metric, both values, their ratio, and the line that changed most with its own."""
    where = f"{change.where}: " if change.where else ""
    metric = change.metric.replace("_", " ")
    text = f"{where}{metric} {figure(change.base)} → {figure(change.head)}{_ratio(change)}"
    if change.place:
        line = f"{change.place} ({change.place_base:,} → {change.place_head:,})"
        # A source line ends in a semicolon of its own, and so do the parts of a sentence.
        text += f", most at {line}: {change.place_text.rstrip(';')}"
    return text


def changes_sentence(changes: Sequence[Change], how: str) -> str:
    """Return the first change in words, and how many more there are and ``how`` they are."""
    others = len(changes) - 1
    tail = f"; {plural(others, 'more figure')} {how}" if others else ""
    return change_sentence(changes[0]) + tail


def cause(side: Side) -> str:
    """Return why a side is not PASSED.

    The first finding, else the first wrong sub-check, with how many more there are; for a side
    that has neither, the first line of its reason.
    """
    if side.status is Status.INCORRECT and side.findings:
        others = _more(len(side.findings) - 1, "finding")
        wrong = _more(len(side.wrong), "wrong sub-check")
        return f"{_finding(side.findings[0])}{others}{wrong}"
    if side.status is Status.INCORRECT and side.wrong:
        return f"{_wrong(side.wrong[0])}{_more(len(side.wrong) - 1, 'wrong sub-check')}"
    stage_error = side.stage.error if side.stage else ""
    return first_line(side.case.reason) or first_line(stage_error)


def _ratio(change: Change) -> str:
    if not change.base or not change.head:
        return ""
    ratio = change.head / change.base
    # Two decimals would show a change of 0.1 % as 1.00.
    decimals = 2 if abs(ratio - 1) > 0.1 else 4  # noqa: PLR2004
    return f" ({ratio:,.{decimals}f} times)"


def _finding(finding: Finding) -> str:
    place = f"{finding.file}:{finding.line}" if finding.line else finding.kernel
    example = f": {first_line(finding.example)}" if finding.example else ""
    return f"{finding.kind} at {place}, seen {plural(finding.count, 'time')}{example}"


def _wrong(subcheck: SubCheck) -> str:
    detail = first_line(subcheck.detail) or "wrong"
    return f"{subcheck.name}: {detail}"


def _more(count: int, noun: str) -> str:
    return f"; {plural(count, f'more {noun}')}" if count else ""
