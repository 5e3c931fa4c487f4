"""Broken copies of real stages: each must turn its stage INCORRECT, and be named."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import kernels
from ci.check.run import StageCheck, check_stage
from ci.devices.simulator import SimulatorDevice
from ci.results.model import Status
from kernels.build import build_stage
from kernels.spec import CudaStage, Ladder, Suite
from kernels.suite import load_suite

REAL_SUITE = Path(kernels.__file__).parent


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One mistake: what is replaced in a source, and what must be said of it."""

    name: str
    source: str
    """The stage's source."""
    old: str
    new: str
    said: str
    """A phrase of some sub-check's detail, or of some finding."""
    included: str = ""
    """The header with the mistake, if it is not in the stage's own source."""


FAULTS = (
    Fault(
        name="A is indexed with K instead of its leading dimension",
        source="sgemm/01_naive.cu",
        old="A[at<A_COL>(row, k, lda)]",
        new="A[at<A_COL>(row, k, A_COL ? M : K)]",
        said="this is the result with A read with leading dimension",
    ),
    Fault(
        name="the guard of the rows lets one row too many through",
        source="sgemm/01_naive.cu",
        old="row >= M",
        new="row > M",
        said="out-of-bounds",
    ),
    Fault(
        name="the guard of the columns writes into the slack",
        source="sgemm/01_naive.cu",
        old="column >= N",
        new="column > N",
        said="the slack of C, 1 past the end of",
    ),
    Fault(
        name="the tile's indices are swapped",
        source="sgemm/03_shared_tile_16.cu",
        old="const int m0 = block_y() * BM;\n  const int n0 = blockIdx.x * BN;",
        new="const int m0 = blockIdx.x * BM;\n  const int n0 = block_y() * BN;",
        said="these elements were not written",
    ),
    Fault(
        name="beta is ignored",
        source="sgemm/02_coalesced.cu",
        old="update(&C[at<false>(row, column, ldc)], alpha, acc, beta);",
        new="C[at<false>(row, column, ldc)] = alpha * acc;",
        said="this is the result with beta = 0 instead of",
    ),
    Fault(
        name="alpha is ignored",
        source="sgemm/02_coalesced.cu",
        old="alpha, acc, beta",
        new="1.0f, acc, beta",
        said="this is the result with alpha = 1 instead of -1.5",
    ),
    Fault(
        name="C is read at beta = 0",
        source="sgemm/02_coalesced.cu",
        old="update(&C[at<false>(row, column, ldc)], alpha, acc, beta);",
        new="float* c = &C[at<false>(row, column, ldc)]; *c = alpha * acc + beta * *c;",
        said="as if the kernel had read C, although beta = 0",
    ),
    Fault(
        name="C is read where nothing was written",
        source="sgemm/01_naive.cu",
        old="alpha, acc, beta",
        new="alpha, acc, beta != 2.0f ? C[at<false>(row, column, ldc)] > 0.0f ? beta : 0.0f : beta",
        said="uninitialised global read",
    ),
    Fault(
        name="the tail of K is dropped",
        source="sgemm/03_shared_tile_16.cu",
        old="k0 < K; k0 += BK",
        new="k0 + BK <= K; k0 += BK",
        said="the tail beyond a multiple of 16 is dropped",
    ),
    Fault(
        name="the guard of the write-back is dropped",
        source="sgemm/03_shared_tile_16.cu",
        old="if (row < M && column < N) {",
        new="{",
        said="out-of-bounds",
    ),
    Fault(
        name="the guard of the loads along K is dropped",
        source="sgemm/03_shared_tile_16.cu",
        old="k0 + a_k, M, K, lda",
        new="k0 + a_k, M, K + BK, lda",
        said="NaN as if the kernel had read",
    ),
    Fault(
        name="the barrier after the loads is dropped",
        source="sgemm/03_shared_tile_16.cu",
        old="    __syncthreads();\n    for",
        new="    for",
        said="race",
    ),
    Fault(
        name="the barrier before the next loads is dropped",
        source="sgemm/03_shared_tile_16.cu",
        old="    }\n    __syncthreads();\n",
        new="    }\n",
        said="race",
    ),
    Fault(
        name="B is read in the other layout",
        source="sgemm/01_naive.cu",
        old="B[at<B_COL>(k, column, ldb)]",
        new="B[at<!B_COL>(k, column, ldb)]",
        said="this is the result with B read as",
    ),
    Fault(
        name="the result is written transposed",
        source="sgemm/01_naive.cu",
        old="at<false>(row, column, ldc)",
        new="at<true>(row, column, M)",
        said="the right values are there with C written as",
    ),
    Fault(
        name="NaN is swallowed",
        source="sgemm/01_naive.cu",
        old="alpha, acc, beta",
        new="alpha, fmaxf(acc, -1e30f), beta",
        said="want nan",
    ),
    Fault(
        name="the inputs are rounded to TF32",
        source="sgemm/01_naive.cu",
        old="A[at<A_COL>(row, k, lda)] * B[at<B_COL>(k, column, ldb)]",
        new=(
            "__uint_as_float((__float_as_uint(A[at<A_COL>(row, k, lda)]) + 0x1000u) & ~0x1fffu) * "
            "__uint_as_float((__float_as_uint(B[at<B_COL>(k, column, ldb)]) + 0x1000u) & ~0x1fffu)"
        ),
        said="this is the result with the inputs rounded to TF32",
    ),
    Fault(
        name="vectors are loaded from unaligned operands",
        source="sgemm/07_vectorized.cu",
        old="a_vectors = made_of_vectors(A, A_COL ? M : K, lda)",
        new="a_vectors = true",
        said="misaligned",
    ),
    Fault(
        name="the last vector of a line is taken for outside",
        source="sgemm/07_vectorized.cu",
        included="include/vector.cuh",
        old="return row < rows && column < columns",
        new="return row < rows && column + 4 < columns",
        said="wrong, first C[0, 0]",
    ),
    Fault(
        name="the last vector of a row of C is not written",
        source="sgemm/07_vectorized.cu",
        included="include/vector.cuh",
        old="else if (inside > 0)",
        new="else if (inside > 4)",
        said="these elements were not written",
    ),
    Fault(
        name="an ignored edge leaves the last columns out",
        source="sgemm/06_block_tile_2d.cu",
        old="row < M && column < N",
        new="row < M && n0 + BN <= N",
        said="beyond the last full tile of 128",
    ),
)


