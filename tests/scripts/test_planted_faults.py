"""The planted faults: each edit applies, the page tells of all, and a sample is rerun."""

from __future__ import annotations

import json

import pytest

from scripts.planted.catalogue import CATALOGUE, Planted
from scripts.planted_faults import DATA, PAGE, SUITE, Outcome, evaluate, page

OUTCOMES = [Outcome(**each) for each in json.loads(DATA.read_text(encoding="utf-8"))]
SAMPLE = ("transpose: no barrier between load and store", "int4: nibbles from the top",
          "gemv: rows of any pitch as vectors")  # fmt: skip


@pytest.mark.parametrize("planted", CATALOGUE, ids=lambda planted: planted.name)
def test_an_edit_changes_one_place(planted: Planted) -> None:
    text = (SUITE / (planted.file or planted.source)).read_text(encoding="utf-8")
    assert text.count(planted.old) == 1


def test_every_fault_is_told_of_and_the_page_is_made_from_that() -> None:
    assert [outcome.name for outcome in OUTCOMES] == [planted.name for planted in CATALOGUE]
    assert PAGE.read_text(encoding="utf-8") == page(OUTCOMES)


@pytest.mark.parametrize("name", SAMPLE)
def test_what_is_told_of_a_fault_is_what_the_check_says(name: str) -> None:
    planted = next(each for each in CATALOGUE if each.name == name)
    told = next(outcome for outcome in OUTCOMES if outcome.name == name)
    now = evaluate(planted)
    assert (now.caught, now.right_line, now.named) == (told.caught, told.right_line, told.named)
    assert now.caught
