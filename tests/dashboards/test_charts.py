"""Charts: round axes, gaps that stay gaps, labels that fit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from dashboards.charts import Point, bar, history, scale_for, sparkline, tick_labels


def _points(values: Sequence[float | None]) -> list[Point]:
    return [
        Point(label=f"{index:07x}", value=value, text="no value" if value is None else f"{value}")
        for index, value in enumerate(values)
    ]


def _chart(values: Sequence[float | None], worse: int = 1) -> ET.Element:
    return _read(history(_points(values), title="sectors", worse=worse))


def _read(svg: str) -> ET.Element:
    # The text comes from the code under test, not from a stranger.
    return ET.fromstring(svg)  # noqa: S314


def _line(chart: ET.Element) -> str:
    return next(each for each in chart.iter("path") if each.get("class") == "line").get("d", "")


def _classes(chart: ET.Element) -> list[str]:
    return [element.get("class", "") for element in chart.iter()]


@given(st.lists(st.integers(0, 10**12), max_size=20))
def test_an_axis_holds_all_values_between_round_distinct_ticks(values: list[int]) -> None:
    scale = scale_for(values)
    assert all(scale.low <= value <= scale.high for value in values)
    labels = tick_labels(scale)
    assert len(set(labels)) == len(labels) >= 2
    assert len(labels) <= 8


@given(st.floats(0.001, 1e6), st.integers(1, 50))
def test_a_constant_series_starts_at_zero_and_has_distinct_ticks(value: float, count: int) -> None:
    scale = scale_for([value] * count)
    assert scale.starts_at_zero
    assert len(set(tick_labels(scale))) == len(scale.ticks())


def test_an_axis_fits_values_that_differ_little() -> None:
    assert not scale_for([1_000_000, 1_000_100]).starts_at_zero
    assert scale_for([100, 200]).starts_at_zero


def test_a_gap_stays_a_gap() -> None:
    chart = _chart([1, 2, None, None, 4, 5])
    assert _line(chart).count("M") == 2
    assert _classes(chart).count("gap") == 2
    joined = _chart([1, 2, 3, 3, 4, 5])
    assert _line(joined).count("M") == 1


def test_a_line_does_not_run_on_after_its_last_value() -> None:
    line = _line(_chart([1, 1, None]))
    axis_end = max(float(x) for x in re.findall(r"[MH]([\d.]+)", line))
    full = _line(_chart([1, 1, 1]))
    assert axis_end < max(float(x) for x in re.findall(r"[MH]([\d.]+)", full))


def test_a_step_is_drawn_at_the_first_commit_of_the_new_level() -> None:
    chart = _chart([1, 1, 3, 3])
    marks = [each for each in chart.iter() if each.get("class") == "point worse"]
    assert [mark.findtext("title") for mark in marks] == ["0000002: 3"]


def test_shape_and_class_tell_worse_from_better() -> None:
    assert "point worse" in _classes(_chart([1, 2]))
    assert "point better" in _classes(_chart([2, 1]))
    assert "point worse" in _classes(_chart([2, 1], worse=-1))
    assert "point shown" in _classes(_chart([1, 2], worse=0))


@given(st.lists(st.none() | st.integers(0, 10**9), min_size=1, max_size=200))
def test_no_label_is_clipped_or_overlaps_another(values: list[int | None]) -> None:
    chart = _chart(values)
    width = 320
    boxes = []
    for text in chart.iter("text"):
        x, length = float(text.get("x", "")), 7.4 * len(text.text or "")
        left = x - (length if text.get("text-anchor") == "end" else length / 2)
        assert left >= 0
        assert left + length <= width
        boxes.append((float(text.get("y", "")), left, left + length))
    axis = max(y for y, _, _ in boxes)
    on_axis = sorted(box for box in boxes if box[0] == axis)
    assert all(first[2] < second[1] for first, second in pairwise(on_axis))


def test_a_long_history_marks_changes_and_the_last_commit_only() -> None:
    chart = _chart([5] * 100 + [6] * 100)
    assert sum(name.startswith("point") for name in _classes(chart)) == 3


def test_a_chart_has_a_name_and_the_same_bytes_each_time() -> None:
    drawn = [sparkline(_points([1, None, 2]), title='a "<b>"', worse=1) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert _read(drawn[0]).get("aria-label") == 'a "<b>"'


def test_a_bar_is_a_share_of_its_track() -> None:
    widths = [_read(bar(share))[1].get("width") for share in (0, 0.25, 1, 7)]
    assert widths == ["0", "25", "100", "100"]
