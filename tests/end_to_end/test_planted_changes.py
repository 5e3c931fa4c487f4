"""Every kind of change the gate must see, planted in a copy of the real ladder and run for real."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ci.results.model import CaseVerdict, GateResult, Outcome, Word
from ci.results.store import load_gate

ROOT = Path(__file__).resolve().parents[2]
STAGES = {
    "naive": "01_naive",
    "coalesced": "02_coalesced",
    "tile": "03_shared_tile_16",
    "tile_2d": "06_block_tile_2d",
    "vectorized": "07_vectorized",
}


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A finished gate process."""

    code: int
    out: str
    result: GateResult

    def verdicts(self, stage: str) -> list[CaseVerdict]:
        return [case for case in self.result.cases if case.stage == STAGES[stage]]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Two copies of the ladder, base and head, to plant changes in."""

    base: Path
    head: Path

    def edit(self, stage: str, old: str, new: str, *, count: int = 1) -> int:
        """Replace text in head's source and return the 1-based line it began on."""
        return edit(self.head / "kernels/sgemm" / f"{STAGES[stage]}.cu", old, new, count=count)

    def gate(self, *selection: str) -> Gate:
        out = self.head.parent / "out"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "ci", "gate", "--out", str(out)),
                *("--base", str(self.base), "--head", str(self.head)),
                *("-k", " or ".join(STAGES[stage] for stage in selection)),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        result = load_gate(out / "verdict.json")
        assert (out / "report.md").read_text()
        return Gate(code=done.returncode, out=done.stdout + done.stderr, result=result)


def edit(path: Path, old: str, new: str, *, count: int = 1) -> int:
    text = path.read_text()
    assert text.count(old) == count, f"{path.name} holds {text.count(old)} times: {old}"
    path.write_text(text.replace(old, new))
    return text[: text.index(old)].count("\n") + 1


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    for side in ("base", "head"):
        shutil.copytree(
            ROOT / "kernels",
            tmp_path / side / "kernels",
            ignore=shutil.ignore_patterns("__pycache__", "*.py"),
        )
        shutil.copy(ROOT / "kernels/sgemm/ladder.py", tmp_path / side / "kernels/sgemm")
    return Bench(base=tmp_path / "base", head=tmp_path / "head")


def assert_incorrect(gate: Gate, stage: str, *patterns: str) -> None:
    assert gate.code == 1, gate.out
    assert gate.result.verdict is Outcome.FAILED
    for verdict in gate.verdicts(stage):
        assert verdict.verdict is Word.INCORRECT, verdict
        for pattern in patterns:
            assert re.search(pattern, verdict.reason), verdict.reason
    assert re.search(patterns[0], gate.out), gate.out


def test_a_dropped_second_barrier_is_a_race_at_its_line(bench: Bench) -> None:
    store = bench.edit("tile", "    }\n    __syncthreads();\n  }\n", "    }\n  }\n")
    gate = bench.gate("tile")
    lines = bench.head / "kernels/sgemm/03_shared_tile_16.cu"
    stores = [
        number
        for number, line in enumerate(lines.read_text().splitlines(), 1)
        if line.strip().startswith(("As[", "Bs["))
    ]
    assert store > stores[-1]
    assert_incorrect(
        gate,
        "tile",
        rf"write-after-read race.*sgemm/03_shared_tile_16\.cu:({'|'.join(map(str, stores))})\b",
    )


def test_a_dropped_first_barrier_is_a_race_at_the_read(bench: Bench) -> None:
    bench.edit("tile", "    __syncthreads();\n    for (int k = 0;", "    for (int k = 0;")
    gate = bench.gate("tile")
    assert_incorrect(gate, "tile", r"race.*sgemm/03_shared_tile_16\.cu:\d+")


def test_one_step_too_many_is_out_of_bounds_at_its_line(bench: Bench) -> None:
    line = bench.edit("naive", "for (int k = 0; k < K; ++k)", "for (int k = 0; k <= K; ++k)")
    gate = bench.gate("naive")
    assert_incorrect(gate, "naive", rf"out-of-bounds read.*sgemm/01_naive\.cu:{line + 1}\b")


def test_a_guard_one_too_wide_is_out_of_bounds(bench: Bench) -> None:
    bench.edit("coalesced", "row >= M || column >= N", "row > M || column >= N")
    gate = bench.gate("coalesced")
    assert_incorrect(
        gate, "coalesced", r"out-of-bounds.*(sgemm/02_coalesced\.cu|include/blas\.cuh):\d+"
    )


def test_swapped_tile_indices_name_the_wrong_elements(bench: Bench) -> None:
    bench.edit(
        "tile",
        "As[thread_row][k] * Bs[k][thread_column]",
        "As[thread_column][k] * Bs[k][thread_row]",
    )
    gate = bench.gate("tile")
    assert_incorrect(gate, "tile", r"\d[\d,]* of [\d,]+ elements", r"C\[\d+, \d+\]")


