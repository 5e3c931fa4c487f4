"""Acknowledgements: checked-in lines that accept a named change once.

A line is ``case pattern | metric | bound | reason``; ``#`` starts a comment line. In the pattern
``*`` stands for any text. The metric is one that can fail, ``time`` or ``missing``. The
bound is how many times worse head may be, or ``*``.
"""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci.gate.codes import Code
from ci.gate.errors import AcknowledgementError
from ci.gate.metrics import FAILING, worsening
from ci.results.model import CaseVerdict, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

MISSING = "missing"
"""In place of a metric: the case or its figures are gone on purpose."""

TIME = "time"
"""In place of a metric: the case takes longer on purpose."""

ANY = "*"

_METRICS = (*FAILING, TIME, MISSING)


@dataclass(frozen=True, kw_only=True, slots=True)
class Acknowledgement:
    """One accepted change."""

    pattern: str
    """Case id, ``*`` for any text."""
    metric: str
    bound: float
    """Largest accepted worsening, a ratio of at least 1; infinite for ``*``."""
    reason: str
    line: int
    """1-based line in its file."""

    def matches(self, case_id: str, metric: str) -> bool:
        """Return whether this line speaks of ``metric`` in the case ``case_id``."""
        pattern = ".*".join(re.escape(part) for part in self.pattern.split(ANY))
        return self.metric == metric and re.fullmatch(pattern, case_id) is not None


def parse(text: str) -> tuple[Acknowledgement, ...]:
    """Return the acknowledgements in ``text``, the content of their file.

    Raises:
        AcknowledgementError: A line is malformed, with its number.
    """
    return tuple(
        _parse_line(line, number)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.strip().startswith("#")
    )


def new_lines(base_text: str, head_text: str) -> str:
    """Return head's text with every line blanked that base has too; line numbers stay."""
    known = {_normalised(line) for line in base_text.splitlines()}
    return "\n".join("" if _normalised(line) in known else line for line in head_text.splitlines())


def acknowledge(
    verdict: CaseVerdict, acknowledgements: Sequence[Acknowledgement]
) -> tuple[CaseVerdict, tuple[Acknowledgement, ...]]:
    """Return the verdict, marked if all that fails in it is covered, and the lines that cover it.

    REGRESSION and MISSING are covered if each failing change is; MISSING asks for the metric
    ``missing`` besides, and a REGRESSION of the times for the metric ``time``. Nothing else is
    ever covered.
    """
    if verdict.verdict not in (Word.REGRESSION, Word.MISSING):
        return verdict, ()
    needed = [(change.metric, worsening(change)) for change in verdict.changes if change.fails]
    if verdict.verdict is Word.MISSING:
        needed.append((MISSING, 1.0))
    elif verdict.code in (Code.SLOWER, Code.OTHER_RUN):
        needed.append((TIME, verdict.timing.ratio if verdict.timing else math.inf))
    covering = [_first(acknowledgements, verdict.id, *metric) for metric in needed]
    used = tuple(dict.fromkeys(line for line in covering if line is not None))
    if None in covering:
        return verdict, used
    reasons = dict.fromkeys(line.reason for line in used)
    return dataclasses.replace(verdict, acknowledged="; ".join(reasons)), used


def _first(
    acknowledgements: Sequence[Acknowledgement], case_id: str, metric: str, worse: float
) -> Acknowledgement | None:
    """Return the first line that covers a ``metric`` that is ``worse`` times worse."""
    return next(
        (
            line
            for line in acknowledgements
            if line.matches(case_id, metric) and worse <= line.bound
        ),
        None,
    )


def _parse_line(text: str, number: int) -> Acknowledgement:
    where = f"acknowledgements, line {number}"
    parts = [part.strip() for part in text.split("|", maxsplit=3)]
    if len(parts) < 4 or not all(parts):  # noqa: PLR2004
        msg = f"{where}: expected 'case pattern | metric | bound | reason', got {text.strip()!r}"
        raise AcknowledgementError(msg)
    pattern, metric, bound, reason = parts
    if metric not in _METRICS:
        msg = f"{where}: expected one of {', '.join(_METRICS)} as metric, got {metric!r}"
        raise AcknowledgementError(msg)
    return Acknowledgement(
        pattern=pattern,
        metric=metric,
        bound=_parse_bound(bound, where),
        reason=reason,
        line=number,
    )


def _parse_bound(text: str, where: str) -> float:
    if text == ANY:
        return math.inf
    if re.fullmatch(r"\d+(\.\d+)?", text) and float(text) >= 1:
        return float(text)
    msg = f"{where}: expected a ratio of at least 1, such as 1.25, or * as bound, got {text!r}"
    raise AcknowledgementError(msg)


def _normalised(line: str) -> str:
    return " ".join(line.split())
