"""The page on large sizes is what its record says, and the record what the simulator counts."""

from __future__ import annotations

import json

import pytest

from scripts.large_sizes import DATA, PAGE, cases, count, page

COUNTED = json.loads(DATA.read_text(encoding="utf-8"))


def test_the_page_is_made_from_the_record() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(COUNTED), "run python -m scripts.large_sizes"


def test_every_stage_is_counted_once_and_none_has_a_finding() -> None:
    assert [each["case"] for each in COUNTED] == cases()
    assert all(each["counting"] and not each["findings"] for each in COUNTED)


@pytest.mark.parametrize(
    "case",
    ["gemv_int4/01_warp_per_row[M=4096,K=4096]", "sgemm/03_shared_tile_16[M=4096,N=4096,K=4096]"],
)
def test_what_is_counted_again_is_what_was_recorded(case: str) -> None:
    (recorded,) = (each for each in COUNTED if each["case"] == case)
    again = count(case)
    cost = {"seconds", "peak_mb"}
    assert {k: v for k, v in again.items() if k not in cost} == {
        k: v for k, v in recorded.items() if k not in cost
    }


def test_tiles_load_as_often_as_the_textbook_says() -> None:
    serves = {
        each["case"].split("[")[0]: each["flops"] / each["loads"]
        for each in COUNTED
        if each["case"].startswith("sgemm/")
    }
    assert serves["sgemm/01_naive"] == 1
    assert serves["sgemm/03_shared_tile_16"] == 16
    assert serves["sgemm/04_shared_tile_32"] == 32
