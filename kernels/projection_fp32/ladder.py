"""Linear projection: ``Y = X W^T + b`` in float32, with W as linear layers keep it, [out, in]."""

from __future__ import annotations

from kernels.grids import along_y, cdiv
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
from kernels.tolerance import FLOAT32_UNIT_ROUNDOFF, zero_mean_dot_product

PROBLEM = Problem(
    name="projection_fp32",
    title="Y[M,N] = X[M,K] W[N,K]^T + b[N], float32",
    axes=("M", "N", "K"),
    operands=(
        Operand(name="X", axes=("M", "K")),
        Operand(name="W", axes=("N", "K")),
        Operand(name="b", axes=("N",)),
        Operand(name="Y", axes=("M", "N"), access=Access.WRITE),
    ),
    parameters=("M", "N", "K", "X", "ldx", "W", "ldw", "b", "Y", "ldy"),
    flops=lambda size: size["M"] * size["N"] * (2 * size["K"] + 1),
    compulsory_bytes=lambda size: (
        4 * (size["M"] * size["K"] + size["N"] * size["K"] + size["N"] + size["M"] * size["N"])
    ),
    reference="projection_float64",
    baseline="cublas_projection",
    tolerance=zero_mean_dot_product(unit_roundoff=FLOAT32_UNIT_ROUNDOFF),
    sizes=(
        perf(M=4096, N=4096, K=4096),
        perf(M=4095, N=4093, K=4091),
        check(M=256, N=256, K=256),
        check(M=127, N=65, K=33),
    ),
)


def block_tiles(size: Size, tile: Tile) -> Launch:
    """BM x BN of Y a block, TM x TN a thread; a thread tile not declared is one element."""
    threads = tile["BM"] * tile["BN"] // (tile.get("TM", 1) * tile.get("TN", 1))
    grid = (cdiv(size["N"], tile["BN"]), *along_y(cdiv(size["M"], tile["BM"])))
    return Launch(grid=grid, block=(threads, 1, 1))


LADDER = Ladder(
    problem=PROBLEM,
    stages=(
        CudaStage(
            source="01_shared_tile.cu",
            entry="projection_shared_tile",
            launch=block_tiles,
            tile={"BM": 32, "BN": 32, "BK": 32},
            idea="tiles of X and W wait in shared memory: a loaded element serves 32 threads",
        ),
        CudaStage(
            source="02_block_tile_1d.cu",
            entry="projection_block_tile_1d",
            launch=block_tiles,
            tile={"BM": 64, "BN": 64, "BK": 8, "TM": 8},
            idea="a thread keeps TM elements of Y in registers: one read of W feeds TM FMAs",
        ),
        CudaStage(
            source="03_block_tile_2d.cu",
            entry="projection_block_tile_2d",
            launch=block_tiles,
            tile={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
            idea="a thread owns TM x TN of Y: TM + TN shared reads feed TM * TN FMAs",
        ),
        CudaStage(
            source="04_vectorized.cu",
            entry="projection_vectorized",
            launch=block_tiles,
            tile={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
            idea="every access moves four elements, from device memory and from shared memory",
        ),
    ),
)
