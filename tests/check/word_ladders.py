"""Three small problems, each with words that no matrix product needs, and their references."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ci.check.combination import Contents
from ci.check.reference import Expected, Inputs, KnownAnswer, Reference, Scalars, doubles
from kernels.operands import Floats
from kernels.spec import (
    Access,
    CudaStage,
    Ladder,
    Launch,
    Operand,
    Problem,
    Size,
    Step,
    Suite,
    Tile,
    check,
)
from kernels.tolerance import zero_mean_dot_product

CHUNK = 32


def rows_by_chunks(size: Size, tile: Tile) -> Launch:
    """A block a row, a thread a chunk of its columns."""
    del tile
    return Launch(grid=(size["R"], 1, 1), block=(-(-size["C"] // CHUNK), 1, 1))


def a_row_a_thread(size: Size, tile: Tile) -> Launch:
    """THREADS rows a block."""
    return Launch(grid=(-(-size["R"] // tile["THREADS"]), 1, 1), block=(tile["THREADS"], 1, 1))


def row_sums(inputs: Inputs, scalars: Scalars) -> Expected:
    """Return the sums of rows, or of their absolute values, in float64."""
    x = doubles(inputs["X"])
    x = np.abs(x) if scalars["absolute"] else x
    return Expected(value=x.sum(axis=1)[None, :], condition=np.abs(x).sum(axis=1)[None, :])


ROW_SUMS = Ladder(
    problem=Problem(
        name="row_sums",
        title="y[R] = sum of X[R,C], through partial sums in memory",
        axes=("R", "C"),
        operands=(
            Operand(name="X", axes=("R", "C")),
            Operand(name="P", axes=("R", "C/32"), access=Access.SCRATCH),
            Operand(name="y", axes=("R",), access=Access.WRITE),
        ),
        parameters=("R", "C", "absolute", "X", "ldx", "P", "y"),
        flops=lambda size: size["R"] * size["C"],
        compulsory_bytes=lambda size: 4 * size["R"] * (size["C"] + 1),
        reference="row_sums",
        baseline="",
        tolerance=zero_mean_dot_product(unit_roundoff=2.0**-24),
        sizes=(check(R=6, C=70),),
    ),
    stages=(
        CudaStage(
            source="01_two_kernels.cu",
            entry="partial_sums",
            launch=rows_by_chunks,
            idea="two kernels, the second with a tile parameter",
            tile={"THREADS": 32},
            entry_tile=(),
            parameters=("C", "absolute", "X", "ldx", "P"),
            then=(
                Step(entry="total_sums", launch=a_row_a_thread, parameters=("R", "C", "P", "y")),
            ),
        ),
    ),
)
ROW_SUMS_TEXT = """
__global__ void partial_sums(int C, int absolute, const float* X, int ldx, float* P) {
  const int begin = 32 * threadIdx.x;
  float sum = 0.0f;
  for (int c = begin; c < min(begin + 32, C); ++c) {
    const float x = X[blockIdx.x * ldx + c];
    sum += absolute ? fabsf(x) : x;
  }
  P[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <int THREADS>
__global__ void total_sums(int R, int C, const float* P, float* y) {
  const int row = blockIdx.x * THREADS + threadIdx.x;
  const int chunks = (C + 31) / 32;
  if (row >= R) return;
  float sum = 0.0f;
  for (int i = 0; i < chunks; ++i) sum += P[row * chunks + i];
  y[row] = sum;
}
"""


def scaled(inputs: Inputs, scalars: Scalars) -> Expected:
    """Return factor * x in float64."""
    value = scalars["factor"] * doubles(inputs["x"])
    return Expected(value=value, condition=np.abs(value))


SCALED = Ladder(
    problem=Problem(
        name="scaled",
        title="y[N] = factor * x[N], bfloat16",
        axes=("N",),
        operands=(
            # Read two at a time, without a path for odd addresses.
            Operand(name="x", axes=("N",), dtype="bfloat16", alignment=2),
            Operand(name="y", axes=("N",), dtype="bfloat16", access=Access.WRITE),
        ),
        parameters=("N", "factor", "x", "y"),
        flops=lambda size: size["N"],
        compulsory_bytes=lambda size: 4 * size["N"],
        reference="scaled",
        baseline="",
        tolerance=zero_mean_dot_product(unit_roundoff=2.0**-24, output_unit_roundoff=2.0**-8),
        sizes=(check(N=101),),
    ),
    stages=(
        CudaStage(
            source="01_pairs.cu",
            entry="scaled",
            launch=lambda size, _: Launch(grid=(-(-size["N"] // 64), 1, 1), block=(32, 1, 1)),
            idea="two elements a thread",
        ),
    ),
)
SCALED_TEXT = """
__device__ unsigned short rounded(float value) {
  const unsigned bits = __float_as_uint(value);
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

__global__ void scaled(int N, float factor, const unsigned short* x, unsigned short* y) {
  const int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 1 < N) {
    const unsigned pair = *reinterpret_cast<const unsigned*>(&x[i]);
    y[i] = rounded(factor * __uint_as_float(pair << 16));
    y[i + 1] = rounded(factor * __uint_as_float(pair & 0xffff0000u));
  } else if (i < N) {
    y[i] = rounded(factor * __uint_as_float(x[i] << 16));
  }
}
"""


def unpacked(inputs: Inputs, scalars: Scalars) -> Expected:
    """Return ``(nibble - 8) * scale`` in float64; a scale belongs to 16 nibbles."""
    del scalars
    words = inputs["words"].view(np.uint32)[0]
    nibbles = (words[:, None] >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)).reshape(-1)
    scales = np.repeat(doubles(inputs["scales"])[0], 16)[: nibbles.size]
    value = ((nibbles.astype(np.float64) - 8) * scales)[None, :]
    return Expected(value=value, condition=np.abs(value))


def whole_words(size: Size) -> str | None:
    """Refuse a length that ends within a word."""
    return f"N = {size['N']} is no multiple of 8" if size["N"] % 8 else None


UNPACKED = Ladder(
    problem=Problem(
        name="unpacked",
        title="y[N] = scales[N/16] * (words[N/8] - 8), 4-bit to float16",
        axes=("N",),
        operands=(
            Operand(name="words", axes=("N/8",), dtype="uint32", contents="packed"),
            Operand(name="scales", axes=("N/16",), dtype="float16", contents="scales"),
            Operand(name="y", axes=("N",), dtype="float16", access=Access.WRITE),
        ),
        parameters=("N", "words", "scales", "y"),
        flops=lambda size: size["N"],
        compulsory_bytes=lambda size: (
            4 * -(-size["N"] // 8) + 2 * (-(-size["N"] // 16) + size["N"])
        ),
        reference="unpacked",
        baseline="",
        tolerance=zero_mean_dot_product(unit_roundoff=2.0**-24, output_unit_roundoff=2.0**-11),
        sizes=(check(N=104),),
    ),
    stages=(
        CudaStage(
            source="01_words.cu",
            entry="unpacked",
            launch=lambda size, _: Launch(grid=(-(-size["N"] // 256), 1, 1), block=(32, 1, 1)),
            idea="a word a thread",
            domain=whole_words,
        ),
    ),
)
UNPACKED_TEXT = """
__global__ void unpacked(
    int N, const unsigned* words, const unsigned short* scales, unsigned short* y) {
  const int word = blockIdx.x * blockDim.x + threadIdx.x;
  if (8 * word >= N) return;
  float scale;
  asm("cvt.f32.f16 %0, %1;" : "=f"(scale) : "h"(scales[word / 2]));
  for (int i = 0; i < 8; ++i) {
    const int nibble = words[word] >> 4 * i & 15u;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y[8 * word + i]) : "f"((nibble - 8) * scale));
  }
}
"""


def _row(*values: float) -> Floats:
    return np.array([values], dtype=np.float32)


REFERENCES: Mapping[str, Reference] = {
    "row_sums": Reference(
        compute=row_sums,
        scalars={"absolute": (0, 1)},
        known=KnownAnswer(
            inputs={"X": _row(3, -1, -(2.0**-24))},
            scalars={"absolute": 1},
            answer=np.array([[4 + 2.0**-24]]),
        ),
    ),
    "scaled": Reference(
        compute=scaled,
        scalars={"factor": (1.0, -1.5, 0.1)},
        known=KnownAnswer(
            inputs={"x": _row(2, 1 + 2.0**-7)},
            scalars={"factor": 1 + 2.0**-23},
            answer=np.array([[2 + 2.0**-22, (1 + 2.0**-7) * (1 + 2.0**-23)]]),
        ),
    ),
    "unpacked": Reference(
        compute=unpacked,
        contents=(Contents.RANDOM,),
        known=KnownAnswer(
            inputs={
                "words": np.array([[0xFEDCBA98]], dtype=np.uint32).view(np.float32),
                "scales": _row(0.5),
            },
            scalars={},
            answer=np.array([[0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5]]),
        ),
    ),
}
LADDERS: Mapping[str, tuple[Ladder, str]] = {
    "row_sums": (ROW_SUMS, ROW_SUMS_TEXT),
    "scaled": (SCALED, SCALED_TEXT),
    "unpacked": (UNPACKED, UNPACKED_TEXT),
}
"""Name → the ladder, and the text of its only stage."""


def suite_of(ladder: Ladder, text: str, folder: Path) -> tuple[Suite, CudaStage]:
    """Write a ladder's only stage into a folder, and return the suite and the stage."""
    (stage,) = ladder.stages
    assert isinstance(stage, CudaStage)
    path = folder / ladder.name / stage.source
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return Suite(name="words", folder=folder, ladders=(ladder,)), stage
