"""What pages say about times: medians, spread, baseline, roofs, timing verdicts."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.results.model import CaseResult, Counters, RunRecord
from dashboards import build_site, timing
from dashboards.charts import Point
from dashboards.charts import history as history_chart
from dashboards.history import histories
from dashboards.links import case_path, roofline_path
from dashboards.page_parts import points_of
from dashboards.quantities import TIME
from dashboards.roofline_chart import Mark, roofline
from dashboards.roofs import Roofs, roofs_of
from dashboards.sample_chart import Strip, strips
from tests.dashboards import example_records as example
from tests.dashboards import example_times as times
from tests.dashboards.page_reader import Page, PageTable, pages

LADDER = "Ladder sgemm at M=4096, N=4096, K=4096"
DASH = "\u2013"
H200_ROOFS = Roofs(flop_per_s=66.9e12, bytes_per_s=4.27e12)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a site of two GPUs and the simulator at the same three commits."""
    records = [
        *example.three_records(),
        *times.three_timed_records(),
        *times.three_timed_records(times.L40S, 1.9),
    ]
    return build_site(records, [times.timed_gate()], tmp_path_factory.mktemp("site"))


def _roofline(index: Path, machine: str = "h200-slot0") -> Page:
    return Page(index.parent / roofline_path(machine, "sgemm"))


def _case(index: Path, stage: str) -> Page:
    return Page(index.parent / case_path(example.case_id(stage, times.PERF_SIZES[0])))


def _row(table: PageTable, text: str) -> list[str]:
    return next(
        [" ".join(cell.text.split()) for cell in row]
        for row in table.body
        if any(text in cell.text for cell in row)
    )


def _tables(page: Page, caption: str) -> list[PageTable]:
    return [table for table in page.tables if table.caption == caption]


def _drawn(svg: str) -> ET.Element:
    # The text comes from the code under test, not from a stranger.
    return ET.fromstring(svg)  # noqa: S314


def test_a_ladder_shows_ms_tflops_and_its_share_of_cublas_and_of_the_roofline(index: Path) -> None:
    table = _tables(Page(index), LADDER)[0]
    assert _row(table, "08_double_buffer")[2:6] == ["3.622", "37.95", "75.2", "56.7"]
    assert _row(table, "01_naive")[2:6] == ["33.50", "4.103", "8.1", "6.1"]


def test_one_commit_on_two_gpus_has_two_times(index: Path) -> None:
    found = [_row(table, "01_naive")[2] for table in _tables(Page(index), LADDER)]
    assert found == ["33.50", "63.65"]


def test_a_machine_without_times_shows_none(tmp_path: Path) -> None:
    index = build_site(example.three_records(), [example.gate()], tmp_path)
    for page in pages(index):
        assert not re.search(r"TFLOP|baseline|roofline|\bms\b", page.text), page.path
    assert not (tmp_path / "roofline").exists()


def test_a_case_shows_cold_hot_and_baseline_of_one_run(index: Path) -> None:
    page = _case(index, "08_double_buffer")
    table = _tables(page, "Measurements of one run")[0]
    assert [row[0].text.strip() for row in table.body] == ["Cold", "Hot", "baseline, cold"]
    assert _row(table, "Cold")[1:3] == ["3.622", "0.091"]
    assert [row[6].text.strip() for row in table.body][1] == DASH
    assert "software power cap in 1 of 4 rounds" in page.text


def test_the_history_holds_times_their_noise_and_the_baseline(index: Path) -> None:
    table = _tables(_case(index, "09_warp_tile"), "History, newest first")[0]
    heading = [cell.text for cell in table.head[-1]]
    assert [text.split(" ms")[0] for text in heading[3:5]] == ["Time", "baseline time"]
    assert [row[3].text.strip() for row in table.body] == ["3.805", "3.309", "3.309"]


def test_times_of_two_methods_are_not_put_side_by_side() -> None:
    old, new = times.timed_record(0), times.timed_record(1)
    cases = tuple(
        replace(case, cold=replace(case.cold, method_version=0)) if case.cold else case
        for case in old.cases
    )
    (history,) = histories([replace(old, cases=cases), new], [])
    values = [point.value for point in points_of(history.commits, new.cases[0], TIME)]
    assert values[0] is None
    assert values[1] is not None


def test_a_timed_gate_shows_ratio_interval_rounds_and_the_other_settings_word(index: Path) -> None:
    worst = [" ".join(cell.text.split()) for cell in Page(index).table("Verdicts").body[0]]
    assert worst[3] == "1.15021.1489 to 1.1514"
    assert worst[4] == "standard, 12 roundssensitive: regression"
    assert "Smallest detectable" in _case(index, "08_double_buffer").text


