"""A small outside suite to break in every way, and one cache of compiled texts for the session."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels import load_suite
from kernels.spec import CudaStage, Ladder, Suite

LADDER_TEXT = """
from kernels import CudaStage, Ladder, Launch, Operand, Problem, Access, check
from kernels.tolerance import zero_mean_dot_product

LADDER = Ladder(
    problem=Problem(
        name="copy",
        title="Y = X",
        axes=("N",),
        operands=(
            Operand(name="X", axes=("N",)),
            Operand(name="Y", axes=("N",), access=Access.WRITE),
        ),
        parameters=("N", "X", "Y"),
        flops=lambda size: 0,
        compulsory_bytes=lambda size: 8 * size["N"],
        reference="copy",
        baseline="copy",
        tolerance=zero_mean_dot_product(unit_roundoff=2.0**-24),
        sizes=(check(N=100),),
    ),
    stages=(
        CudaStage(
            source="01_copy.cu",
            entry="copy",
            launch=lambda size, tile: Launch(grid=(1, 1, 1), block=(128, 1, 1)),
            idea="one thread an element",
        ),
    ),
)
"""

COPY_TEXT = """#include "words.cuh"

__global__ void copy(int N, const float* X, float* Y) {
  __shared__ float staged[128];
  const int i = place();
  if (i < N) {
    staged[i] = X[i];
    Y[i] = staged[i];
  }
}
"""

WORDS_TEXT = """#pragma once

__device__ int place() { return blockIdx.x * blockDim.x + threadIdx.x; }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a sound suite of one ladder, ``copy``, with one stage and one header."""
    root = tmp_path / "outside"
    for path, text in (
        ("copy/ladder.py", LADDER_TEXT),
        ("copy/01_copy.cu", COPY_TEXT),
        ("include/words.cuh", WORDS_TEXT),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for compiled texts, shared by the session's tests."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="session")
def own() -> Suite:
    """Return the repository's own suite."""
    return load_suite(Path(__file__).parents[2] / "kernels")


@pytest.fixture(scope="session")
def sgemm(own: Suite) -> Ladder:
    """Return the SGEMM ladder."""
    return next(ladder for ladder in own.ladders if ladder.name == "sgemm")


def stages(ladder: Ladder) -> list[CudaStage]:
    """Return the CUDA stages of a ladder, in rung order."""
    return [stage for stage in ladder.stages if isinstance(stage, CudaStage)]
