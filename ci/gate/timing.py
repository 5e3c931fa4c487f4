"""The timing rule on the rounds of a gate: what is decided, and what to measure next."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ci.gate import timing_words as words
from ci.gate.codes import Code
from ci.gate.estimates import Estimates, detectable
from ci.gate.ledger import NoiseEntry
from ci.gate.rounds import History, histories
from ci.gate.rule import Course, Standing, follow
from ci.gate.settings import Settings, other_than
from ci.results.model import Round, Timing, Word

_NO_ENTRY = NoiseEntry(variance=math.nan, degrees_of_freedom=0, gates=0, undecided=0)
_CODES = {
    Word.REGRESSION: Code.SLOWER,
    Word.IMPROVEMENT: Code.FASTER,
    Word.UNCHANGED: Code.NOT_SLOWER,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TimingVerdict:
    """What the times of one case say."""

    word: Word
    """UNCHANGED, IMPROVEMENT, REGRESSION or INCONCLUSIVE."""
    reason_code: Code
    reason: str
    """One sentence for people, with figures."""
    timing: Timing | None
    """None if fewer than two rounds count, or the times are of different runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What all rounds so far say."""

    open: tuple[str, ...]
    """Cases to measure in the next round; empty: every verdict is final."""
    verdicts: Mapping[str, TimingVerdict]
    """Case id → verdict. One that is not final is INCONCLUSIVE, as if the gate ended here."""


def decide(
    rounds: Sequence[Round],
    cases: Sequence[str],
    settings: Settings,
    ledger: Mapping[str, NoiseEntry],
) -> Decision:
    """Return what the rounds of a gate say, and which cases need another round.

    The same rounds always give the same decision, in whatever order they come. Controls are a
    family of their own: decide them by a call of their own.

    Args:
        rounds: Every round so far; those of other cases are left out.
        cases: Ids of all timed cases of the family, each once.
        settings: The margins in force, as long as the gate lasts.
        ledger: Case id → noise in past gates on this machine with this method.

    Raises:
        RoundsError: The rounds were not taken in the way the rule needs.
    """
    found = histories(rounds, cases)
    course = _follow(found, ledger, settings, ended=frozenset())
    wanted = frozenset(cases[index] for index in course.wanted)
    ended = frozenset(
        case
        for case, standing in zip(cases, course.standings, strict=True)
        if standing.word or not wanted
    )
    other = _follow(found, ledger, other_than(settings), ended=ended)
    verdicts = {
        case: _verdict(
            found[case],
            standing,
            course,
            settings,
            other=beside.word or Word.INCONCLUSIVE,
            noise=ledger.get(case, _NO_ENTRY),
        )
        for case, standing, beside in zip(cases, course.standings, other.standings, strict=True)
    }
    return Decision(open=tuple(case for case in cases if case in wanted), verdicts=verdicts)


def _follow(
    found: Mapping[str, History],
    ledger: Mapping[str, NoiseEntry],
    settings: Settings,
    *,
    ended: frozenset[str],
) -> Course:
    """Follow the rule; the cases ``ended`` get no more rounds."""
    return follow(
        [
            history.series(
                settings,
                usual_variance=ledger.get(case, _NO_ENTRY).usable_variance,
                ended=case in ended,
            )
            for case, history in found.items()
        ],
        settings,
    )


def _verdict(
    history: History,
    standing: Standing,
    course: Course,
    settings: Settings,
    *,
    other: Word,
    noise: NoiseEntry,
) -> TimingVerdict:
    timing = _timing(history, standing, course, settings, other)
    remark = words.timer_remark(history.estimates)
    if standing.word and timing:
        reason = words.shown(standing.word, timing, settings) + remark
        return TimingVerdict(
            word=standing.word, reason_code=_CODES[standing.word], reason=reason, timing=timing
        )
    code, reason = _why_undecided(history, standing, timing, settings)
    if noise.quarantined:
        code, reason = Code.QUARANTINED, f"{words.quarantine(noise)}; {reason}"
    return TimingVerdict(
        word=Word.INCONCLUSIVE, reason_code=code, reason=reason + remark, timing=timing
    )


def _why_undecided(
    history: History, standing: Standing, timing: Timing | None, settings: Settings
) -> tuple[Code, str]:
    if len(history.invalid) > settings.most_invalid_rounds:
        return Code.ROUNDS_INVALID, words.thrown_away(len(history.invalid), history.usual_fault)
    if timing and standing.fresh == settings.looks[-1]:
        return Code.NOISE, words.noise(timing, settings)
    return Code.CUT_SHORT, words.cut_short(len(history.counting), timing)


def _timing(
    history: History, standing: Standing, course: Course, settings: Settings, other: Word
) -> Timing | None:
    """Return the figures behind a standing; None if it rests on fewer than two rounds."""
    effect = standing.effect
    if effect is None:
        return None
    used = _used(history, standing, effect, settings)
    pairs = [pair for entry in used for pair in entry.pairs]
    least = 0.0 if standing.word else math.exp(detectable(effect, course.suspects, settings))
    return Timing(
        setting=settings.name,
        ratio=math.exp(effect.mean.item()),
        low=math.exp(effect.lower(settings.misses).item()),
        high=math.exp(effect.upper(settings.misses).item()),
        rounds=effect.rounds,
        base_s=statistics.median(pair.base_s for pair in pairs),
        head_s=statistics.median(pair.head_s for pair in pairs),
        smallest_detectable=least,
        other_setting=other,
    )


def _used(
    history: History, standing: Standing, effect: Estimates, settings: Settings
) -> Sequence[Round]:
    """Return the rounds that ``effect`` rests on: fresh ones alone, or all of them."""
    end = min(settings.screen_rounds + standing.fresh, len(history.counting))
    return history.counting[end - effect.rounds : end]
