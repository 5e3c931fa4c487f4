"""The ladder reads as a course: one header, one section order, one ingredient a rung."""

from __future__ import annotations

import difflib
from itertools import pairwise
from pathlib import Path

import pytest

from kernels import load_suite
from kernels.spec import CudaStage

SUITE = load_suite(Path(__file__).parents[2] / "kernels")
(LADDER,) = [ladder for ladder in SUITE.ladders if ladder.name == "sgemm"]
RUNGS = [SUITE.source_path(LADDER, s) for s in LADDER.stages if isinstance(s, CudaStage)]
SECTIONS = ("#include", "__global__", "// Which tile am I", "// Main loop", "// Write-back")
DIFF_LIMIT = 0.40
"""Share of its predecessor's lines a rung may change without saying so."""


def lines(path: Path) -> list[str]:
    """Return a rung's code lines: no header, no blank lines, no indentation."""
    body = path.read_text(encoding="utf-8").splitlines()[5:]
    return [line.strip() for line in body if line.strip()]


def changed_share(before: list[str], after: list[str]) -> float:
    """Return the share of the lines of ``before`` that ``after`` does not keep."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return 1 - sum(block.size for block in matcher.get_matching_blocks()) / len(before)


@pytest.mark.parametrize("rung", RUNGS, ids=lambda path: path.stem)
def test_a_rung_opens_with_the_five_line_header(rung: Path) -> None:
    header = rung.read_text(encoding="utf-8").splitlines()[:6]
    starts = ("// C[M,N] = alpha", "// ", "// Why ", "// Bound by: ", "// Needs ", "#include")
    assert all(line.startswith(start) for line, start in zip(header, starts, strict=True))
    assert "After S. Boehm (2022), kernel" in header[4]


@pytest.mark.parametrize("rung", RUNGS, ids=lambda path: path.stem)
def test_a_rung_keeps_the_section_order_and_the_length_limit(rung: Path) -> None:
    text = rung.read_text(encoding="utf-8")
    assert [text.index(section) for section in SECTIONS] == sorted(
        text.index(section) for section in SECTIONS
    )
    assert len(text.splitlines()) <= 200
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(("before", "after"), list(pairwise(RUNGS)), ids=lambda path: path.stem)
def test_a_rung_changes_little_of_the_one_before_or_says_what_it_rewrites(
    before: Path, after: Path
) -> None:
    adds = after.read_text(encoding="utf-8").splitlines()[1]
    assert adds.startswith(f"// Adds to {before.stem[:2]}: ")
    share = changed_share(lines(before), lines(after))
    assert (share > DIFF_LIMIT) == ("Rewrites" in adds), f"{share:.0%} of {before.name} changed"


def test_a_rewrite_is_over_the_limit_and_a_renaming_is_not() -> None:
    before = ["a", "b", "c", "d", "e"]
    assert changed_share(before, ["a", "b", "c", "x", "e"]) < DIFF_LIMIT
    assert changed_share(before, ["x", "y", "z", "d", "e"]) > DIFF_LIMIT
