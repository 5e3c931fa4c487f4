"""A case explained from the command line: counters and findings beside the lines they are of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.end_to_end.test_not_emulated import CASE as WGMMA
from tests.end_to_end.test_not_emulated import REASON, SOURCE, STAGE
from tests.verbs.test_cli import ROOT, assert_refused, flopwatch

CASE = "product/01_naive[M=32,N=16,K=8]"
KERNEL = "kernels/product/01_naive.cu"
INNER = "sum += A[A_COL ? k * lda + row : row * lda + k]"
GUARD = "if (row >= M || column >= N) return;"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A checkout of the smallest suite, without git."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests/fixtures/suites/tiny", tmp_path / "kernels", ignore=ignored)
    return tmp_path


def _edit(folder: Path, old: str, new: str) -> None:
    source = folder / KERNEL
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))


def test_counters_stand_beside_the_line_they_are_of(tiny: Path) -> None:
    done = flopwatch("explain", CASE, cwd=tiny)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    assert rows[0] == f"{CASE}  PASSED"
    # No reuse: both factors of each of the 2K operations of an output are loaded.
    assert "  loads per output element: 16" in rows
    listed = next(row for row in rows if row.split()[:1] == ["10"])
    assert listed.split()[1:4] == ["256", "512", "384"]
    assert INNER in listed


def test_json_holds_what_the_text_shows(tiny: Path) -> None:
    done = flopwatch("explain", CASE, "--format", "json", cwd=tiny)
    told = json.loads(done.stdout)
    assert (told["id"], told["status"], told["output_elements"]) == (CASE, "PASSED", 512)
    assert told["counters"]["global_load_elements"] == 2 * 32 * 16 * 8
    for name, total in told["counters"].items():
        assert sum(line["counters"].get(name, 0) for line in told["lines"]) == total, name


@pytest.mark.parametrize(
    ("form", "start"), [("text", "  printed by row "), ("markdown", "| <code>printed by row ")]
)
def test_what_the_kernel_prints_is_shown(tiny: Path, form: str, start: str) -> None:
    _edit(tiny, GUARD, GUARD + ' if (column == 0) printf("printed by row %d `|\\n", row);')
    done = flopwatch("explain", CASE, "--format", form, cwd=tiny)
    assert done.returncode == 0, done.stderr
    printed = [line for line in done.stdout.splitlines() if line.startswith(start)]
    assert {int(line.removeprefix(start).split()[0]) for line in printed} == set(range(32))
    assert len(printed) == 32


def test_a_finding_stands_below_its_line_and_is_exit_code_1(tiny: Path) -> None:
    _edit(tiny, "k < K; ++k", "k <= K; ++k")
    done = flopwatch("explain", CASE, cwd=tiny)
    assert done.returncode == 1
    rows = done.stdout.splitlines()
    assert rows[0].startswith(f"{CASE}  INCORRECT  ")
    place = next(index for index, row in enumerate(rows) if row.strip().startswith("^"))
    assert "out-of-bounds read" in rows[place]
    assert INNER in rows[place - 1]
    worst = rows[rows.index("worst lines") + 1]
    assert worst.startswith("  product/01_naive.cu:10  out-of-bounds read")


def test_what_is_not_emulated_is_named_with_its_line(tiny: Path) -> None:
    (tiny / "kernels/product/02_wgmma.cu").write_text(SOURCE)
    ladder = tiny / "kernels/product/ladder.py"
    ladder.write_text(ladder.read_text().rstrip().removesuffix("\n    ),\n)") + STAGE)
    done = flopwatch("explain", WGMMA, cwd=tiny)
    assert done.returncode == 1
    assert done.stdout == f"{WGMMA}  NOT_EMULATED  {REASON}\n"


def test_what_does_not_compile_says_so(tiny: Path) -> None:
    _edit(tiny, GUARD, "if (row >= M || column >= N) retur;")
    done = flopwatch("explain", CASE, cwd=tiny)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{CASE}  COMPILE_ERROR  ")
    assert "retur" in done.stdout


def test_markdown_shows_source_as_code(tiny: Path) -> None:
    done = flopwatch("explain", CASE, "--format", "markdown", cwd=tiny)
    assert f"## `{CASE}`" in done.stdout
    assert "### product/01\\_naive.cu" in done.stdout


def test_an_unknown_case_is_refused_with_the_nearest_ones(tiny: Path) -> None:
    done = flopwatch("explain", "product/01_naiv[M=32,N=16,K=8]", cwd=tiny)
    assert_refused(done, "no such case", CASE, "flopwatch list")


def test_a_suite_that_is_not_there_is_refused(tiny: Path) -> None:
    assert_refused(flopwatch("explain", CASE, "--suite", "nowhere", cwd=tiny), "nowhere")