def test_a_wrong_leading_dimension_is_incorrect(bench: Bench) -> None:
    bench.edit("naive", "B[at<B_COL>(k, column, ldb)]", "B[at<B_COL>(k, column, lda)]")
    gate = bench.gate("naive")
    assert_incorrect(gate, "naive", r"sgemm/01_naive\.cu:\d+|elements")


def test_an_epilogue_that_ignores_beta_says_so(bench: Bench) -> None:
    edit(
        bench.head / "kernels/include/blas.cuh",
        "*c = alpha * product + beta * old;",
        "*c = alpha * product;",
    )
    gate = bench.gate("naive")
    assert_incorrect(gate, "naive", r"beta")


def test_reading_the_result_at_beta_zero_is_incorrect(bench: Bench) -> None:
    line = edit(
        bench.head / "kernels/include/blas.cuh",
        "const float old = beta == 0.0f ? 0.0f : *c;",
        "const float old = *c;",
    )
    gate = bench.gate("naive")
    assert_incorrect(
        gate, "naive", rf"uninitialised global read at include/blas\.cuh:{line}\b.* of C\b"
    )
    for verdict in gate.verdicts("naive"):
        said = " ".join(check.detail for check in verdict.wrong)
        assert "NaN as if the kernel had read C, although beta = 0" in said


def test_an_uncoalesced_load_names_counter_values_and_line(bench: Bench) -> None:
    bench.edit(
        "coalesced",
        "  const int row = block_y() * blockDim.y + threadIdx.y;\n"
        "  const int column = blockIdx.x * blockDim.x + threadIdx.x;\n",
        "  const int thread = threadIdx.y * blockDim.x + threadIdx.x;\n"
        "  const int row = block_y() * blockDim.y + thread % blockDim.y;\n"
        "  const int column = blockIdx.x * blockDim.x + thread / blockDim.y;\n",
    )
    gate = bench.gate("coalesced")
    assert gate.code == 1, gate.out
    for verdict in gate.verdicts("coalesced"):
        assert verdict.verdict is Word.REGRESSION
        worse = {change.metric: change for change in verdict.changes if change.fails}
        loads = worse["global_load_sectors"]
        assert loads.head > loads.base > 0
        assert re.fullmatch(r"sgemm/02_coalesced\.cu:\d+", loads.place)
        worst = verdict.changes[0]
        for part in (f"{worst.base:,.0f}", f"{worst.head:,.0f}", worst.place):
            assert part in verdict.reason


def test_a_lost_padding_names_conflicts_and_line(bench: Bench) -> None:
    bench.edit("vectorized", "float As[BK][BM + 4]", "float As[BK][BM]")
    bench.edit("vectorized", "float Bs[BK][BN + 4]", "float Bs[BK][BN]")
    bench.edit("vectorized", "load_tile<BK, BM, BM + 4, A_COL>", "load_tile<BK, BM, BM, A_COL>")
    bench.edit("vectorized", "load_tile<BK, BN, BN + 4, !B_COL>", "load_tile<BK, BN, BN, !B_COL>")
    gate = bench.gate("vectorized")
    assert gate.code == 1, gate.out
    for verdict in gate.verdicts("vectorized"):
        assert verdict.verdict is Word.REGRESSION
        metrics = {change.metric: change for change in verdict.changes if change.fails}
        conflicts = metrics["shared_store_conflicts"]
        assert conflicts.head > conflicts.base
        assert re.fullmatch(r"sgemm/07_vectorized\.cu:\d+", conflicts.place)


def test_a_padding_lost_in_another_layout_than_the_timed_one_is_seen(bench: Bench) -> None:
    bench.edit("tile", "float As[BM][BK + A_COL]", "float As[BM][BK]")
    gate = bench.gate("tile")
    assert gate.code == 1, gate.out
    assert {verdict.verdict for verdict in gate.verdicts("tile")} == {Word.REGRESSION}
    assert "conflicts" in gate.verdicts("tile")[0].reason


def test_a_spill_fails_with_both_figures(bench: Bench) -> None:
    bench.edit(
        "tile_2d",
        "__global__ void sgemm_block_tile_2d",
        "__global__ void __launch_bounds__(256, 5) sgemm_block_tile_2d",
    )
    gate = bench.gate("tile_2d")
    assert gate.code == 1, gate.out
    for verdict in gate.verdicts("tile_2d"):
        assert verdict.verdict is Word.REGRESSION
        assert re.search(r"spill|stack|local", verdict.reason), verdict.reason


def test_comments_and_names_leave_the_code_identical(bench: Bench) -> None:
    path = bench.head / "kernels/sgemm/03_shared_tile_16.cu"
    text = path.read_text().replace("As[", "tile_of_a[").replace("acc", "running_sum")
    path.write_text(f"// A comment more.\n\n{text}")
    gate = bench.gate("tile")
    assert gate.code == 0, gate.out
    for verdict in gate.verdicts("tile"):
        assert (verdict.verdict, verdict.code) == (Word.UNCHANGED, "identical")
        assert "identical code" in verdict.reason


