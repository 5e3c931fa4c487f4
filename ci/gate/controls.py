"""Controls: cases whose verdict is known, and what becomes of a gate that gets one wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from ci.gate.codes import Code
from ci.gate.rounds import histories
from ci.gate.settings import Settings
from ci.gate.timing import TimingVerdict
from ci.results.model import Round, Word

_FINE = (Word.UNCHANGED, Word.IMPROVEMENT)


def fault(verdicts: Mapping[str, TimingVerdict], slowed: Collection[str]) -> str:
    """Return what is wrong with a gate by its controls; empty if nothing is.

    Args:
        verdicts: Control → verdict, decided as a family of their own.
        slowed: The positive controls, whose head has a known slowdown; the others run one build in
            both roles.
    """
    for control, verdict in verdicts.items():
        if verdict.timing is None:
            return f"{control} could not be measured: {verdict.reason}"
        if control in slowed and verdict.word in _FINE:
            return f"{control}, slowed on purpose, is {verdict.word}: {verdict.reason}"
        if control not in slowed and verdict.word is Word.REGRESSION:
            return f"{control}, one code on both sides, is slower: {verdict.reason}"
    return ""


def unscreened(
    rounds: Sequence[Round], controls: Sequence[str], settings: Settings
) -> tuple[str, ...]:
    """Return the controls that lack rounds of the screen: nothing is known of the gate by them."""
    found = histories(rounds, controls)
    return tuple(c for c in controls if len(found[c].counting) < settings.screen_rounds)


def told(verdicts: Mapping[str, TimingVerdict]) -> str:
    """Return in one line what became of the controls."""
    return "; ".join(
        f"{control} {_percent(verdict)}is {verdict.word}" for control, verdict in verdicts.items()
    )


def _percent(verdict: TimingVerdict) -> str:
    if verdict.timing is None:
        return ""
    change = 100 * (verdict.timing.ratio - 1)
    return f"({change:+.2f} % in {verdict.timing.rounds} rounds) "


def without_words(verdicts: Mapping[str, TimingVerdict], why: str) -> Mapping[str, TimingVerdict]:
    """Return the verdicts of a gate in which no time counts, because of ``why``."""
    return {
        case: dataclasses.replace(
            verdict,
            word=Word.INCONCLUSIVE,
            reason_code=Code.CONTROLS,
            reason=f"{why}; this case would be {verdict.word}: {verdict.reason}",
        )
        for case, verdict in verdicts.items()
    }
