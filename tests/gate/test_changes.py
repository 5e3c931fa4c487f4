"""Which figures differ, which of them fail, and which line is to blame."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.gate.changes import changes, missing_figures
from ci.gate.metrics import COUNTERS, FAILING, STATIC, worsening
from ci.gate.sides import Side
from ci.results.model import CaseResult, Change, Counters, LineCounters, StageResult, StaticFigures
from tests import builders

MUST_FAIL = {
    "spill_store_bytes",
    "spill_load_bytes",
    "stack_bytes",
    "local_bytes",
    "global_load_sectors",
    "global_store_sectors",
    "shared_load_wavefronts",
    "shared_store_wavefronts",
    "shared_load_conflicts",
    "shared_store_conflicts",
    "atomic_sectors",
    "resident_blocks",
}
NOT_COMPARED = {"arch", "variant", "kernel", "limited_by"}


def _side(case: CaseResult | None = None, stage: StageResult | None = None) -> Side:
    return Side(case=case or builders.case(), stage=stage or builders.stage())


def _counted(**counters: int) -> Side:
    return _side(builders.case(counters=Counters(**counters)))


def _compiled(figures: StaticFigures) -> Side:
    return _side(stage=builders.stage(figures=(figures,)))


def test_the_figures_that_fail_are_the_declared_ones() -> None:
    assert set(FAILING) == MUST_FAIL


def test_every_figure_of_the_data_contract_is_compared() -> None:
    assert {metric.name for metric in COUNTERS} == {f.name for f in dataclasses.fields(Counters)}
    static = {f.name for f in dataclasses.fields(StaticFigures)} - NOT_COMPARED
    assert {metric.name for metric in STATIC} == static


@pytest.mark.parametrize("metric", [metric.name for metric in COUNTERS])
def test_one_more_of_any_counter_is_seen(metric: str) -> None:
    (found,) = changes(_counted(**{metric: 1000}), _counted(**{metric: 1001}))
    assert (found.metric, found.base, found.head) == (metric, 1000, 1001)
    assert found.fails == (metric in MUST_FAIL)
    assert not found.improves


@pytest.mark.parametrize("metric", [metric.name for metric in COUNTERS])
def test_one_less_of_any_counter_never_fails(metric: str) -> None:
    (found,) = changes(_counted(**{metric: 1001}), _counted(**{metric: 1000}))
    assert not found.fails
    assert found.improves == (metric in MUST_FAIL)


def test_a_counter_that_only_head_knows_is_no_change() -> None:
    older, newer = _counted(), _counted(atomic_sectors=7)
    assert changes(older, newer) == ()
    assert missing_figures(older, newer) == ()


def test_a_counter_that_head_no_longer_counts_is_missing() -> None:
    assert missing_figures(_counted(atomic_sectors=0), _counted()) == ("atomic_sectors",)


@pytest.mark.parametrize(
    ("metric", "more"),
    [
        ("spill_store_bytes", builders.static(spill_store_bytes=8)),
        ("spill_load_bytes", builders.static(spill_load_bytes=8)),
        ("stack_bytes", builders.static(stack_bytes=8)),
    ],
)
def test_more_spilled_bytes_fail(metric: str, more: StaticFigures) -> None:
    (found,) = changes(_compiled(builders.static()), _compiled(more))
    assert (found.metric, found.where, found.fails) == (metric, "sm_90 A=row,B=row", True)


def test_fewer_resident_blocks_fail_and_more_improve() -> None:
    eight, seven = builders.static(resident_blocks=8), builders.static(resident_blocks=7)
    (worse,) = changes(_compiled(eight), _compiled(seven))
    (better,) = changes(_compiled(seven), _compiled(eight))
    assert (worse.fails, worse.improves) == (True, False)
    assert (better.fails, better.improves) == (False, True)
    assert worsening(worse) == 8 / 7
    assert worsening(better) == 7 / 8


def test_static_figures_pair_by_architecture_and_variant_whatever_their_order() -> None:
    one, other = builders.static(registers=40), builders.static(arch="sm_80", registers=50)
    base = _side(stage=builders.stage(figures=(one, other)))
    head = _side(stage=builders.stage(figures=(other, one)))
    assert changes(base, head) == ()


def test_an_architecture_that_only_head_has_is_not_compared() -> None:
    spilling = builders.static(arch="sm_120", spill_store_bytes=8)
    head = _side(stage=builders.stage(figures=(builders.static(), spilling)))
    assert changes(_side(), head) == ()


def test_the_worst_change_comes_first_then_improvements_then_what_is_only_shown() -> None:
    base = _counted(
        global_load_requests=1, global_load_sectors=10, local_bytes=10, global_store_sectors=10
    )
    head = _counted(
        global_load_requests=9, global_load_sectors=20, local_bytes=15, global_store_sectors=5
    )
    assert [change.metric for change in changes(base, head)] == [
        "global_load_sectors",
        "local_bytes",
        "global_store_sectors",
        "global_load_requests",
    ]


def test_something_from_nothing_is_worse_than_any_ratio() -> None:
    base = _counted(global_load_sectors=1)
    head = _counted(global_load_sectors=1000, shared_load_conflicts=1)
    assert changes(base, head)[0].metric == "shared_load_conflicts"


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_counter_is_never_worse_in_both_directions(base: int, head: int) -> None:
    there = changes(_counted(local_bytes=base), _counted(local_bytes=head))
    back = changes(_counted(local_bytes=head), _counted(local_bytes=base))
    assert [change.fails for change in there] == [not change.fails for change in back]
    assert bool(there) == (base != head)


def _blamed(base: tuple[LineCounters, ...], head: tuple[LineCounters, ...]) -> Change:
    (found,) = changes(
        _side(builders.case(counters=Counters(global_load_sectors=10), lines=base)),
        _side(builders.case(counters=Counters(global_load_sectors=20), lines=head)),
    )
    return found


def test_a_line_that_moved_keeps_its_figures() -> None:
    base = (builders.line(10, "a = A[k];", global_load_sectors=8),)
    head = (
        builders.line(12, "  a = A[k];", global_load_sectors=8),
        builders.line(13, "b = B[k];", global_load_sectors=2),
    )
    found = _blamed(base, head)
    assert (found.place, found.place_text) == ("sgemm/01_naive.cu:13", "b = B[k];")
    assert (found.place_base, found.place_head) == (0, 2)


def test_an_edited_line_is_compared_with_what_it_was() -> None:
    base = (
        builders.line(10, "acc += A[row * lda + k] * x;", global_load_sectors=8),
        builders.line(11, "C[row] = acc;", global_load_sectors=2),
    )
    head = (
        builders.line(10, "acc += A[k * lda + row] * x;", global_load_sectors=18),
        builders.line(11, "C[row] = acc;", global_load_sectors=2),
    )
    found = _blamed(base, head)
    assert (found.place, found.place_base, found.place_head) == ("sgemm/01_naive.cu:10", 8, 18)


def test_equal_lines_pair_in_their_order() -> None:
    base = tuple(builders.line(n, "x = A[k];", global_load_sectors=5) for n in (10, 20))
    head = (
        builders.line(10, "x = A[k];", global_load_sectors=5),
        builders.line(20, "x = A[k];", global_load_sectors=15),
    )
    assert _blamed(base, head).place == "sgemm/01_naive.cu:20"


def test_a_line_of_the_same_text_in_another_file_is_another_line() -> None:
    base = (builders.line(10, "x = A[k];", global_load_sectors=10),)
    head = (builders.line(10, "x = A[k];", file="include/tile.cuh", global_load_sectors=20),)
    found = _blamed(base, head)
    assert (found.place, found.place_base) == ("include/tile.cuh:10", 0)


def test_without_a_line_that_grew_the_largest_one_is_named() -> None:
    lines = (
        builders.line(10, "x = A[k];", global_load_sectors=4),
        builders.line(11, "y = B[k];", global_load_sectors=6),
    )
    assert _blamed(lines, lines).place == "sgemm/01_naive.cu:11"


def test_without_lines_no_place_is_named() -> None:
    found = _blamed((), (builders.line(10, "x = 1;", local_bytes=1),))
    assert (found.place, found.place_text) == ("", "")
