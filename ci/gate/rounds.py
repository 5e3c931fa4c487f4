"""From the rounds of a gate to one series of round estimates a case."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ci.gate.errors import RoundsError
from ci.gate.rule import Series
from ci.gate.settings import Settings
from ci.results.model import Round

_TRIM = 0.2
"""Share of a round's pairs that is cut at each end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """The rounds of one case so far."""

    counting: tuple[Round, ...]
    """Rounds that count, taken alternately from the two orders of starting, so that any even
    number of them holds both orders equally often."""
    estimates: tuple[float, ...]
    """Their round estimates."""
    invalid: tuple[Round, ...]
    """Rounds that were thrown away."""

    @property
    def usual_fault(self) -> str:
        """Return the commonest reason for throwing a round away; empty if there is none."""
        reasons = Counter(entry.invalid for entry in self.invalid)
        return reasons.most_common(1)[0][0] if reasons else ""

    def series(self, settings: Settings, *, usual_variance: float, ended: bool) -> Series:
        """Return the round estimates, split into those of the screen and the fresh ones."""
        values = np.array(self.estimates)
        screen = settings.screen_rounds
        return Series(
            screen=values[:screen],
            fresh=values[screen:],
            usual_variance=usual_variance,
            ended=ended or len(self.invalid) > settings.most_invalid_rounds,
        )


def estimate(entry: Round) -> float:
    """Return the round's one number: the 20 %-trimmed mean of log(head/base) over its pairs."""
    logs = sorted(math.log(pair.head_s / pair.base_s) for pair in entry.pairs)
    cut = int(_TRIM * len(logs))
    return statistics.fmean(logs[cut : len(logs) - cut])


def histories(rounds: Sequence[Round], cases: Sequence[str]) -> Mapping[str, History]:
    """Return case id → its rounds; rounds of cases not asked for are left out.

    Raises:
        RoundsError: A case has two rounds of one number, the side that starts first does not
            alternate from round to round, a round's pairs do not hold both orders equally
            often, or a sample is no positive time.
    """
    asked = set(cases)
    ordered = sorted((r for r in rounds if r.case in asked), key=lambda entry: entry.number)
    _require_alternation(ordered)
    of_case: dict[str, dict[int, Round]] = {case: {} for case in cases}
    for entry in ordered:
        if entry.number in of_case[entry.case]:
            msg = (
                f"{entry.case}: expected one round {entry.number}, got two "
                f"(number the rounds of a gate on from 0)"
            )
            raise RoundsError(msg)
        of_case[entry.case][entry.number] = entry
        if not entry.invalid:
            _require_pairs(entry)
    return {case: _history(list(numbered.values())) for case, numbered in of_case.items()}


def _history(entries: Sequence[Round]) -> History:
    valid = [entry for entry in entries if not entry.invalid]
    base_first = [entry for entry in valid if entry.base_started_first]
    head_first = [entry for entry in valid if not entry.base_started_first]
    # Which of an order's rounds are used depends on their numbers only, never on their times.
    counting = tuple(chain.from_iterable(zip(base_first, head_first, strict=False)))
    return History(
        counting=counting,
        estimates=tuple(estimate(entry) for entry in counting),
        invalid=tuple(entry for entry in entries if entry.invalid),
    )


def _require_alternation(ordered: Sequence[Round]) -> None:
    """Refuse rounds of one parity that started in different orders, or all rounds in one."""
    for entry in ordered:
        first = ordered[0]
        same_parity = (entry.number - first.number) % 2 == 0
        if (entry.base_started_first == first.base_started_first) != same_parity:
            side = "base" if entry.base_started_first else "head"
            msg = (
                f"{entry.case}, round {entry.number}: expected the side that starts first to "
                f"alternate from round to round, got {side} again (the second process keeps a "
                f"placement of its own, which only alternation cancels)"
            )
            raise RoundsError(msg)


def _require_pairs(entry: Round) -> None:
    where = f"{entry.case}, round {entry.number}"
    first = sum(pair.base_first for pair in entry.pairs)
    if not entry.pairs or 2 * first != len(entry.pairs):
        msg = (
            f"{where}: expected as many pairs with base first as with head first, got {first} of "
            f"{len(entry.pairs)} with base first (drift cancels only if the orders alternate)"
        )
        raise RoundsError(msg)
    for pair in entry.pairs:
        for side, seconds in (("base", pair.base_s), ("head", pair.head_s)):
            if not 0 < seconds < math.inf:
                msg = (
                    f"{where}: expected a positive time, got {seconds} s at {side} (the sample "
                    f"is too short for the timer: put more launches into it)"
                )
                raise RoundsError(msg)
