"""Controls: cases whose verdict is known, and what becomes of a gate that gets one wrong."""

from __future__ import annotations

import dataclasses
from collections import Counter
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


def told(verdicts: Mapping[str, TimingVerdict], slowed: Collection[str]) -> str:
    """Return in one line what became of the controls, equal ones and slowed ones together."""
    kinds = {
        "control": [verdict for control, verdict in verdicts.items() if control not in slowed],
        "slowed control": [verdict for control, verdict in verdicts.items() if control in slowed],
    }
    return "; ".join(_of_kind(kind, found) for kind, found in kinds.items() if found)


def _of_kind(kind: str, verdicts: Sequence[TimingVerdict]) -> str:
    """Return ``5 controls: 5 UNCHANGED (-0.10 to +0.04 %)``."""
    counts = Counter(verdict.word.value for verdict in verdicts)
    words = ", ".join(f"{count} {word}" for word, count in counts.items())
    changes = [100 * (v.timing.ratio - 1) for v in verdicts if v.timing is not None]
    span = f" ({min(changes):+.2f} to {max(changes):+.2f} %)" if changes else ""
    return f"{len(verdicts)} {kind}{'s' * (len(verdicts) != 1)}: {words}{span}"


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
