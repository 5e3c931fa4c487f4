"""The benchmarks of the suite in this repository: which there are, and when their history ends."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ci.results.asv_quantities import QUANTITIES, benchmark_version
from kernels.spec import Ladder
from kernels.suite import load_suite
from tests.asv.asv_repository import ROOT

SUITE = load_suite(ROOT / "kernels")
DECLARATIONS = {
    "attention": "ce88889595c82ad0",
    "gemv": "dccbe55d88e3107d",
    "gemv_int4": "589bf7480076a404",
    "projection_fp32": "73c58a7da2c90cd4",
    "sgemm": "e6c1411f6ce1c165",
    "softmax": "7741b7379aeb1e8a",
    "transpose": "bdf8914b754dcab1",
}
"""Ladder → digest of what its problem declares. A changed digest is another problem: asv would
join figures that do not compare, so give the problem a new name (or, where no figure changes,
note the digest here)."""


def declaration(ladder: Ladder) -> str:
    """Return a digest of everything that makes two figures of a problem comparable."""
    problem = ladder.problem
    size = dict.fromkeys(problem.axes, 64)
    told = (
        problem.axes,
        problem.operands,
        problem.parameters,
        problem.flops(size),
        problem.compulsory_bytes(size),
        problem.transposed,
    )
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


@pytest.mark.parametrize("ladder", SUITE.ladders, ids=lambda ladder: ladder.name)
def test_a_problem_and_its_version_move_together(ladder: Ladder) -> None:
    assert declaration(ladder) == DECLARATIONS[ladder.name]


def test_the_set_of_benchmarks_is_the_product_of_ladders_and_quantities(tmp_path: Path) -> None:
    found = discovered(tmp_path)
    expected = {
        f"{ladder.name}.{quantity.name}" for ladder in SUITE.ladders for quantity in QUANTITIES
    }
    assert {entry["name"] for entry in found} == expected
    for entry in found:
        ladder, _, quantity = entry["name"].partition(".")
        (declared,) = (each for each in QUANTITIES if each.name == quantity)
        assert entry["unit"] == declared.unit
        assert entry["version"] == benchmark_version(ladder, declared)
        assert entry["type"] == "track"


def test_every_unit_is_a_plain_label() -> None:
    # asv's pages scale these two, whatever the figure is.
    assert {quantity.unit for quantity in QUANTITIES}.isdisjoint({"seconds", "bytes"})


def discovered(folder: Path) -> list[dict[str, str]]:
    """Return what asv's runner finds, in a process without CuPy."""
    code = (
        "import sys; sys.modules['cupy'] = None; from asv_runner.discovery import _discover;"
        f"_discover(({str(ROOT / 'asv_bench')!r}, {str(folder / 'found.json')!r}))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    found: list[dict[str, str]] = json.loads((folder / "found.json").read_text())
    return found
