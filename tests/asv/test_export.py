"""Records become files that asv's own reader takes, and that are strict where asv's are not."""

from __future__ import annotations

import itertools
import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.results import iter_results
from asv_runner.statistics import compute_stats
from hypothesis import given, settings
from hypothesis import strategies as st

from ci.measure import batch
from ci.results.asv_export import Export, _summary, export, write
from ci.results.asv_quantities import QUANTITIES, TIMING_METHOD, figures
from ci.results.asv_validate import validate_results
from ci.results.errors import StoreError
from ci.results.model import RunRecord, Status
from tests.asv.asv_repository import (
    GPU,
    SIZES,
    STAGES,
    case,
    history,
    measurement,
    record,
    timed_case,
)

COMMITS = ("a" * 40, "b" * 40, "c" * 40)


def rows(exported: Export, path: str) -> dict[str, list[object]]:
    found: dict[str, list[object]] = json.loads(exported.files[path])["results"]
    return found


def test_asv_reads_every_figure_back(tmp_path: Path) -> None:
    records = history(COMMITS)
    write(export(records), tmp_path)
    conf = Config.from_json({"repo": ".", "results_dir": str(tmp_path)})
    benchmarks = Benchmarks.load(conf)
    assert set(benchmarks) == {f"sgemm.{quantity.name}" for quantity in QUANTITIES}
    read = {
        (each.commit_hash, each.params["machine"]): each for each in iter_results(str(tmp_path))
    }
    assert len(read) == len(records)
    compared = 0
    for one in records:
        result = read[one.revision.commit, one.machine.name]
        for quantity in QUANTITIES:
            name = f"sgemm.{quantity.name}"
            params = benchmarks[name]["params"]
            wanted = figures("sgemm", quantity, one.stages, one.cases)
            if not wanted:
                assert name not in result.get_all_result_keys()
                continue
            values = result.get_result_value(name, params)
            samples = result.get_result_samples(name, params)
            for values_of, value, raw in zip(
                itertools.product(*params), values, samples or [None] * len(values), strict=True
            ):
                figure = wanted[tuple(text.strip("'") for text in values_of)]
                expected = statistics.median(figure) if isinstance(figure, tuple) else figure
                assert value == expected
                assert raw is None or tuple(raw) == figure
                compared += 1
    assert compared == len(COMMITS) * (2 * (2 * 4 + 2 * 2) + 2 * 2)


def test_a_file_carries_the_full_commit_and_no_path_of_an_interpreter() -> None:
    (path,) = (path for path in export(history(COMMITS[:1])).files if path.startswith(GPU + "/a"))
    document = json.loads(export(history(COMMITS[:1])).files[path])
    assert path == f"{GPU}/aaaaaaaa-flopwatch.json"
    assert document["commit_hash"] == COMMITS[0]
    assert document["params"] == {"machine": GPU}


def test_an_edited_tree_is_named_as_left_out() -> None:
    edited = record("a" * 40 + "-dirty-0123456789ab", 1, case("01_naive", SIZES[0], 8))
    exported = export([edited])
    assert list(exported.files) == ["benchmarks.json"]
    (sentence,) = exported.left_out
    assert "dirty" in sentence


def test_a_failed_case_is_null_and_a_machine_without_times_has_no_row() -> None:
    good = case("01_naive", SIZES[0], 8)
    bad = replace(
        case("01_naive", SIZES[1], 8), status=Status.INCORRECT, reason="wrong", counters=None
    )
    exported = rows(export([record(COMMITS[0], 1, good, bad)]), "simulator/aaaaaaaa-flopwatch.json")
    assert exported["sgemm.track_global_load_sectors"][0] == [8, None]
    assert "sgemm.track_time" not in exported


def test_what_a_machine_skips_is_no_failure() -> None:
    skipped = replace(
        case("01_naive", SIZES[1], 8), status=Status.SKIPPED, reason="too small", counters=None
    )
    exported = export([record(COMMITS[0], 1, case("01_naive", SIZES[0], 8), skipped)])
    row = rows(exported, "simulator/aaaaaaaa-flopwatch.json")["sgemm.track_global_load_sectors"]
    assert row[:2] == [[8], [["'01_naive'"], [f"'{SIZES[0]}'"]]]


