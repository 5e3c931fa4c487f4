"""The generated tables say what the committed records say."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ci.results.errors import RecordError
from ci.results.model import RunRecord
from scripts import ladder_table, sweep_record
from scripts.ladder_table import Sources
from scripts.sweep_record import CPU, CUBLAS, SIZES, SizeSweep, SweepRow
from tests.dashboards import example_records as example
from tests.dashboards import example_times as times

ROOT = Path(__file__).parents[2]


def _sweep() -> SizeSweep:
    slowness = {CPU: 60.0, "01_naive": 12.0, "04_shared_tile_32": 4.0, CUBLAS: 1.0}
    return SizeSweep(
        started="2026-03-03T10:15:00+00:00", commit=example.HASHES[0], gpu="NVIDIA H200",
        cpu="a processor, 16 threads", cpu_library="NumPy 2.4.0", float32_flop_per_s=66.9e12,
        rows=tuple(
            SweepRow(size=size, routine=name, seconds=2.68e-3 * (size / 4096) ** 3 * slow,
                     samples=10, error=0.25)
            for size in SIZES for name, slow in slowness.items()
        ),
    )  # fmt: skip


def _figures(table: str, first: str) -> list[str]:
    row = next(line for line in table.splitlines() if line.startswith(f"| {first}"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def _sources(timed: RunRecord | None) -> Sources:
    return Sources(counted=example.record(0), timed=timed, sweep=None)


def test_the_committed_tables_are_what_the_committed_records_give() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "records"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode or not listed.stdout.strip():
        pytest.skip("no record is committed, or there is no git to ask")
    found = ladder_table.sources(ROOT / "records", only=set(listed.stdout.splitlines()))
    for path, text in ladder_table.rewritten(ROOT, found).items():
        assert path.read_text(encoding="utf-8") == text, "run python -m scripts.ladder_table"


def test_each_text_has_the_markers_of_its_table() -> None:
    found = Sources(counted=example.record(0), timed=None, sweep=_sweep())
    assert [path.name for path in ladder_table.rewritten(ROOT, found)] == ["README.md", "sizes.md"]


def test_missing_markers_are_named() -> None:
    with pytest.raises(SystemExit, match="ladder table: begin"):
        ladder_table.between_markers("no markers", "ladder table", "")


def test_the_ladder_has_times_of_the_gpu_and_counters_of_the_simulator() -> None:
    figures = _figures(ladder_table.ladder_table(_sources(times.timed_record(0))), "[`01_naive`]")
    assert figures[1:5] == ["33.50", "4.1", "8.1", "6.1"]
    assert figures[5:9] == ["32", "2", "2", "17,301,504"]


def test_a_ladder_without_a_gpu_has_counters_alone() -> None:
    table = ladder_table.ladder_table(_sources(None))
    assert "ms" not in table.splitlines()[0]
    assert _figures(table, "[`01_naive`]")[4] == "17,301,504"


def test_counters_of_another_source_are_not_put_beside_a_time() -> None:
    timed = times.timed_record(0)
    stages = tuple(replace(stage, source_digest="00" * 32) for stage in timed.stages)
    table = ladder_table.ladder_table(_sources(replace(timed, stages=stages)))
    assert _figures(table, "[`01_naive`]")[7:] == ["–"] * 4


def test_the_size_table_has_times_and_speeds_of_every_routine() -> None:
    table = ladder_table.size_table(_sweep())
    assert _figures(table, "4096") == [
        "4096", "160.8", "32.16", "10.72", "2.680", "855", "4,274", "12,821", "51,283",
    ]  # fmt: skip
    assert "reaches 25.0 % of cuBLAS and 19.2 % of the FP32 peak" in table


def test_a_sweep_survives_its_file_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    path = sweep_record.save(tmp_path, _sweep())
    assert sweep_record.load(tmp_path) == _sweep()
    path.write_text(path.read_text(encoding="utf-8").replace("0.25", "NaN"), encoding="utf-8")
    with pytest.raises(RecordError, match="NaN"):
        sweep_record.load(tmp_path)


def test_without_a_sweep_there_is_no_table(tmp_path: Path) -> None:
    assert sweep_record.load(tmp_path) is None
