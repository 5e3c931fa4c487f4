"""``-k`` expressions select case ids as pytest selects tests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.errors import UsageError
from ci.select import selector

NAIVE = "sgemm/01_naive[M=256,N=256,K=256]"
TILED = "sgemm/03_shared_tile_16[M=127,N=65,K=33]"


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("", {NAIVE, TILED}),
        ("   ", {NAIVE, TILED}),
        ("naive", {NAIVE}),
        ("NAIVE", {NAIVE}),
        ("not naive", {TILED}),
        ("sgemm and 256", {NAIVE}),
        ("naive or tile", {NAIVE, TILED}),
        ("naive and not M=256", set()),
        ("not (naive or tile)", set()),
        ("not naive and not tile or sgemm/01_naive[M=256,N=256,K=256]", {NAIVE}),
    ],
)
def test_an_expression_selects_by_substring_and_logic(expression: str, chosen: set[str]) -> None:
    selects = selector(expression)
    assert {case for case in (NAIVE, TILED) if selects(case)} == chosen


@pytest.mark.parametrize("broken", ["and", "naive and", "(naive", "naive)", "not", "a b", "a;b"])
def test_a_broken_expression_is_named_with_what_is_wrong(broken: str) -> None:
    with pytest.raises(UsageError, match=r"^-k '"):
        selector(broken)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_but_never_crashes(text: str) -> None:
    try:
        selects = selector(text)
    except UsageError:
        return
    assert selects(NAIVE) in (True, False)
