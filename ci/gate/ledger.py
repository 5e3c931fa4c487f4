"""The noise ledger: how much the rounds of a case usually differ, from stored gates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ci.gate.rounds import History, histories
from ci.gate.rule import follow
from ci.gate.settings import STANDARD
from ci.results.model import GateRun

_LAST_GATES = 30
"""Gates whose variances are pooled."""
_LEAST_DEGREES = 12
"""Degrees of freedom from which on the pooled variance is used: four gates."""
_QUARANTINE_SHARE = 0.02
_QUARANTINE_GATES = 50
"""Gates below which one accident alone would exceed the share."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseEntry:
    """What past gates on one machine tell about one case."""

    variance: float
    """Of a round's estimate, between the rounds of one gate; pooled over the last gates."""
    degrees_of_freedom: int
    gates: int
    """Gates that timed the case."""
    undecided: int
    """Those of them that had all its rounds, or threw too many away, and reached no verdict."""

    @property
    def usable_variance(self) -> float:
        """Return the variance; NaN if too few gates stand behind it."""
        return self.variance if self.degrees_of_freedom >= _LEAST_DEGREES else math.nan

    @property
    def quarantined(self) -> bool:
        """Return whether the case is INCONCLUSIVE too often to decide a gate."""
        enough = self.gates >= _QUARANTINE_GATES
        return enough and self.undecided > _QUARANTINE_SHARE * self.gates


@dataclass(frozen=True, kw_only=True, slots=True)
class _Share:
    """What one gate adds to the entry of one case."""

    squares: float
    """Sum of squared deviations of the round estimates from their mean."""
    degrees: int
    undecided: bool


def noise_ledger(
    runs: Sequence[GateRun], *, machine: str, method_version: int
) -> Mapping[str, NoiseEntry]:
    """Return case id → noise on one machine with one method.

    The variance is that of the screen's rounds, and of every round where base and head are one
    commit: a constant effect drops out of it, so gates with real changes count too.

    Args:
        runs: Stored gates in any order, without those whose controls failed.
        machine: Name of the machine.
        method_version: Version of the measuring method.

    Raises:
        RoundsError: A stored gate's rounds were not taken in the way the rule needs.
    """
    shares: dict[str, list[_Share]] = {}
    for run in sorted(runs, key=lambda run: (run.started, run.run)):
        if run.machine.name == machine and run.method_version == method_version:
            for case, share in _shares(run).items():
                shares.setdefault(case, []).append(share)
    return {case: _entry(of_case) for case, of_case in shares.items()}


def _shares(run: GateRun) -> dict[str, _Share]:
    """Return case id → what the gate tells of it."""
    cases = list(dict.fromkeys(entry.case for entry in run.rounds))
    found = histories(run.rounds, cases)
    series = [h.series(STANDARD, usual_variance=math.nan, ended=True) for h in found.values()]
    course = follow(series, STANDARD)
    same_code = run.base.commit == run.head.commit
    shares = {}
    for (case, history), standing in zip(found.items(), course.standings, strict=True):
        thrown_away = len(history.invalid) > STANDARD.most_invalid_rounds
        complete = standing.fresh == STANDARD.looks[-1]
        values = _values(history, every=same_code)
        shares[case] = _Share(
            squares=float(((values - values.mean()) ** 2).sum()) if values.size else 0.0,
            degrees=max(values.size - 1, 0),
            undecided=standing.word is None and (complete or thrown_away),
        )
    return shares


def _values(history: History, *, every: bool) -> np.typing.NDArray[np.float64]:
    """Return the round estimates that tell of noise; none if the screen is not complete."""
    screen = STANDARD.screen_rounds
    if len(history.counting) < screen:
        return np.empty(0)
    return np.array(history.estimates if every else history.estimates[:screen])


def _entry(shares: Sequence[_Share]) -> NoiseEntry:
    last = [share for share in shares if share.degrees][-_LAST_GATES:]
    degrees = sum(share.degrees for share in last)
    squares = sum(share.squares for share in last)
    return NoiseEntry(
        variance=max(squares / degrees, STANDARD.least_variance) if degrees else math.nan,
        degrees_of_freedom=degrees,
        gates=len(shares),
        undecided=sum(share.undecided for share in shares),
    )
