"""The words of a timing verdict: one sentence with its figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ci.results.model import Timing, Word

if TYPE_CHECKING:
    from ci.gate.ledger import NoiseEntry
    from ci.gate.settings import Settings

_WIDE = 0.004
"""An interval wider than this (ratio) is written with one decimal of a percent, else with two."""


def shown(word: Word, timing: Timing, settings: Settings) -> str:
    """Return what is shown of a case that has a word."""
    figures = effect(timing)
    if word is Word.UNCHANGED:
        return f"shown to be less than {percent(settings.pass_margin)} slower: {figures}"
    return figures


def noise(timing: Timing, settings: Settings) -> str:
    """Return why a case stays undecided after every round."""
    return (
        f"after {timing.rounds} fresh rounds neither more than {percent(settings.fail_margin)} "
        f"slower nor less than {percent(settings.pass_margin)} slower is shown: {effect(timing)}; "
        f"so noisy a case would have shown {_percent(timing.smallest_detectable, 1)} %"
    )


def cut_short(rounds: int, timing: Timing | None) -> str:
    """Return why a case stays undecided for which the gate ended too early."""
    figures = f": {effect(timing)}" if timing else ""
    plural = "round" if rounds == 1 else "rounds"
    return f"the gate ended after {rounds} {plural} of this case that count{figures}"


def thrown_away(rounds: int, reason: str) -> str:
    """Return why a case has no verdict of which too many rounds were thrown away."""
    return f"{rounds} rounds were thrown away, most for: {reason}"


def quarantine(entry: NoiseEntry) -> str:
    """Return why a case does not decide."""
    return (
        f"in quarantine: INCONCLUSIVE in {entry.undecided} of {entry.gates} gates (lengthen its "
        f"samples, renew its allocations, or make two cases of two modes)"
    )


def timer_remark(estimates: Sequence[float]) -> str:
    """Return a remark if every round gives exactly one and the same figure; else nothing."""
    if len(estimates) > 1 and len(set(estimates)) == 1:
        return "; every round agrees exactly: the samples are too short for the timer"
    return ""


def effect(timing: Timing) -> str:
    """Return the estimate in words: ``slower 1.9 % (interval 1.7 to 2.2 %), 3.21 → 3.27 ms``."""
    decimals = 1 if timing.high - timing.low > _WIDE else 2
    ends = (timing.low, timing.high)
    if timing.ratio < 1:
        ends = (2 - timing.high, 2 - timing.low)
    low, high = (_percent(end, decimals) for end in ends)
    return (
        f"{size(timing.ratio, decimals)} (interval {low} to {high} %), "
        f"{times(timing.base_s, timing.head_s)}"
    )


def size(ratio: float, decimals: int) -> str:
    """Return a ratio in words: ``slower 1.9 %``, ``faster 0.4 %``."""
    if ratio < 1:
        return f"faster {_percent(2 - ratio, decimals)} %"
    return f"slower {_percent(ratio, decimals)} %"


def times(base_s: float, head_s: float) -> str:
    """Return both times in the unit that suits base's: ``3.21 → 3.27 ms``."""
    factor, unit = next(
        (pair for pair in ((1.0, "s"), (1e3, "ms")) if base_s * pair[0] >= 1), (1e6, "µs")
    )
    # Four digits, so that a change of 0.1 % is seen.
    decimals = max(0, 3 - math.floor(math.log10(base_s * factor)))
    return f"{base_s * factor:,.{decimals}f} → {head_s * factor:,.{decimals}f} {unit}"


def percent(margin: float) -> str:
    """Return a margin, the logarithm of a ratio, in words: ``1.25 %``."""
    return f"{100 * math.expm1(margin):.3g} %"


def _percent(ratio: float, decimals: int) -> str:
    """Return how far a ratio is above 1, with a real minus sign."""
    text = f"{100 * (ratio - 1):.{decimals}f}"
    # A minus before zero says nothing.
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")
