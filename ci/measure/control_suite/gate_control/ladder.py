"""The controls of a timed gate: code that is equal to itself, and the same slowed on purpose."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernels.spec import (
    Access,
    CallableStage,
    CudaStage,
    Ladder,
    Launch,
    Operand,
    Problem,
    Size,
    Tile,
    perf,
)
from kernels.tolerance import FLOAT32_UNIT_ROUNDOFF, zero_mean_dot_product

PROBLEM = Problem(
    name="gate_control",
    title="C[M,N] = A[M,K] B[K,N], float32",
    axes=("M", "N", "K"),
    operands=(
        Operand(name="A", axes=("M", "K")),
        Operand(name="B", axes=("K", "N")),
        Operand(name="C", axes=("M", "N"), access=Access.WRITE),
    ),
    parameters=("M", "N", "K", "A", "lda", "B", "ldb", "C", "ldc"),
    flops=lambda size: 2 * size["M"] * size["N"] * size["K"],
    compulsory_bytes=lambda size: (
        4 * (size["M"] * size["K"] + size["K"] * size["N"] + size["M"] * size["N"])
    ),
    reference="gemm_float64",
    baseline="none",
    tolerance=zero_mean_dot_product(unit_roundoff=FLOAT32_UNIT_ROUNDOFF),
    sizes=(perf(M=256, N=256, K=1024),),
)
CALLS, MORE_CALLS = 40, 60
"""Processors' times are noisier than a GPU's, so the slowdown is larger."""


def launch(size: Size, _: Tile) -> Launch:
    """One thread an element of C, 32 x 8 a block."""
    return Launch(grid=(size["N"] // 32, size["M"] // 8, 1), block=(32, 8, 1))


def repeated(calls: int) -> Callable[[str], Callable[..., object]]:
    """Return what builds a function that multiplies a corner of A and B so many times."""

    def multiply(*arguments: np.ndarray) -> None:
        a, b, c = (arguments[at][:16, :16] for at in (3, 5, 7))
        for _ in range(calls):
            np.matmul(a, b, out=c)

    return lambda _device: multiply


LADDER = Ladder(
    problem=PROBLEM,
    stages=(
        CudaStage(source="equal.cu", entry="control_equal", launch=launch, idea="K steps"),
        CudaStage(
            source="slowed.cu", entry="control_slowed", launch=launch, idea="K + 32 steps: 3.1 %"
        ),
        CallableStage(name="equal_calls", build=repeated(CALLS), idea="40 products"),
        CallableStage(name="slowed_calls", build=repeated(MORE_CALLS), idea="60 products"),
    ),
)