def test_every_number_about_times_has_its_unit(index: Path) -> None:
    for page in pages(index):
        for table in page.tables:
            for row in table.body:
                for column, cell in zip(table.head[-1], row, strict=True):
                    named = any(each.heading and each.has_unit for each in row)
                    if cell.numeric and re.search(r"\d", cell.text):
                        assert column.has_unit or named, (page.path, column.text)


def test_the_roofline_at_4092_says_what_the_first_principles_say(index: Path) -> None:
    n = 4092
    assert 2 * n**3 == 137_036_693_376
    assert 16 * n**2 == 267_911_424
    page = _roofline(index)
    for text in ("137.04 GFLOP", "137,036,693,376", "267.9 MB", "267,911,424", "511.5 FLOP per"):
        assert text in page.text, text
    table = page.table(f"Stages under the roofs at M={n}, N={n}, K={n}")
    naive = _row(table, "01_naive")
    logical_bytes = 2 * n**3 * 4
    assert naive[5:9] == [f"{logical_bytes / 1e9:.1f}", f"{n / 2:,.0f}", "0.2500", "memory"]
    assert naive[5:7] == ["548.1", "2,046"]
    assert "Bound by compute if reuse is perfect" in page.text


def test_a_gpu_of_30_teraflops_and_768_gigabytes_computes_4092_in_4_57_ms() -> None:
    roofs = Roofs(flop_per_s=30e12, bytes_per_s=768e9)
    flops, least = 2 * 4092**3, 16 * 4092**2
    assert f"{1e3 * flops / roofs.flop_per_s:.2f}" == "4.57"
    assert f"{1e3 * least / roofs.bytes_per_s:.3f}" == "0.349"
    assert roofs.bound_by(flops / least) == "compute"
    assert roofs.least_s(flops, least) == flops / 30e12


def test_a_small_product_is_bound_by_memory() -> None:
    assert H200_ROOFS.bound_by(4.0) == "memory"
    assert H200_ROOFS.at(4.0) == 4.0 * 4.27e12


def test_roofs_need_both_peaks() -> None:
    assert roofs_of({}) is None
    assert roofs_of({"float32_flop_per_s": 66.9e12}) is None
    assert roofs_of(times.PEAKS) == H200_ROOFS


def test_logical_traffic_is_not_taken_from_another_source(tmp_path: Path) -> None:
    counted = example.record(0)
    stages = tuple(replace(stage, source_digest="00" * 32) for stage in counted.stages)
    index = build_site([replace(counted, stages=stages), times.timed_record(0)], [], tmp_path)
    page = _roofline(index)
    table = page.table("Stages under the roofs at M=4096, N=4096, K=4096")
    assert _row(table, "01_naive")[5:] == [DASH] * 4
    assert "no record here counts a launch" in page.text


def _with_formula(record: RunRecord, factor: int) -> RunRecord:
    return replace(
        record, cases=tuple(replace(case, flops=case.flops * factor) for case in record.cases)
    )


def test_work_declared_ten_times_too_high_is_flagged_as_an_error(tmp_path: Path) -> None:
    page = Page(build_site([_with_formula(times.timed_record(0), 10)], [], tmp_path))
    assert "faster than the roofline allows" in page.text
    assert "that ladder sgemm declares" in page.text
    assert _row(_tables(page, LADDER)[0], "09_warp_tile")[1] == "! Too fast"
    assert "faster than the roofline allows" in _case(page.path, "09_warp_tile").text
    assert "Too fast" in _roofline(page.path).text


def test_work_declared_rightly_is_not_flagged(index: Path) -> None:
    assert not [page.path for page in pages(index) if "Too fast" in page.text]


def test_asv_pages_are_linked_only_where_they_are(tmp_path: Path) -> None:
    without = build_site([example.record(0)], [], tmp_path / "a")
    linked = build_site([example.record(0)], [], tmp_path / "b", asv_pages="asv/index.html")
    assert "asv history" not in Page(without).text
    assert "asv/index.html" in Page(linked).references
    assert "../asv/index.html" in Page(next((tmp_path / "b" / "case").iterdir())).references


def test_a_roofline_that_is_gone_is_removed(tmp_path: Path) -> None:
    build_site([times.timed_record(0)], [], tmp_path)
    page = tmp_path / roofline_path("h200-slot0", "sgemm")
    assert page.is_file()
    build_site([example.record(0)], [], tmp_path)
    assert not page.exists()


