"""The verdict as report.md: what failed first, each with its figures and its source line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci.report.untrusted import code, prose
from ci.results.model import Word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ci.results.model import (
        CaseVerdict,
        Change,
        Finding,
        GateResult,
        Revision,
        SubCheck,
        Timing,
    )

_MOST_ROWS = 20
"""Rows of findings or wrong sub-checks that are listed for one case."""


def report(result: GateResult) -> str:
    """Return the gate's result as GitHub Flavored Markdown."""
    cases = result.cases
    failing = [verdict for verdict in cases if verdict.fails]
    sections = [
        f"**{prose(result.sentence)}**",
        *(_failure(verdict) for verdict in failing),
        _short_table("Undecided", _of(cases, Word.INCONCLUSIVE)),
        _short_table("Acknowledged", [v for v in cases if v.acknowledged], _acknowledged),
        _short_table("Improvements", _of(cases, Word.IMPROVEMENT)),
        _short_table("New", _of(cases, Word.NEW)),
        _short_table("Not emulated", _of(cases, Word.NOT_EMULATED)),
        _folded("Unchanged", _of(cases, Word.UNCHANGED)),
        _notes(result.notes),
        _provenance(result),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _of(cases: Iterable[CaseVerdict], word: Word) -> list[CaseVerdict]:
    return [verdict for verdict in cases if verdict.verdict is word]


def _failure(verdict: CaseVerdict) -> str:
    """Return a section with everything known about a case that fails."""
    parts = [
        f"### {verdict.verdict}: {code(verdict.id)}",
        prose(verdict.reason),
        _timing(verdict.timing),
        _changes(verdict.changes),
        _findings(verdict.findings),
        _wrong(verdict.wrong),
    ]
    return "\n\n".join(part for part in parts if part)


def _timing(timing: Timing | None) -> str:
    if timing is None:
        return ""
    interval = f"{_percent(timing.low)} to {_percent(timing.high)}"
    return _table(
        ("time", "base", "head", "95 % interval", "fresh rounds", "setting", "the other says"),
        [
            (
                _percent(timing.ratio),
                _milliseconds(timing.base_s),
                _milliseconds(timing.head_s),
                interval,
                _figure(timing.rounds),
                prose(timing.setting),
                timing.other_setting.value,
            )
        ],
    )


def _changes(changes: Sequence[Change]) -> str:
    return _table(
        ("figure", "base", "head", "counts", "line", "line's base", "line's head"),
        [
            (
                prose(f"{change.metric.replace('_', ' ')} {change.where}"),
                _figure(change.base),
                _figure(change.head),
                "worse" if change.fails else "better" if change.improves else "shown only",
                f"{prose(change.place)} {code(change.place_text)}".strip(),
                _figure(change.place_base) if change.place else "",
                _figure(change.place_head) if change.place else "",
            )
            for change in changes
        ],
    )


def _findings(findings: Sequence[Finding]) -> str:
    return _table(
        ("finding", "line", "count", "example", "sub-check"),
        [
            (
                prose(finding.kind),
                prose(f"{finding.file}:{finding.line}" if finding.line else finding.kernel),
                _figure(finding.count),
                prose(finding.example),
                prose(finding.subcheck),
            )
            for finding in findings[:_MOST_ROWS]
        ],
        left_out=len(findings) - _MOST_ROWS,
    )


def _wrong(subchecks: Sequence[SubCheck]) -> str:
    return _table(
        ("wrong sub-check", "largest error", "bound there", "detail"),
        [
            (
                prose(subcheck.name),
                _error(subcheck.max_error),
                _error(subcheck.bound),
                prose(subcheck.detail),
            )
            for subcheck in subchecks[:_MOST_ROWS]
        ],
        left_out=len(subchecks) - _MOST_ROWS,
    )


def _reason(verdict: CaseVerdict) -> str:
    return verdict.reason


def _acknowledged(verdict: CaseVerdict) -> str:
    return f"{verdict.verdict}: {verdict.reason} (acknowledged: {verdict.acknowledged})"


def _short_table(
    title: str,
    verdicts: Sequence[CaseVerdict],
    text: Callable[[CaseVerdict], str] = _reason,
) -> str:
    rows = [(code(verdict.id), prose(text(verdict))) for verdict in verdicts]
    return f"### {title}\n\n{_table(('case', 'why'), rows)}" if rows else ""


def _folded(title: str, verdicts: Sequence[CaseVerdict]) -> str:
    rows = [(code(verdict.id), prose(verdict.reason)) for verdict in verdicts]
    if not rows:
        return ""
    summary = f"<summary>{title}: {len(rows):,}</summary>"
    return f"<details>{summary}\n\n{_table(('case', 'why'), rows)}\n\n</details>"


def _notes(notes: Sequence[str]) -> str:
    rows = "\n".join(f"- {prose(note)}" for note in notes)
    return f"### Notes\n\n{rows}" if rows else ""


def _provenance(result: GateResult) -> str:
    machine = result.machine
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    rows = [
        ("base", _revision(result.base) if result.base else "none: head was checked alone"),
        ("head", _revision(result.head)),
        ("machine", prose(f"{machine.name} ({machine.device}), {machine.origin}")),
        ("architectures", prose(", ".join(machine.architectures))),
        ("versions", prose(versions)),
        ("started", prose(f"{result.started}, took {result.seconds:.1f} s")),
    ]
    return _table(("", "what was compared"), rows)


def _revision(revision: Revision) -> str:
    subject = f": {prose(revision.subject)}" if revision.subject else ""
    return f"{code(revision.commit)} ({prose(revision.described)}){subject}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, left_out: int = 0) -> str:
    """Return a table of cells that are markdown already; empty if it has no rows."""
    if not rows:
        return ""
    lines = [head, ("---",) * len(head), *rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{table}\n\nand {left_out:,} more, in verdict.json" if left_out > 0 else table


def _figure(value: float) -> str:
    """Return a figure with thousands separators; decimals only where it has some."""
    return f"{value:,.3f}" if value % 1 else f"{int(value):,}"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.2f} %"


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.4g} ms"


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
