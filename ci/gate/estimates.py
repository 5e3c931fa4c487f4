"""Student's t on the round estimates of several cases at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ci.gate.settings import Settings

_MISSED = 0.05
"""Share of gates that may miss what is called detectable."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimates:
    """Mean effects of cases that have equally many rounds; one entry a case in each array."""

    rounds: int
    mean: NDArray[np.float64]
    """Natural logarithm of head's time over base's."""
    variance: NDArray[np.float64]
    """Of one round's estimate."""
    degrees: NDArray[np.float64]
    """Degrees of freedom of ``variance``."""

    def of(self, row: int) -> Estimates:
        """Return the estimates of one case alone."""
        one = slice(row, row + 1)
        return Estimates(
            rounds=self.rounds,
            mean=self.mean[one],
            variance=self.variance[one],
            degrees=self.degrees[one],
        )

    def upper(self, tail: float) -> NDArray[np.float64]:
        """Return what the effect exceeds with probability ``tail`` at most."""
        return self.mean + self._reach(tail)

    def lower(self, tail: float) -> NDArray[np.float64]:
        """Return what the effect stays below with probability ``tail`` at most."""
        return self.mean - self._reach(tail)

    def p_above(self, margin: float) -> NDArray[np.float64]:
        """Return the one-sided p of the hypothesis that the effect is ``margin`` or less."""
        return np.asarray(special.stdtr(self.degrees, (margin - self.mean) / self._error()))

    def p_below(self, margin: float) -> NDArray[np.float64]:
        """Return the one-sided p of the hypothesis that the effect is ``margin`` or more."""
        return np.asarray(special.stdtr(self.degrees, (self.mean - margin) / self._error()))

    def _error(self) -> NDArray[np.float64]:
        return np.sqrt(self.variance / self.rounds)

    def _reach(self, tail: float) -> NDArray[np.float64]:
        return np.asarray(special.stdtrit(self.degrees, 1 - tail) * self._error())


def plain(values: NDArray[np.float64], settings: Settings) -> Estimates:
    """Return the estimates from rounds alone.

    Args:
        values: Round estimates, shape (cases, rounds), at least two rounds.
        settings: Gives the floor under the variance.
    """
    cases, rounds = values.shape
    return Estimates(
        rounds=rounds,
        mean=values.mean(axis=1),
        variance=np.maximum(values.var(axis=1, ddof=1), settings.least_variance),
        degrees=np.full(cases, rounds - 1.0),
    )


def with_ledger(
    values: NDArray[np.float64], usual: NDArray[np.float64], settings: Settings
) -> Estimates:
    """Return the estimates from rounds and from how much the rounds of a case usually differ.

    On a loud day the ledger alone would clear too easily, so the usual variances are raised by
    the factor by which today's exceed them in the median.

    Args:
        values: Round estimates, shape (cases, 4).
        usual: Variance a case from the noise ledger, shape (cases,); NaN where there is none.
        settings: Gives the ledger's weight and the floor under the variance.
    """
    own = plain(values, settings)
    known = np.isfinite(usual)
    weight = np.where(known, settings.ledger_weight, 0)
    prior = np.where(known, usual, 0.0) * _loudness(
        own.variance[known] / usual[known], own.rounds - 1
    )
    degrees = weight + own.degrees
    return Estimates(
        rounds=own.rounds,
        mean=own.mean,
        variance=(weight * prior + own.degrees * own.variance) / degrees,
        degrees=degrees,
    )


def _loudness(ratios: NDArray[np.float64], degrees: int) -> float:
    """Return how much louder than usual today is, 1 or more.

    Args:
        ratios: Today's variance over the usual one, per case.
        degrees: Degrees of freedom of today's variances.
    """
    normal = special.chdtri(degrees, 0.5) / degrees
    return max(1.0, float(np.median(ratios) / normal)) if ratios.size else 1.0


def detectable(effect: Estimates, suspects: int, settings: Settings) -> float:
    """Return the effect that a case as noisy as this one shows in 19 of 20 gates.

    Args:
        effect: The estimates of one case.
        suspects: Size of the family of the correction.
        settings: Gives margin, level and the number of rounds of the last look.
    """
    rounds = settings.looks[-1]
    tails = np.array([settings.level / max(suspects, 1), _MISSED])
    reach = special.stdtrit(rounds - 1, 1 - tails).sum()
    return settings.fail_margin + float(reach) * math.sqrt(effect.variance.item() / rounds)