def stage_of(suite: Suite, source: str) -> tuple[Ladder, CudaStage]:
    """Return the stage whose source has that path in the suite."""
    folder, file = source.split("/")
    ladder = next(ladder for ladder in suite.ladders if ladder.name == folder)
    stage = next(stage for stage in ladder.stages if stage.name == file.removesuffix(".cu"))
    assert isinstance(stage, CudaStage)
    return ladder, stage


def checked(folder: Path, source: str, cache: Path) -> StageCheck:
    suite = load_suite(folder)
    ladder, stage = stage_of(suite, source)
    built = build_stage(suite, ladder, stage, architectures=(), cache=cache)
    return check_stage(SimulatorDevice({}), built, ladder, stage)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_incorrect_and_named(fault: Fault, tmp_path: Path) -> None:
    told = sentences_about(fault, tmp_path)
    assert any(fault.said in sentence for sentence in told), told


def sentences_about(fault: Fault, tmp_path: Path) -> list[str]:
    """Return what a check says of a suite with the fault, which it must find INCORRECT."""
    folder = tmp_path / "suite"
    for part in (fault.source.split("/")[0], "include"):
        shutil.copytree(REAL_SUITE / part, folder / part)
    path = folder / (fault.included or fault.source)
    text = path.read_text()
    assert text.count(fault.old) == 1
    path.write_text(text.replace(fault.old, fault.new))

    broken = checked(folder, fault.source, tmp_path / "cache")

    assert broken.status is Status.INCORRECT
    told = [subcheck.detail for subcheck in broken.subchecks if not subcheck.passed]
    found = [f"{finding.kind} {finding.file} {finding.example}" for finding in broken.findings]
    return told + found


SOURCES = [
    f"{ladder.name}/{stage.source}"
    for ladder in load_suite(REAL_SUITE).ladders
    for stage in ladder.stages
    if isinstance(stage, CudaStage)
]


@pytest.mark.parametrize("source", SOURCES)
def test_every_stage_as_it_is_passes_its_whole_plan(source: str, tmp_path: Path) -> None:
    right = checked(REAL_SUITE, source, tmp_path)
    assert (right.status, right.reason) == (Status.PASSED, "")
