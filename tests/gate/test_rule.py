"""The rule on numbers, against a slow transcription of its text, case by case and look by look."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ci.gate.rule import Series, follow, rejected
from ci.gate.settings import SENSITIVE, STANDARD, Settings
from ci.results.model import Word

NAN = float("nan")


def _series(*families: np.ndarray, usual: float = NAN, ended: bool = False) -> list[Series]:
    return [
        Series(screen=values[:4], fresh=values[4:], usual_variance=usual, ended=ended)
        for values in families
    ]


def _words(rows: np.ndarray, margins: Settings, usual: float = NAN) -> list[Word | None]:
    course = follow(_series(*rows, usual=usual), margins)
    assert course.wanted == ()
    return [Word.UNCHANGED if s.word is Word.IMPROVEMENT else s.word for s in course.standings]


def _screened(rows: np.ndarray, s: Settings, usual: float) -> list[Word | None]:
    words: list[Word | None] = [None] * len(rows)
    variances = [max(row[:4].var(ddof=1), s.least_variance) for row in rows]
    louder = 1.0
    if not math.isnan(usual):
        louder = max(1.0, np.median([v / usual for v in variances]) / (stats.chi2.median(3) / 3))
    for i, row in enumerate(rows):
        df, s2 = 3, variances[i]
        if not math.isnan(usual):
            df, s2 = 15, (12 * usual * louder + 3 * variances[i]) / 15
        if row[:4].mean() + stats.t.ppf(0.975, df) * math.sqrt(s2 / 4) < s.pass_margin:
            words[i] = Word.UNCHANGED
    return words


def _transcribed(rows: np.ndarray, s: Settings, usual: float) -> list[Word | None]:
    """The rule as it is written, without arrays of cases."""
    words: list[Word | None] = _screened(rows, s, usual)
    suspects = [i for i, word in enumerate(words) if word is None]
    p = dict.fromkeys(suspects, 1.0)
    for n in (4, 8, 12, 16, 20):
        still = [i for i in suspects if words[i] is None]
        for i in still:
            fresh = rows[i][4 : 4 + n]
            p[i] = stats.ttest_1samp(fresh, s.fail_margin, alternative="greater").pvalue
        if n >= 8 and suspects:
            adjusted = stats.false_discovery_control(list(p.values()))
            for i, value in zip(suspects, adjusted, strict=True):
                if value <= s.false_alarms / 4:
                    words[i] = words[i] or Word.REGRESSION
        for i in still:
            every = rows[i][: 4 + n]
            upper = every.mean() + stats.t.ppf(0.975, 3 + n) * every.std(ddof=1) / math.sqrt(4 + n)
            if words[i] is None and upper < s.pass_margin:
                words[i] = Word.UNCHANGED
    return words


@pytest.mark.parametrize("margins", [STANDARD, SENSITIVE])
@pytest.mark.parametrize("usual", [NAN, 0.003**2])
def test_the_rule_agrees_with_its_slow_transcription(margins: Settings, usual: float) -> None:
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(25):
        effects = rng.choice([0.0, 0.0, 0.005, 0.0075, 0.01, 0.02], (12, 1))
        rows = effects + rng.normal(0, 1, (12, 24)) * rng.choice([0.001, 0.003, 0.008], (12, 1))
        words = _words(rows, margins, usual)
        assert words == _transcribed(rows, margins, usual)
        seen.update(words)
    assert seen == {Word.UNCHANGED, Word.REGRESSION, None}


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 1e-4, 1e-3, 2e-3, 5e-3, 0.02, 0.5, 1.0]), min_size=1),
    st.sampled_from([1.25e-3, 0.01, 0.05]),
)
def test_the_correction_is_that_of_benjamini_and_hochberg(p: list[float], level: float) -> None:
    adjusted = stats.false_discovery_control(p)
    # Rounding may decide a tie of p · n with level · rank either way.
    clear = {i for i, value in enumerate(adjusted) if abs(value - level) > 1e-12}
    expected = {i for i in clear if adjusted[i] < level}
    assert rejected(dict(enumerate(p)), level) & clear == expected


def test_no_case_is_a_regression_on_fewer_than_eight_fresh_rounds() -> None:
    slow = np.full(24, 0.10)
    assert follow(_series(slow[:8]), STANDARD).wanted == (0,)
    (standing,) = follow(_series(slow), STANDARD).standings
    assert standing.word is Word.REGRESSION
    assert standing.fresh == 8


def test_the_screen_alone_never_makes_a_regression() -> None:
    """The screen picks the cases that happen to look slow, so its rounds must not convict."""
    unlucky = np.concatenate([np.full(4, 0.05), np.zeros(20)])
    jitter = np.random.default_rng(0).normal(0, 1e-4, 24)
    course = follow(_series(unlucky + jitter), STANDARD)
    assert course.suspects == 1
    assert course.standings[0].word is not Word.REGRESSION


def test_the_family_of_the_correction_keeps_the_suspects_that_are_closed() -> None:
    """A borderline case fails alone, and not beside suspects that passed long ago."""
    wobble = 0.001 * np.array([1.0, -1.0] * 4)
    fresh = STANDARD.fail_margin + 0.0019 + wobble
    p = stats.ttest_1samp(fresh, STANDARD.fail_margin, alternative="greater").pvalue
    assert STANDARD.level / 5 < p <= STANDARD.level
    borderline = np.concatenate([np.full(4, 0.02), fresh])
    passes_at_four = np.array([0.0, 0.0, 0.0, 0.02, 0.0, 0.0, 0.0, 0.0])
    alone = follow(_series(borderline), STANDARD)
    beside = follow(_series(borderline, *[passes_at_four] * 9), STANDARD)
    assert alone.standings[0].word is Word.REGRESSION
    assert beside.suspects == 10
    assert [standing.word for standing in beside.standings] == [None] + [Word.UNCHANGED] * 9


def test_everything_waits_for_the_case_that_lacks_rounds() -> None:
    slow = np.full(12, 0.1)
    course = follow(_series(slow, slow[:8]), STANDARD)
    assert course.wanted == (1,)
    assert [standing.word for standing in course.standings] == [None, None]
    assert follow(_series(slow, slow[:3]), STANDARD).wanted == (1,)


def test_a_case_that_has_ended_holds_nobody_up() -> None:
    slow = np.full(12, 0.1)
    course = follow(_series(slow) + _series(slow[:8], ended=True), STANDARD)
    assert course.wanted == ()
    assert [standing.word for standing in course.standings] == [Word.REGRESSION, None]
    course = follow(_series(slow) + _series(slow[:2], ended=True), STANDARD)
    assert course.suspects == 1


def test_a_clear_gain_is_an_improvement_and_a_small_one_is_not() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(0, 0.001, (20, 4))
    rows[0] -= 0.10
    rows[1] -= 0.004
    words = [standing.word for standing in follow(_series(*rows), STANDARD).standings]
    assert words == [Word.IMPROVEMENT] + [Word.UNCHANGED] * 19


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([STANDARD, SENSITIVE]))
def test_more_rounds_never_take_a_word_back(seed: int, margins: Settings) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.choice([0.0, 0.006, 0.02], (5, 1)) + rng.normal(0, 0.004, (5, 24))
    former: dict[int, Word] = {}
    for rounds in range(2, 25, 2):
        for i, standing in enumerate(follow(_series(*rows[:, :rounds]), margins).standings):
            fine = (Word.UNCHANGED, Word.IMPROVEMENT)
            if i in former:
                assert standing.word == former[i] or {standing.word, former[i]} == set(fine)
            if standing.word:
                former[i] = standing.word
