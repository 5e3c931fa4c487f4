"""GEMV: ``y = W x`` in bfloat16, the product of a decoding step, judged by bandwidth."""

from __future__ import annotations

from kernels.grids import cdiv
from kernels.spec import (
    Access,
    CudaStage,
    Ladder,
    Launch,
    Operand,
    Problem,
    Size,
    Tile,
    check,
    perf,
)
from kernels.tolerance import BFLOAT16_UNIT_ROUNDOFF, FLOAT32_UNIT_ROUNDOFF, zero_mean_dot_product

PROBLEM = Problem(
    name="gemv",
    title="y[M] = W[M,K] x[K], bfloat16 with float32 sums",
    axes=("M", "K"),
    operands=(
        Operand(name="W", axes=("M", "K"), dtype="bfloat16"),
        Operand(name="x", axes=("K",), dtype="bfloat16"),
        Operand(name="y", axes=("M",), dtype="bfloat16", access=Access.WRITE),
    ),
    parameters=("M", "K", "W", "ldw", "x", "y"),
    flops=lambda size: 2 * size["M"] * size["K"],
    compulsory_bytes=lambda size: 2 * (size["M"] * size["K"] + size["K"] + size["M"]),
    compute="float32",
    reference="gemv_float64",
    baseline="cublas_gemv",
    tolerance=zero_mean_dot_product(
        unit_roundoff=FLOAT32_UNIT_ROUNDOFF, output_unit_roundoff=BFLOAT16_UNIT_ROUNDOFF
    ),
    sizes=(
        perf(M=4096, K=4096),
        perf(M=16384, K=16384),
        check(M=256, K=1024),
        check(M=127, K=333),
    ),
)


def warp_rows(size: Size, tile: Tile) -> Launch:
    """One row a warp, WARPS warps a block."""
    blocks = cdiv(size["M"], tile["WARPS"])
    return Launch(grid=(blocks, 1, 1), block=(32 * tile["WARPS"], 1, 1))


LADDER = Ladder(
    problem=PROBLEM,
    stages=(
        CudaStage(
            source="01_thread_per_row.cu",
            entry="gemv_thread_per_row",
            launch=lambda size, _: Launch(grid=(cdiv(size["M"], 256), 1, 1), block=(256, 1, 1)),
            idea="one thread computes one element of y, straight from the definition",
        ),
        CudaStage(
            source="02_warp_per_row.cu",
            entry="gemv_warp_per_row",
            launch=warp_rows,
            tile={"WARPS": 8},
            idea="a warp walks along a row side by side and adds up by shuffles",
        ),
        CudaStage(
            source="03_vectorized.cu",
            entry="gemv_vectorized",
            launch=warp_rows,
            tile={"WARPS": 4, "UNROLL": 4},
            tile_space={"WARPS": (2, 4, 8, 16), "UNROLL": (1, 2, 4, 8)},
            idea="16-byte loads, several on their way at once, stream W at full bandwidth",
        ),
    ),
)
