"""Every stage compiles for the oldest, a common and the newest architecture, and spills nothing.

``.ci/run`` compiles for all of them, and holds all to no spills (``scripts.no_spills``).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernels import load_suite
from kernels.build import build_stage
from kernels.nvrtc import compile_text
from kernels.spec import ARCHITECTURES, CudaStage, Ladder, Suite

SUITE = load_suite(Path(__file__).parents[2] / "kernels")
STAGES = [
    pytest.param(ladder, stage, id=f"{ladder.name}/{stage.name}")
    for ladder in SUITE.ladders
    for stage in ladder.stages
    if isinstance(stage, CudaStage)
]
MEMORY = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


TRIED = (ARCHITECTURES[0], "sm_90", ARCHITECTURES[-1])


@pytest.mark.parametrize(("ladder", "stage"), STAGES)
def test_a_stage_compiles_for_old_and_new_architectures_without_spills(
    own: Suite, ladder: Ladder, stage: CudaStage, cache: Path
) -> None:
    built = build_stage(own, ladder, stage, architectures=TRIED, cache=cache)
    assert tuple(built.cubins) == tuple(arch for arch in TRIED if arch in stage.architectures)
    for arch, cubin in built.cubins.items():
        figures = MEMORY.findall(cubin.log)
        assert len(figures) == len(cubin.kernels)
        assert set(figures) == {("0", "0", "0")}, f"{stage.name} on {arch}"


def test_compiling_leaves_the_interpreters_own_bytes_alone() -> None:
    # The kind: a library that writes into an immutable object. An empty log has one byte, and
    # Python shares all bytes objects of one byte.
    compile_text("__global__ void k() {}", "k.cu", arch="sm_90", options=(), expressions=("k",))
    assert [bytes([value])[0] for value in range(256)] == list(range(256))
    assert b" "[0] == ord(" ")
