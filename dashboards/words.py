"""The words, symbols and tones of statuses and verdicts. Changes when one of them is renamed."""

from __future__ import annotations

from collections.abc import Mapping

from ci.results.model import Outcome, Status, Word
from dashboards.formatting import DASH
from dashboards.tables import Badge

VERDICTS: Mapping[Word, Badge] = {
    Word.INCORRECT: Badge(word="Incorrect", glyph="✕", tone="wrong"),
    Word.ERROR: Badge(word="Error", glyph="!", tone="wrong"),
    Word.REGRESSION: Badge(word="Regression", glyph="▲", tone="worse"),
    Word.MISSING: Badge(word="Missing", glyph="○", tone="missing"),
    Word.INCONCLUSIVE: Badge(word="Inconclusive", glyph="?", tone="unsure"),
    Word.NOT_EMULATED: Badge(word="Not emulated", glyph=DASH, tone="unsure"),
    Word.IMPROVEMENT: Badge(word="Improvement", glyph="▼", tone="better"),
    Word.NEW: Badge(word="New", glyph="+", tone="calm"),
    Word.UNCHANGED: Badge(word="Unchanged", glyph="=", tone="calm"),
}
"""Every verdict, in the order a reader should meet them."""

STATUSES: Mapping[Status, Badge] = {
    Status.PASSED: Badge(word="Passed", glyph="✓", tone="calm"),
    Status.INCORRECT: Badge(word="Incorrect", glyph="✕", tone="wrong"),
    Status.COMPILE_ERROR: Badge(word="Compile error", glyph="!", tone="wrong"),
    Status.LAUNCH_ERROR: Badge(word="Launch error", glyph="!", tone="wrong"),
    Status.TIMEOUT: Badge(word="Timeout", glyph="!", tone="wrong"),
    Status.SKIPPED: Badge(word="Skipped", glyph=DASH, tone="missing"),
    Status.NOT_EMULATED: Badge(word="Not emulated", glyph=DASH, tone="unsure"),
}

ABSENT = Badge(word="Absent", glyph="○", tone="missing")
"""The case is not in the record at all."""

OUTCOMES: Mapping[Outcome, Badge] = {
    Outcome.PASSED: Badge(word="Gate passed", glyph="✓", tone="better"),
    Outcome.FAILED: Badge(word="Gate failed", glyph="✕", tone="wrong"),
    Outcome.UNDECIDED: Badge(word="Gate undecided", glyph="?", tone="unsure"),
}

FAILED_CHECK = Badge(word="Failed", glyph="✕", tone="wrong")
PASSED_CHECK = Badge(word="Passed", glyph="✓", tone="calm")
TOO_FAST = Badge(word="Too fast", glyph="!", tone="wrong")
"""A time that the machine's roofs forbid: the declared work must be wrong."""

BASELINE = "baseline"
"""The vendor routine that a ladder is measured beside: cuBLAS, PyTorch or a copy."""
