"""Verdicts and results as plain text for a terminal or a log."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ci.report.untrusted import one_line
from ci.results.model import Outcome, Word

if TYPE_CHECKING:
    from ci.results.model import CaseResult, CaseVerdict, GateResult

_VERDICT_WIDTH = max(len(word) for word in Word)
_LEAST_REASON_WIDTH = 24
"""With less room beside the case id than this, reasons go below it."""

_RED, _GREEN, _YELLOW, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"
_COLOURS = {
    Word.REGRESSION: _RED,
    Word.INCORRECT: _RED,
    Word.ERROR: _RED,
    Word.MISSING: _RED,
    Word.INCONCLUSIVE: _YELLOW,
    Word.NOT_EMULATED: _YELLOW,
    Word.IMPROVEMENT: _GREEN,
}
_OUTCOME_COLOURS = {
    Outcome.PASSED: _GREEN,
    Outcome.FAILED: _RED,
    Outcome.UNDECIDED: _YELLOW,
}


def verdict_table(result: GateResult, width: int, *, colour: bool = False) -> str:
    """Return a row a case (verdict, id, reason), notes, counts, and the sentence as last line.

    Args:
        result: The gate's result.
        width: Columns to wrap reasons at (characters); 0: one line a case, however long.
        colour: Whether to mark verdicts with ANSI colours.
    """
    id_width = max((len(one_line(verdict.id)) for verdict in result.cases), default=0)
    rows = [row for v in result.cases for row in _verdict_rows(v, id_width, width, colour=colour)]
    notes = [f"note: {one_line(note)}" for note in result.notes]
    counts = ", ".join(f"{count:,} {word}" for word, count in result.counts.items())
    sentence = one_line(result.sentence)
    if colour:
        sentence = f"{_OUTCOME_COLOURS[result.verdict]}{sentence}{_PLAIN}"
    return "\n".join([*rows, *notes, *([counts] if counts else []), sentence]) + "\n"


def case_line(result: CaseResult) -> str:
    """Return one line for a log: status, id, time spent, and the reason if there is one."""
    reason = f"  {one_line(result.reason)}" if result.reason else ""
    return (
        f"{result.status:{_VERDICT_WIDTH}}  {one_line(result.id)}  {result.seconds:.1f} s{reason}"
    )


def _verdict_rows(verdict: CaseVerdict, id_width: int, width: int, *, colour: bool) -> list[str]:
    word = f"{verdict.verdict:{_VERDICT_WIDTH}}"
    if colour:
        word = f"{_COLOURS.get(verdict.verdict, '')}{word}{_PLAIN}"
    case_id = one_line(verdict.id)
    reason = one_line(verdict.reason)
    if verdict.acknowledged:
        reason += f" (acknowledged: {one_line(verdict.acknowledged)})"
    margin = _VERDICT_WIDTH + 2 + id_width + 2
    if not width:
        return [f"{word}  {case_id:{id_width}}  {reason}"]
    if width - margin >= _LEAST_REASON_WIDTH:
        first, *rest = textwrap.wrap(reason, width - margin) or [""]
        return [f"{word}  {case_id:{id_width}}  {first}", *(" " * margin + line for line in rest)]
    margin = _VERDICT_WIDTH + 2
    lines = textwrap.wrap(reason, max(width - margin, _LEAST_REASON_WIDTH))
    return [f"{word}  {case_id}", *(" " * margin + line for line in lines)]
