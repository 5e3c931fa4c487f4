"""Covering arrays: every pair occurs, and a missing one is noticed."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from ci.check.pairwise import covering_rows, missing_pairs

LEVELS = {"M": 5, "N": 5, "K": 5, "A": 2, "B": 2, "lda": 3, "alpha": 3, "beta": 3}
MASKING = frozenset({("alpha", 1)})

level_counts = st.lists(st.integers(1, 5), min_size=1, max_size=7).map(
    lambda counts: {f"f{i}": count for i, count in enumerate(counts)}
)


def slow_missing(levels: dict[str, int], rows: tuple[dict[str, int], ...]) -> int:
    """Count absent pairs by looking at every row for every pair."""
    return sum(
        not any(row[one] == i and row[other] == j for row in rows)
        for one, other in itertools.combinations(levels, 2)
        for i in range(levels[one])
        for j in range(levels[other])
    )


@given(level_counts)
def test_every_pair_of_levels_occurs(levels: dict[str, int]) -> None:
    rows = covering_rows(levels)
    assert slow_missing(levels, rows) == 0
    assert missing_pairs(levels, rows) == ()


def test_a_pair_planted_as_missing_is_noticed() -> None:
    rows = covering_rows(LEVELS)
    without = tuple(row for row in rows if (row["M"], row["alpha"]) != (4, 2))
    assert (("M", 4), ("alpha", 2)) in missing_pairs(LEVELS, without)


def test_the_rows_are_the_same_every_time() -> None:
    assert covering_rows(LEVELS, MASKING) == covering_rows(LEVELS, MASKING)


def test_the_rows_are_few() -> None:
    assert len(covering_rows(LEVELS)) <= 32


@given(level_counts, st.data())
def test_pairs_that_a_masking_level_hides_occur_in_a_row_without_it(
    levels: dict[str, int], data: st.DataObject
) -> None:
    factor = data.draw(st.sampled_from(sorted(levels)))
    masking = frozenset({(factor, 0)} if levels[factor] > 1 else ())
    rows = covering_rows(levels, masking)
    assert missing_pairs(levels, rows, masking) == ()
    showing = tuple(row for row in rows if row[factor] != 0)
    others = {name: count for name, count in levels.items() if name != factor}
    if masking:
        assert slow_missing(others, showing) == 0


def test_a_pair_that_occurs_only_under_a_masking_level_counts_as_missing() -> None:
    levels = {"M": 2, "alpha": 2}
    rows = [{"M": m, "K": 0, "alpha": 0} for m in (0, 1)] + [{"M": 0, "K": 0, "alpha": 1}]
    assert missing_pairs(levels | {"K": 1}, rows) == ((("M", 1), ("alpha", 1)),)
    masked = missing_pairs({"M": 2, "K": 1, "alpha": 2}, rows, frozenset({("alpha", 0)}))
    assert masked == ((("M", 1), ("K", 0)), (("M", 1), ("alpha", 1)))


def test_one_factor_or_none_needs_no_pairs() -> None:
    assert covering_rows({"M": 3}) == ()
    assert covering_rows({}) == ()
