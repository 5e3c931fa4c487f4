"""``asv run`` and its relatives do here what a user of asv expects, on a machine without a GPU."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ci.results.asv_export import export
from ci.results.asv_quantities import QUANTITIES
from ci.results.asv_validate import validate_results
from ci.results.model import RunRecord, Status
from ci.results.store import load_all
from tests.asv.asv_repository import empty_repository, git, run
from tests.asv.conftest import AsvRun

pytestmark = pytest.mark.skipif(
    Path("/sys/module/nvidia").exists(), reason="states what a machine without a GPU gives"
)


@pytest.fixture(scope="module")
def records(asv_run: AsvRun) -> dict[str, RunRecord]:
    found = load_all(asv_run.folder / "records")
    return {record.revision.commit: record for record in found}


def sectors(record: RunRecord) -> int:
    (case,) = record.cases
    assert case.counters is not None
    return case.counters.global_load_sectors


def test_a_range_leaves_one_record_a_commit(asv_run: AsvRun, records: dict[str, RunRecord]) -> None:
    first, broken, last = asv_run.commits
    assert set(records) == {first, last}, asv_run.done.stdout
    for record in records.values():
        assert record.complete
        assert record.machine.name == "simulator"
        assert [case.status for case in record.cases] == [Status.PASSED]
    assert records[last].revision.subject == "Narrow blocks"
    assert records[last].revision.parents == (broken,)
    assert sectors(records[first]) < sectors(records[last])


def test_a_commit_that_does_not_load_fails_and_the_range_goes_on(asv_run: AsvRun) -> None:
    assert asv_run.done.returncode == 2, asv_run.done.stdout
    assert f"Nothing was measured of {asv_run.commits[1][:8]}" in asv_run.done.stdout


def test_result_files_are_the_export_of_the_records(
    asv_run: AsvRun, records: dict[str, RunRecord]
) -> None:
    results = asv_run.folder / "results"
    validate_results(results)
    exported = export(list(records.values())).files
    for path in exported:
        if path != "benchmarks.json":
            assert (results / path).read_text() == exported[path]
    assert len(list(results.rglob("*.json"))) == len(exported) == 4


def test_every_benchmark_is_discovered_also_those_this_machine_skips(asv_run: AsvRun) -> None:
    discovered = json.loads((asv_run.folder / "results/benchmarks.json").read_text())
    assert set(discovered) == {"version", *(f"product.{each.name}" for each in QUANTITIES)}
    time = discovered["product.track_time"]
    assert (time["unit"], time["version"]) == ("ms", "product-1")
    assert time["params"] == [["'01_naive'"], ["'M=1024,N=1024,K=1024'"]]
    assert "product.track_time" in asv_run.done.stdout
    assert "n/a" in asv_run.done.stdout


def test_an_export_describes_benchmarks_as_asv_discovers_them(
    asv_run: AsvRun, records: dict[str, RunRecord]
) -> None:
    discovered = json.loads((asv_run.folder / "results/benchmarks.json").read_text())
    exported = json.loads(export(list(records.values())).files["benchmarks.json"])
    assert exported.pop("version") == discovered.pop("version")
    assert exported
    for name, entry in exported.items():
        assert entry == {key: discovered[name][key] for key in entry}


def test_the_machine_is_named_without_a_question(asv_run: AsvRun) -> None:
    machines = json.loads((asv_run.home / ".asv-machine.json").read_text())
    assert machines == {"simulator": {"machine": "simulator"}, "version": 1}


def test_compare_shows_the_change(asv_run: AsvRun, records: dict[str, RunRecord]) -> None:
    first, _, last = asv_run.commits
    done = asv_run.asv("compare", first, last)
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = (line for line in done.stdout.splitlines() if "track_global_load_sectors" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[0] == "+"
    assert [float(cell) for cell in cells[1:3]] == [
        sectors(records[first]),
        sectors(records[last]),
    ]


def test_show_prints_the_figures(asv_run: AsvRun, records: dict[str, RunRecord]) -> None:
    done = asv_run.asv("show", asv_run.commits[0])
    assert done.returncode == 0, done.stdout
    assert "product.track_global_load_sectors [simulator/flopwatch]" in done.stdout
    assert str(sectors(records[asv_run.commits[0]])) in done.stdout


def test_commits_with_a_result_are_not_measured_again(asv_run: AsvRun) -> None:
    before = sorted((asv_run.folder / "records").rglob("*.json"))
    done = asv_run.asv("run", "--skip-existing-commits", f"{asv_run.commits[2]}^!")
    assert done.returncode == 0, done.stdout
    assert sorted((asv_run.folder / "records").rglob("*.json")) == before


def test_a_result_file_that_asv_would_hang_on_stops_it_first(asv_run: AsvRun) -> None:
    path = asv_run.folder / "results/simulator" / f"{asv_run.commits[0][:8]}-flopwatch.json"
    sound = path.read_text()
    try:
        path.write_text(sound.replace("[[32]", "[[Infinity]"))
        assert path.read_text() != sound
        done = asv_run.asv("publish")
    finally:
        path.write_text(sound)
    assert done.returncode == 1
    assert "Infinity" in done.stdout
    assert not (asv_run.folder / ".asv/html").exists()


def test_the_current_tree_is_measured_and_saved_under_its_commit_alone(
    asv_run: AsvRun, tmp_path: Path
) -> None:
    folder = tmp_path / "repository"
    shutil.copytree(asv_run.folder, folder, ignore=shutil.ignore_patterns("records", "results"))
    head = git(folder, "rev-parse", "HEAD")
    same = ("run", "--python=same", "-b", "track_registers")
    dry = run(folder, "asv", *same, home=tmp_path)
    assert dry.returncode == 0, dry.stdout
    assert not (folder / "records").exists()
    kept = run(folder, "asv", *same, "--set-commit-hash", "HEAD", home=tmp_path)
    assert kept.returncode == 0, kept.stdout
    assert [record.revision.commit for record in load_all(folder / "records")] == [head]
    assert (folder / f"results/simulator/{head[:8]}-flopwatch.json").exists()
    wrong = run(folder, "asv", *same, "--set-commit-hash", "HEAD~1", home=tmp_path)
    assert wrong.returncode == 1
    assert f"expected a measurement of commit {asv_run.commits[1]}, got {head}" in wrong.stdout
    validate_results(folder / "results")


def test_nothing_to_measure_is_an_error(tmp_path: Path) -> None:
    folder = empty_repository(tmp_path / "repository")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "Nothing")
    done = run(folder, "asv", "run", "HEAD..HEAD", home=tmp_path)
    assert done.returncode == 1
    assert "No commit hashes selected" in done.stdout