def _timed(*samples_s: float) -> CaseResult:
    case = times.timed_record(0).cases[0]
    cold = replace(times.measurement(1.0), samples_s=samples_s)
    return replace(case, cold=cold)


def test_samples_that_are_no_times_give_no_figure() -> None:
    for case in (_timed(), _timed(0.0, 0.0)):
        assert timing.median_s(case.cold) is None
        assert timing.noise(case.cold) is None
        assert timing.speed(case, case.cold) is None
        assert timing.share_of_baseline(case) is None


def test_one_sample_has_a_median_and_no_spread() -> None:
    assert timing.median_s(_timed(2e-3).cold) == 2e-3
    assert timing.noise(_timed(2e-3).cold) == 0.0


def test_speed_is_declared_work_over_the_median_in_teraflops() -> None:
    case = replace(_timed(2e-3, 1e-3, 3e-3), flops=10**11, counters=None)
    assert timing.speed(case, case.cold) == 50e12
    assert isinstance(example.record(0).cases[0].counters, Counters)


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=60))
def test_quartiles_hold_the_median_and_lie_within_the_samples(samples: list[float]) -> None:
    cold = _timed(*samples).cold
    median, quartiles = timing.median_s(cold), timing.quartiles_s(cold)
    assert median is not None
    assert quartiles is not None
    ends = (min(samples), quartiles[0], median, quartiles[1], max(samples))
    assert all(first <= second * (1 + 1e-12) for first, second in pairwise(ends))


def test_a_chart_draws_the_band_of_each_commit_and_holds_it() -> None:
    points = [
        Point(label="a", value=10.0, text="10", band=(9.0, 30.0)),
        Point(label="b", value=10.5, text="10.5", band=(10.0, 11.0)),
        Point(label="c", value=None, text="no value"),
    ]
    chart = _drawn(history_chart(points, title="time", worse=1, least_change=0.1))
    bands = [each for each in chart.iter("rect") if each.get("class") == "band"]
    assert len(bands) == 2
    assert all(float(band.get("y", "")) >= 0 for band in bands)
    assert not [each for each in chart.iter() if each.get("class") == "point worse"]


@given(st.lists(st.floats(1e10, 6e13), min_size=1, max_size=11))
def test_names_on_a_roofline_never_overlap_and_stay_inside(speeds: list[float]) -> None:
    marks = [
        Mark(label="08_double_buffered", flop_per_s=speed, least=512.0, logical=0.25 * 2**index)
        for index, speed in enumerate(speeds)
    ]
    chart = _drawn(roofline(marks, H200_ROOFS, title="roofs"))
    width, height = (float(number) for number in chart.get("viewBox", "").split()[2:])
    names = [each for each in chart.iter("text") if each.text == "08_double_buffered"]
    lines = sorted(float(name.get("y", "")) for name in names)
    assert len(lines) == len(speeds)
    assert all(below - above >= 13 for above, below in pairwise(lines))
    for text in chart.iter("text"):
        # 13 px on a narrow screen: the widest digit takes 8 px.
        x, length = float(text.get("x", "")), 8.0 * len(text.text or "")
        anchor = {"end": length, "middle": length / 2}.get(text.get("text-anchor", ""), 0.0)
        assert x - anchor >= 0
        assert x - anchor + length <= width
        assert 0 < float(text.get("y", "")) <= height


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=50))
def test_samples_stay_inside_their_strip(samples: list[float]) -> None:
    middle = sorted(samples)[len(samples) // 2]
    strip = Strip(label="Cold: median 2.680 ms", median=middle, quartiles=(middle, middle),
                  samples=tuple(samples))  # fmt: skip
    chart = _drawn(strips([strip], title="samples"))
    dots = [each for each in chart.iter("circle") if each.get("class") == "sample"]
    assert len(dots) == len(samples)
    assert all(0 <= float(dot.get("cx", "")) <= 480 for dot in dots)
    for text in chart.iter("text"):
        if text.get("text-anchor") == "middle":
            assert 4.0 * len(text.text or "") <= float(text.get("x", "")) + 4


def test_work_without_flops_has_times_and_no_place_under_a_compute_roof(tmp_path: Path) -> None:
    # A transpose computes nothing: its logarithm would have no place on the chart.
    records = [
        replace(record, cases=tuple(replace(case, flops=0) for case in record.cases))
        for record in times.three_timed_records()
    ]
    index = build_site(records, [], tmp_path)
    assert not (index.parent / roofline_path("h200-slot0", "sgemm")).exists()
    assert _row(_tables(Page(index), LADDER)[0], "01_naive")[2] == "33.50"