def test_the_same_code_under_another_grid_is_not_identical(bench: Bench) -> None:
    edit(
        bench.head / "kernels/sgemm/ladder.py",
        'grid=(cdiv(size["M"], 32), *along_y(cdiv(size["N"], 8)))',
        'grid=(cdiv(size["M"], 32), *along_y(cdiv(size["N"], 16)))',
    )
    gate = bench.gate("naive")
    assert_incorrect(gate, "naive", r"elements|written")


def test_a_syntax_error_shows_the_compilers_message_at_its_line(bench: Bench) -> None:
    line = bench.edit("naive", "float acc = 0.0f;", "float acc = 0.0f")
    gate = bench.gate("naive")
    assert gate.code == 1, gate.out
    for verdict in gate.verdicts("naive"):
        assert verdict.verdict is Word.ERROR
        assert re.search(rf"sgemm/01_naive\.cu[:(]({line}|{line + 1})\b", verdict.reason)
        assert 'expected a ";"' in verdict.reason


def test_a_deleted_stage_is_missing(bench: Bench) -> None:
    (bench.head / "kernels/sgemm/02_coalesced.cu").unlink()
    ladder = bench.head / "kernels/sgemm/ladder.py"
    text = ladder.read_text()
    start = text.index('        CudaStage(\n            source="02_coalesced.cu"')
    end = text.index("        CudaStage(", start + 1)
    ladder.write_text(text[:start] + text[end:])
    gate = bench.gate("naive", "coalesced")
    assert gate.code == 1, gate.out
    assert {verdict.verdict for verdict in gate.verdicts("coalesced")} == {Word.MISSING}
    assert {verdict.verdict for verdict in gate.verdicts("naive")} == {Word.UNCHANGED}


def test_a_renamed_stage_is_missing_and_new(bench: Bench) -> None:
    folder = bench.head / "kernels/sgemm"
    (folder / "02_coalesced.cu").rename(folder / "02_coalesced_loads.cu")
    edit(folder / "ladder.py", "02_coalesced.cu", "02_coalesced_loads.cu")
    gate = bench.gate("coalesced")
    assert gate.code == 1, gate.out
    words = {verdict.id.split("[")[0]: verdict.verdict for verdict in gate.result.cases}
    assert words == {
        "sgemm/02_coalesced": Word.MISSING,
        "sgemm/02_coalesced_loads": Word.NEW,
    }


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (
            "01_naive.cu",
            '#include "blas.cuh"',
            '#include "blass.cuh"',
            r"01_naive\.cu:6.*blass\.cuh",
        ),
        ("ladder.py", "LADDER = Ladder(", "LADDER = Ladder)", r"ladder\.py"),
        ("ladder.py", 'source="01_naive.cu"', 'source="01_naif.cu"', r"01_naif\.cu"),
    ],
)
def test_a_broken_suite_at_head_is_an_error(
    bench: Bench, file: str, old: str, new: str, told: str
) -> None:
    edit(bench.head / "kernels/sgemm" / file, old, new)
    gate = bench.gate("naive")
    assert gate.code == 1, gate.out
    assert {verdict.verdict for verdict in gate.verdicts("naive")} == {Word.ERROR}
    assert re.search(told, gate.out), gate.out


def test_a_cyclic_include_at_head_is_an_error(bench: Bench) -> None:
    for name, other in (("blas.cuh", "layout.cuh"), ("layout.cuh", "blas.cuh")):
        path = bench.head / "kernels/include" / name
        path.write_text(path.read_text().replace("#pragma once", f'#include "{other}"'))
    gate = bench.gate("naive")
    assert gate.code == 1, gate.out
    assert {verdict.verdict for verdict in gate.verdicts("naive")} == {Word.ERROR}
    assert re.search(r"include.*(blas|layout)\.cuh", gate.out), gate.out


def test_a_fault_fixed_at_head_is_an_improvement(bench: Bench) -> None:
    edit(bench.base / "kernels/sgemm/01_naive.cu", "k < K; ++k", "k <= K; ++k")
    gate = bench.gate("naive")
    assert gate.code == 0, gate.out
    assert {verdict.verdict for verdict in gate.verdicts("naive")} == {Word.IMPROVEMENT}


def test_a_base_that_does_not_load_makes_every_case_new(bench: Bench) -> None:
    edit(bench.base / "kernels/sgemm/ladder.py", "LADDER = Ladder(", "LADDER = Ladder)")
    gate = bench.gate("naive")
    assert gate.code == 0, gate.out
    assert {verdict.verdict for verdict in gate.verdicts("naive")} == {Word.NEW}
