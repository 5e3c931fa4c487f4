"""Rounds become round estimates: one trimmed mean each, both orders of starting equally often."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci.gate.errors import RoundsError
from ci.gate.rounds import estimate, histories
from ci.gate.settings import STANDARD
from ci.results.model import Pair, Round
from tests.timed import one_round, rounds

CASE = "sgemm/01_naive[M=64,N=64,K=64]"


def _numbers(*entries: Round) -> list[int]:
    return [entry.number for entry in histories(entries, [CASE])[CASE].counting]


def test_a_round_is_the_trimmed_mean_of_its_pairs() -> None:
    logs = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 5.0, -9.0]
    entry = one_round(CASE, 0, *logs)
    assert estimate(entry) == pytest.approx(stats.trim_mean(logs, 0.2))
    assert estimate(entry) == pytest.approx(0.045)


def test_rounds_that_were_thrown_away_do_not_count() -> None:
    thrown = one_round(CASE, 1, 9.0, invalid="hardware thermal slowdown in force")
    history = histories([one_round(CASE, 0, 0.0), thrown, one_round(CASE, 2, 0.0)], [CASE])[CASE]
    assert history.invalid == (thrown,)
    assert history.usual_fault == "hardware thermal slowdown in force"


def test_a_round_waits_for_one_of_the_other_order() -> None:
    entries = [
        dataclasses.replace(entry, invalid="worker died" if entry.number in (1, 3) else "")
        for entry in rounds(CASE, [0.0] * 8)
    ]
    assert _numbers(*entries[:5]) == []
    assert _numbers(*entries[:6]) == [0, 5]
    assert _numbers(*entries[:8]) == [0, 5, 2, 7]


def test_every_even_number_of_rounds_holds_both_orders_equally_often() -> None:
    rng = random.Random(4)  # noqa: S311
    entries = [
        dataclasses.replace(entry, invalid=rng.choice(["", "", "busy"]))
        for entry in rounds(CASE, [0.0] * 40)
    ]
    counting = histories(entries, [CASE])[CASE].counting
    assert len(counting) > 10
    for end in range(0, len(counting), 2):
        assert sum(entry.base_started_first for entry in counting[:end]) == end // 2


def test_the_screen_takes_the_first_rounds_and_the_rest_is_fresh() -> None:
    history = histories(rounds(CASE, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), [CASE])[CASE]
    series = history.series(STANDARD, usual_variance=math.nan, ended=False)
    assert series.screen == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert series.fresh == pytest.approx([0.5, 0.6])
    assert not series.ended


@given(st.permutations(rounds(CASE, [0.01 * n for n in range(8)])))
def test_the_order_in_which_rounds_come_does_not_matter(shuffled: list[Round]) -> None:
    assert _numbers(*shuffled) == list(range(8))


def test_rounds_of_other_cases_are_left_out() -> None:
    assert list(histories([*rounds(CASE, [0.0]), *rounds("other", [0.0])], [CASE])) == [CASE]


@pytest.mark.parametrize("number", [1, 3])
def test_a_side_that_starts_first_twice_is_refused(number: int) -> None:
    entries = rounds(CASE, [0.0, 0.0])
    entries[1] = dataclasses.replace(entries[1], number=number, base_started_first=True)
    with pytest.raises(RoundsError, match="starts first to alternate"):
        histories(entries, [CASE])


def test_two_rounds_of_one_number_are_refused() -> None:
    entries = rounds(CASE, [0.0, 0.0])
    with pytest.raises(RoundsError, match="expected one round 1, got two"):
        histories([*entries, entries[1]], [CASE])


@pytest.mark.parametrize("orders", [[], [True], [True, True], [False, True, False]])
def test_pairs_of_one_order_are_refused(orders: list[bool]) -> None:
    pairs = tuple(Pair(base_s=1e-3, head_s=1e-3, base_first=first) for first in orders)
    entry = dataclasses.replace(one_round(CASE, 0, 0.0), pairs=pairs)
    with pytest.raises(RoundsError, match="as many pairs with base first as with head first"):
        histories([entry], [CASE])


@pytest.mark.parametrize("seconds", [0.0, -1e-6, math.nan, math.inf])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    """Elapsed times of 0 happen, and no ratio of them is a number."""
    good = Pair(base_s=1e-3, head_s=1e-3, base_first=True)
    bad = Pair(base_s=1e-3, head_s=seconds, base_first=False)
    entry = dataclasses.replace(one_round(CASE, 0, 0.0), pairs=(good, bad))
    with pytest.raises(RoundsError, match="expected a positive time"):
        histories([entry], [CASE])
