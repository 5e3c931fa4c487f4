"""Student's t on several cases at once, against SciPy case by case."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ci.gate.estimates import detectable, plain, with_ledger
from ci.gate.settings import SENSITIVE, STANDARD

RNG = np.random.default_rng(5)
VALUES = RNG.normal(0.004, 0.003, (6, 8))


def test_p_is_that_of_a_one_sample_t_test_in_either_direction() -> None:
    fast = plain(VALUES, STANDARD)
    for row, values in enumerate(VALUES):
        above = stats.ttest_1samp(values, STANDARD.fail_margin, alternative="greater").pvalue
        below = stats.ttest_1samp(values, 0.001, alternative="less").pvalue
        assert fast.p_above(STANDARD.fail_margin)[row] == pytest.approx(above, rel=1e-9)
        assert fast.p_below(0.001)[row] == pytest.approx(below, rel=1e-9)


def test_the_bounds_are_those_of_a_confidence_interval() -> None:
    fast = plain(VALUES, STANDARD)
    for row, values in enumerate(VALUES):
        slow = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        assert fast.lower(0.025)[row] == pytest.approx(slow.low)
        assert fast.upper(0.025)[row] == pytest.approx(slow.high)


def test_equal_rounds_have_the_least_variance_and_a_finite_p() -> None:
    still = plain(np.zeros((1, 4)), STANDARD)
    assert still.variance == pytest.approx(1e-10)
    assert 0 <= still.p_above(0.0)[0] <= 1


def test_the_ledger_counts_for_twelve_degrees_of_freedom() -> None:
    values = VALUES[:, :4]
    usual = np.full(6, 1.0)
    known = with_ledger(values, usual, STANDARD)
    own = values.var(axis=1, ddof=1)
    assert known.degrees == pytest.approx(15)
    assert known.variance == pytest.approx((12 * 1.0 + 3 * own) / 15)


def test_a_case_without_a_ledger_stands_alone() -> None:
    values = VALUES[:, :4]
    usual = np.array([np.nan, 1.0, 1.0, 1.0, 1.0, 1.0])
    mixed = with_ledger(values, usual, STANDARD)
    assert mixed.degrees[0] == 3
    assert mixed.variance[0] == pytest.approx(values[0].var(ddof=1))


def test_on_a_loud_day_the_ledger_clears_no_easier() -> None:
    values = VALUES[:, :4]
    own = values.var(axis=1, ddof=1)
    usual = np.full(6, 1e-9)
    louder = np.median(own / usual) / (stats.chi2.median(3) / 3)
    loud = with_ledger(values, usual, STANDARD)
    assert louder > 1
    assert loud.variance == pytest.approx((12 * usual * louder + 3 * own) / 15)


def test_the_smallest_detectable_change_follows_margin_family_and_noise() -> None:
    noisy = plain(RNG.normal(0, 0.01, (1, 20)), SENSITIVE)
    spread = math.sqrt(noisy.variance[0] / 20)
    wanted = SENSITIVE.fail_margin + (stats.t.isf(0.00125 / 7, 19) + stats.t.isf(0.05, 19)) * spread
    assert detectable(noisy, 7, SENSITIVE) == pytest.approx(wanted)
