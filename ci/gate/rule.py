"""The timing rule on numbers: screen every case, then confirm the suspects on fresh rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ci.gate.estimates import Estimates, plain, with_ledger
from ci.results.model import Word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ci.gate.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """The round estimates of one case, natural logarithms of head's time over base's."""

    screen: NDArray[np.float64]
    """The first ones, at most as many as the screen asks for."""
    fresh: NDArray[np.float64]
    """Those after them; only they may show that the case is slower."""
    usual_variance: float = float("nan")
    """From the noise ledger; NaN where there is none."""
    ended: bool = False
    """No more rounds will come."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Where a case stands."""

    word: Word | None
    """UNCHANGED, IMPROVEMENT or REGRESSION; None: nothing is shown."""
    fresh: int
    """Fresh rounds seen when the word fell, or up to the last look."""
    effect: Estimates | None
    """Of this case alone; None if fewer than two rounds count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """What all rounds so far say."""

    standings: tuple[Standing, ...]
    """One a series, in their order."""
    wanted: tuple[int, ...]
    """Series that the next look waits for; empty: nothing more will be decided."""
    suspects: int
    """Cases the screen did not clear: the family of the correction."""


def follow(family: Sequence[Series], settings: Settings) -> Course:
    """Return what the rule says of a family of cases.

    More rounds never take a word back; they may only make IMPROVEMENT of UNCHANGED. Where fewer
    rounds are there than the next look needs, it waits, save for series that have ended: these
    stay undecided.
    """
    screened = [i for i, s in enumerate(family) if len(s.screen) >= settings.screen_rounds]
    wanted = [i for i in range(len(family)) if i not in set(screened) and not family[i].ended]
    if wanted or not screened:
        unseen = tuple(_undecided(series, 0, settings) for series in family)
        return Course(standings=unseen, wanted=tuple(wanted), suspects=0)
    screen = with_ledger(
        np.stack([family[i].screen for i in screened]),
        np.array([family[i].usual_variance for i in screened]),
        settings,
    )
    cleared = screen.upper(settings.misses) < settings.pass_margin
    suspects = [i for i, clear in zip(screened, cleared, strict=True) if not clear]
    standings_of = {
        i: Standing(word=Word.UNCHANGED, fresh=0, effect=screen.of(row))
        for row, i in enumerate(screened)
        if cleared[row]
    }
    confirmed, wanted = _confirm(family, suspects, settings)
    standings_of |= confirmed
    standings = [
        standings_of.get(i) or _undecided(series, 0, settings) for i, series in enumerate(family)
    ]
    return Course(
        standings=_with_improvements(standings, settings),
        wanted=tuple(wanted),
        suspects=len(suspects),
    )


def _confirm(
    family: Sequence[Series], suspects: Sequence[int], settings: Settings
) -> tuple[dict[int, Standing], list[int]]:
    """Return suspect → standing, and the suspects whose rounds the next look waits for."""
    p = dict.fromkeys(suspects, 1.0)
    fallen: dict[int, Standing] = {}
    seen = dict.fromkeys(suspects, 0)
    still = list(suspects)
    wanted: list[int] = []
    for look in settings.looks:
        ready = [i for i in still if len(family[i].fresh) >= look]
        wanted = [i for i in still if i not in set(ready) and not family[i].ended]
        if wanted or not ready:
            break
        fresh = plain(np.stack([family[i].fresh[:look] for i in ready]), settings)
        p.update(zip(ready, fresh.p_above(settings.fail_margin).tolist(), strict=True))
        seen.update(dict.fromkeys(ready, look))
        if look in settings.fail_looks:
            slower = rejected(p, settings.level)
            fallen |= {
                i: Standing(word=Word.REGRESSION, fresh=look, effect=fresh.of(row))
                for row, i in enumerate(ready)
                if i in slower
            }
        if look in settings.pass_looks:
            every = plain(np.stack([_every(family[i], look) for i in ready]), settings)
            fine = every.upper(settings.misses) < settings.pass_margin
            fallen |= {
                i: Standing(word=Word.UNCHANGED, fresh=look, effect=every.of(row))
                for row, i in enumerate(ready)
                if fine[row] and i not in fallen
            }
        still = [i for i in ready if i not in fallen]
    undecided = {i: _undecided(family[i], seen[i], settings) for i in suspects if i not in fallen}
    return fallen | undecided, wanted


def rejected(p: Mapping[int, float], level: float) -> set[int]:
    """Return the keys whose p is small enough, by the step-up rule of Benjamini and Hochberg.

    Source: Benjamini and Hochberg 1995, equation 1. ``scipy.stats.false_discovery_control`` says
    the same, but its module takes a second to import, which every command would pay.
    """
    ranked = sorted(p, key=lambda key: p[key])
    small = (rank for rank, key in enumerate(ranked, 1) if p[key] * len(p) <= level * rank)
    return set(ranked[: max(small, default=0)])


def _with_improvements(standings: Sequence[Standing], settings: Settings) -> tuple[Standing, ...]:
    """Return the standings, with IMPROVEMENT for UNCHANGED where the turned test shows it.

    The family are all cases, as every one of them is looked at.
    """
    p = {
        i: standing.effect.p_below(-settings.fail_margin).item()
        if standing.word is Word.UNCHANGED and standing.effect
        else 1.0
        for i, standing in enumerate(standings)
    }
    faster = rejected(p, settings.level)
    return tuple(
        Standing(word=Word.IMPROVEMENT, fresh=standing.fresh, effect=standing.effect)
        if i in faster
        else standing
        for i, standing in enumerate(standings)
    )


def _every(series: Series, fresh: int) -> NDArray[np.float64]:
    return np.concatenate([series.screen, series.fresh[:fresh]])


def _undecided(series: Series, fresh: int, settings: Settings) -> Standing:
    """Return the standing of a case without a word; fresh rounds alone are free of selection."""
    values = series.fresh[:fresh] if fresh else series.screen
    effect = plain(values[np.newaxis], settings) if values.size > 1 else None
    return Standing(word=None, fresh=fresh, effect=effect)
