"""What the controls of a timed gate run: one kernel, and one Python callable."""

from __future__ import annotations

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
    sizes=(
        # A few microseconds; some ten; a long sum of few blocks; nothing but stores; a millisecond.
        perf(M=256, N=256, K=128),
        perf(M=512, N=512, K=256),
        perf(M=128, N=128, K=4096),
        perf(M=2048, N=1024, K=1),
        perf(M=1024, N=1024, K=2048),
    ),
)
CALLS = 40


def launch(size: Size, _: Tile) -> Launch:
    """One thread an element of C, 32 x 8 a block."""
    return Launch(grid=(size["N"] // 32, size["M"] // 8, 1), block=(32, 8, 1))


def multiply(*arguments: np.ndarray) -> None:
    """Multiply a corner of A and B so many times."""
    a, b, c = (arguments[at][:16, :16] for at in (3, 5, 7))
    for _ in range(CALLS):
        np.matmul(a, b, out=c)


LADDER = Ladder(
    problem=PROBLEM,
    stages=(
        CudaStage(source="control.cu", entry="control", launch=launch, idea="a short kernel"),
        CallableStage(name="calls", build=lambda _device: multiply, idea="40 products"),
    ),
)
