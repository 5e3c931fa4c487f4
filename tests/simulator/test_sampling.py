"""A launch counted from some of its blocks: equal to the whole where it says that it is exact."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.simulator import Buffer, Report, run
from ci.simulator.sampling import choose
from tests.simulator.cuda_text import module_of

Triple = tuple[int, int, int]

_EDGE = """
extern "C" __global__ void k(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[8][33];
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  const bool inside = row < rows && column < columns;
  float sum = 0.0f;
  for (int n = 0; n < 3; ++n) {
    tile[threadIdx.y][threadIdx.x] = inside ? in[row * columns + column] : 0.0f;
    __syncthreads();
    sum += tile[threadIdx.y][31 - threadIdx.x];
    __syncthreads();
  }
  if (inside) out[row * columns + column] = sum;
}"""

_LINE = """
extern "C" __global__ void k(const int* in, float* out, int n) {
  const int block = blockIdx.x;
  BODY
}"""


def _launch(
    source: str, grid: Triple, block: Triple, scalars: Sequence[int], *, sample: bool
) -> Report:
    cells = 1 << 16
    return run(
        module_of(source),
        "k",
        grid=grid,
        block=block,
        arguments=[
            Buffer(name="in", data=np.arange(cells, dtype=np.int32) % 7),
            Buffer(name="out", data=np.zeros(cells, np.float32)),
            *(np.int32(scalar) for scalar in scalars),
        ],
        sample=sample,
    )


def _both(
    source: str, grid: Triple, block: Triple, scalars: Sequence[int]
) -> tuple[Report, Report]:
    sampled = _launch(source, grid, block, scalars, sample=True)
    return sampled, _launch(source, grid, block, scalars, sample=False)


@pytest.mark.parametrize("columns", [256, 224, 200, 193])
@pytest.mark.parametrize("rows", [64, 61])
def test_a_ragged_grid_is_counted_exactly_from_its_corners(rows: int, columns: int) -> None:
    grid = (math.ceil(columns / 32), math.ceil(rows / 8), 1)
    sampled, whole = _both(_EDGE, grid, (32, 8, 1), (rows, columns))
    assert sampled.sampling is not None
    assert sampled.sampling.executed == 22 < sampled.sampling.blocks
    assert sampled.sampling.obstacle == ""
    assert sampled.lines == whole.lines
    assert whole.sampling is None


@pytest.mark.parametrize(
    ("body", "obstacle"),
    [
        ("out[block * 3 + threadIdx.x] = 1.0f;", "k.cu:4 is not shifted by whole sectors"),
        ("if (block < 40) out[block * 32 + threadIdx.x] = 1.0f;", "k.cu:4 turns out differently"),
        ("if (block == 40) out[threadIdx.x] = 1.0f;", "k.cu:4 turns out differently"),
        ("if (block != 40) out[threadIdx.x] = 1.0f;", "k.cu:4 turns out differently"),
        ("if (block - 5u < 60u) out[threadIdx.x] = 1.0f;", "k.cu:4 turns out differently"),
        ("out[(block ^ 1) * 32 + threadIdx.x] = 1.0f;", "the address at k.cu:4"),
        ("out[block % 8 * 32 + threadIdx.x * (block % 8)] = 1.0f;", "the address at k.cu:4"),
        ("out[block * block + threadIdx.x] = 1.0f;", "the address at k.cu:4"),
        ("out[block * threadIdx.x] = 1.0f;", "k.cu:4 is not shifted by whole sectors"),
        ("if (in[block] > 3) out[block * 32 + threadIdx.x] = 1.0f;", "the condition at k.cu:4"),
        ("out[in[block] * 32 + threadIdx.x] = 1.0f;", "the address at k.cu:4"),
        (
            "for (int i = block; i < n; i += 100) out[i * 32] = 1.0f;",
            "the condition at k.cu:4",
        ),
    ],
)
def test_what_cannot_be_told_from_corners_is_an_estimate_with_its_line(
    body: str, obstacle: str
) -> None:
    source = _LINE.replace("BODY", body)
    sampled = _launch(source, (100, 1, 1), (32, 1, 1), (250,), sample=True)
    assert sampled.sampling is not None
    assert sampled.sampling.obstacle.startswith(obstacle)


def test_an_estimate_is_the_mean_of_the_blocks_that_ran() -> None:
    source = _LINE.replace("BODY", "if (block < 40) out[block * 32 + threadIdx.x] = 1.0f;")
    sampled, whole = _both(source, (100, 1, 1), (32, 1, 1), (250,))
    assert whole.totals.global_store_requests == 40
    # The first block, and of the 98 between the ends the two of three that ran and store.
    assert sampled.totals.global_store_requests == 1 + math.floor(98 * 2 / 3 + 0.5)


@pytest.mark.parametrize(
    "body",
    [
        "out[block * 32 + threadIdx.x] = in[threadIdx.x];",
        "if (block * 32 + threadIdx.x < n * 10) out[block * 32 + threadIdx.x] = 1.0f;",
        "out[(block << 5 | threadIdx.x) + 8 * n] = 1.0f;",
        "atomicAdd(&out[block * 8 + threadIdx.x / 4], 1.0f);",
        "float own[4]; for (int i = 0; i < 4; ++i) own[i] = in[i]; out[block * 32] = own[n & 3];",
    ],
)
def test_what_an_exact_sample_counts_is_what_the_launch_counts(body: str) -> None:
    sampled, whole = _both(_LINE.replace("BODY", body), (100, 1, 1), (32, 1, 1), (320,))
    assert sampled.sampling is not None
    assert sampled.sampling.obstacle == ""
    assert sampled.totals == whole.totals


def test_hazards_of_a_sample_name_the_blocks_that_ran() -> None:
    source = _LINE.replace("BODY", "out[block * 32 + threadIdx.x + (1 << 16) - 32 * 99] = 1.0f;")
    (hazard,) = _launch(source, (100, 1, 1), (32, 1, 1), (0,), sample=True).hazards
    assert "block (99,0,0)" in hazard.example


def test_a_small_grid_is_executed_in_full() -> None:
    sampled = _launch(_EDGE, (4, 4, 1), (32, 8, 1), (32, 128), sample=True)
    assert sampled.sampling is None


@given(st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 6)))
def test_the_blocks_of_a_sample_stand_for_every_block_once(grid: Triple) -> None:
    sample = choose(grid)
    if sample is None:
        return
    assert sample.weight.sum() == math.prod(grid) * sample.denominator
    assert len(set(sample.numbers.tolist())) == len(sample.numbers)
    assert 0 <= sample.numbers.min() < sample.numbers.max() < math.prod(grid)
    x, y, z = (sample.numbers % grid[0], sample.numbers // grid[0] % grid[1], sample.numbers)
    affine = 5 + 3 * x - 7 * y + 11 * (z // (grid[0] * grid[1]))
    assert not (sample.defect @ affine).any()
