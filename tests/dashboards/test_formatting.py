"""How numbers, dates and commits are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards import formatting


@pytest.mark.parametrize(
    ("base", "head", "text"),
    [
        (4, 4, "same"),
        (131_072, 196_608, "+65,536 (+50.0 %)"),
        (36, 34, "\u22122 (\u22125.6 %)"),
        (0, 128, "+128"),
        (0.5, 0.25, "\u22120.250 (\u221250.0 %)"),
    ],
)
def test_a_difference_has_a_sign_and_a_share_of_base(base: float, head: float, text: str) -> None:
    assert formatting.difference(base, head) == text


def test_numbers_have_separators_and_fixed_decimals() -> None:
    assert formatting.whole(17_301_504) == "17,301,504"
    assert formatting.kib(16_640) == "16.25"
    assert formatting.percent(0.125) == "12.5"
    assert formatting.scientific(None) == formatting.DASH
    assert formatting.scientific(3.2e-6) == "3.20e-06"
    assert formatting.duration(143.7) == "2 min 24 s"
    assert formatting.plural(1, "case") == "1 case"


def test_a_date_is_told_in_utc_so_that_it_is_one_day_everywhere() -> None:
    assert formatting.moment("2026-03-01T00:30:00+01:00") == "2026-02-28 23:30 UTC"
    assert formatting.moment("yesterday") == "yesterday"
    assert formatting.moment("") == formatting.DASH


def test_commits_and_edited_trees_have_different_short_names() -> None:
    commit = "0123456789abcdef" * 2
    assert formatting.short_commit(commit) == "0123456"
    assert formatting.short_commit(f"{commit}-dirty-fedcba987654") == "0123456+fedc"
    assert formatting.short_commit("tree-fedcba987654") == "tree-fedcba9"


@given(st.text(st.characters(codec=None)))
def test_legible_text_can_be_written_and_holds_no_control_character(text: str) -> None:
    shown = formatting.legible(text)
    shown.encode()
    assert not set(shown) & set(map(chr, [*range(9), *range(11, 32), *range(0x202A, 0x202F)]))


def test_legible_text_keeps_letters_of_every_script() -> None:
    assert formatting.legible("Größe 大きさ مقاس\n") == "Größe 大きさ مقاس\n"