def test_times_of_another_method_are_no_history() -> None:
    old = timed_case("01_naive", 1e-3)
    old = replace(old, cold=measurement(1e-3, method_version=TIMING_METHOD + 1), hot=None)
    exported = rows(export([record(COMMITS[0], 1, old)]), "simulator/aaaaaaaa-flopwatch.json")
    assert "sgemm.track_time" not in exported


def test_the_method_that_is_shown_is_the_method_in_force() -> None:
    assert TIMING_METHOD == batch.METHOD_VERSION


def test_the_latest_complete_run_of_a_commit_counts() -> None:
    first = record(COMMITS[0], 1, case("01_naive", SIZES[0], 8))
    second = record(COMMITS[0], 2, case("01_naive", SIZES[0], 16))
    broken_off = replace(record(COMMITS[0], 3, case("01_naive", SIZES[0], 32)), complete=False)
    for order in itertools.permutations([first, second, broken_off]):
        exported = rows(export(order), "simulator/aaaaaaaa-flopwatch.json")
        assert exported["sgemm.track_global_load_sectors"][0] == [16]


def test_writing_again_changes_nothing(tmp_path: Path) -> None:
    assert write(export(history(COMMITS)), tmp_path)
    assert write(export(history(COMMITS)), tmp_path) == ()


def test_a_file_of_fewer_runs_is_replaced(tmp_path: Path) -> None:
    first = record(COMMITS[0], 1, case("01_naive", SIZES[0], 8))
    second = record(COMMITS[0], 2, case("01_naive", SIZES[0], 16))
    write(export([first]), tmp_path)
    write(export([first, second]), tmp_path)
    text = (tmp_path / "simulator/aaaaaaaa-flopwatch.json").read_text()
    assert '"sgemm.track_global_load_sectors": [[16]' in text


@pytest.mark.parametrize("content", ["edited", "asv's own", "more runs"])
def test_other_content_is_never_overwritten(tmp_path: Path, content: str) -> None:
    first = record(COMMITS[0], 1, case("01_naive", SIZES[0], 8))
    second = record(COMMITS[0], 2, case("01_naive", SIZES[0], 16))
    write(export([first, second] if content == "more runs" else [first]), tmp_path)
    path = tmp_path / "simulator/aaaaaaaa-flopwatch.json"
    document = json.loads(path.read_text())
    if content == "asv's own":
        del document["flopwatch_runs"]
    if content != "more runs":
        document["results"]["sgemm.track_registers"][0] = [7]
        path.write_text(json.dumps(document))
    before = path.read_text()
    with pytest.raises(StoreError, match="other content"):
        write(export([first]), tmp_path)
    assert path.read_text() == before


def test_two_commits_that_asv_cannot_tell_apart_are_refused() -> None:
    twins = [record("a" * 39 + digit, 1, case("01_naive", SIZES[0], 8)) for digit in "bc"]
    with pytest.raises(StoreError, match="same 8 digits"):
        export(twins)


@given(st.lists(st.floats(1e-6, 1e3), min_size=8, max_size=60))
def test_the_statistics_are_those_asv_computes(samples: list[float]) -> None:
    _, wanted = compute_stats(samples, 1)
    low, high, q_25, q_75, number, repeat = _summary(samples)
    assert (low, high) == pytest.approx((wanted["ci_99_a"], wanted["ci_99_b"]))
    assert (q_25, q_75) == pytest.approx((wanted["q_25"], wanted["q_75"]))
    assert (number, repeat) == (wanted["number"], wanted["repeat"])


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=7))
def test_too_few_samples_give_a_finite_interval_where_asv_stores_infinity(
    samples: list[float],
) -> None:
    assert _summary(samples)[:2] == (min(samples), max(samples))


@settings(max_examples=20)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.sampled_from([(), ("01_naive",)]))
def test_every_export_is_sound(
    tmp_path_factory: pytest.TempPathFactory, runs: list[int], timed: tuple[str, ...]
) -> None:
    folder = tmp_path_factory.mktemp("results")
    records: list[RunRecord] = []
    for number, kind in enumerate(runs):
        cases = [case(stage, SIZES[kind % 2], kind) for stage in STAGES[: 1 + kind % 2]]
        cases += [timed_case(stage, 1e-3) for stage in timed]
        records.append(record(f"{number:08x}" * 5, number, *cases))
    write(export(records), folder)
    validate_results(folder)


def test_an_empty_history_is_an_empty_index() -> None:
    assert json.loads(export([]).files["benchmarks.json"]) == {"version": 2}
