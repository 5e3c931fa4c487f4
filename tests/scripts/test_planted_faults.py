"""The planted faults: each edit applies, the page tells of all, and a sample is rerun."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from scripts.planted.catalogue import CATALOGUE, Planted
from scripts.planted.reasons import REASONS
from scripts.planted_faults import (
    ALL,
    DATA,
    PAGE,
    SUITE,
    Outcome,
    evaluate,
    not_as_expected,
    page,
)
from scripts.suite_ladders import ROOT

OUTCOMES = [Outcome(**each) for each in json.loads(DATA.read_text(encoding="utf-8"))]
SAMPLE = (
    "transpose: no barrier between load and store",
    "int4: nibbles from the top",
    "gemv: rows of any pitch as vectors",
    "smoothing: nobody waits for the copies",
    "last block: no fence between a block's sum and its ticket",
    "tree: the upper half reaches one too far",
    "named barriers: the consumer waits for the other buffer",
    "fragments: lanes 8 to 15 give ldmatrix the rows of lanes 0 to 7",
    "partition: the positive ones come backwards",
)


@pytest.mark.parametrize("planted", CATALOGUE, ids=lambda planted: planted.name)
def test_an_edit_changes_one_place(planted: Planted) -> None:
    text = (SUITE / (planted.file or planted.source)).read_text(encoding="utf-8")
    assert text.count(planted.old) == 1


def test_every_fault_is_told_of_and_the_page_is_made_from_that() -> None:
    assert [outcome.name for outcome in OUTCOMES] == [planted.name for planted in ALL]
    assert PAGE.read_text(encoding="utf-8") == page(OUTCOMES)
    caught = sum(outcome.caught for outcome in OUTCOMES)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"[{len(ALL)} planted faults](docs/planted-faults.md) it catches {caught}" in readme


def test_whatever_is_not_found_as_expected_has_a_reason() -> None:
    assert {outcome.name for outcome in not_as_expected(OUTCOMES)} == set(REASONS)


@pytest.mark.parametrize("name", SAMPLE)
def test_what_is_told_of_a_fault_is_what_the_check_says(name: str) -> None:
    planted = next(each for each in ALL if each.name == name)
    told = next(outcome for outcome in OUTCOMES if outcome.name == name)
    now = evaluate(planted)
    assert replace(now, found="") == replace(told, found="")
    assert now.caught
