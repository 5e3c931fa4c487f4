"""What SGEMM stages count: the textbook's loads, and samples that equal the whole launch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ci.check.run import check_case, count_case
from ci.measure.simulating import simulator_for
from ci.results.model import Status
from kernels.build import WIDTHS_ARCH, BuiltStage, build_stage
from kernels.spec import CudaStage, Size
from scripts.suite_ladders import sgemm

SUITE, LADDER, STAGES = sgemm()
SIDE = 64
CUBE = {"M": SIDE, "N": SIDE, "K": SIDE}


def _stage(name: str) -> CudaStage:
    return next(stage for stage in STAGES if stage.name == name)


def _built(stage: CudaStage, cache: Path) -> BuiltStage:
    return build_stage(SUITE, LADDER, stage, architectures=[WIDTHS_ARCH], cache=cache)


@pytest.mark.parametrize("name", ["01_naive", "02_coalesced"])
def test_a_product_without_reuse_loads_both_factors_of_every_operation(
    name: str, tmp_path: Path
) -> None:
    built = _built(_stage(name), tmp_path)
    check = check_case(simulator_for(built, tmp_path), built, LADDER, _stage(name), CUBE)
    assert check.counters is not None
    assert check.counters.global_load_elements == 2 * SIDE**3


@pytest.mark.parametrize("side", [4, 8, 16, 32])
def test_a_tile_divides_the_loads_by_its_side(side: int, tmp_path: Path) -> None:
    stage = replace(_stage("03_shared_tile_16"), tile={"BM": side, "BN": side, "BK": side})
    built = _built(stage, tmp_path)
    check = check_case(simulator_for(built, tmp_path), built, LADDER, stage, CUBE)
    assert check.status is Status.PASSED
    assert check.counters is not None
    assert check.counters.global_load_elements == 2 * SIDE**3 // side


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("02_coalesced", {"M": 64, "N": 192, "K": 8}),
        ("03_shared_tile_16", {"M": 93, "N": 90, "K": 7}),
        ("05_block_tile_1d", {"M": 320, "N": 318, "K": 9}),
        ("07_vectorized", {"M": 640, "N": 636, "K": 8}),
    ],
)
def test_a_sampled_case_counts_what_the_whole_launch_counts(
    name: str, size: Size, tmp_path: Path
) -> None:
    stage = _stage(name)
    built = _built(stage, tmp_path)
    sampled = count_case(simulator_for(built, tmp_path), built, LADDER, stage, size)
    assert sampled.counting.startswith("22 of ")
    assert sampled.counting.endswith(" blocks executed, exact")
    assert (sampled.status, sampled.reason) == (
        Status.SKIPPED,
        "the numbers of a sample are not checked",
    )
    whole = check_case(simulator_for(built, tmp_path), built, LADDER, stage, size)
    assert sampled.counters == whole.counters
    assert sampled.lines == whole.lines
    assert whole.counting == ""
