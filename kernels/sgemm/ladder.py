"""SGEMM: ``C = alpha*A*B + beta*C`` in float32, from one thread per element to warp tiles."""

from __future__ import annotations

from kernels.grids import along_y, cdiv
from kernels.spec import (
    Access,
    CudaStage,
    Ladder,
    Launch,
    Layout,
    Operand,
    Problem,
    Size,
    Tile,
    check,
    perf,
)
from kernels.tolerance import FLOAT32_UNIT_ROUNDOFF, zero_mean_dot_product

BOTH = (Layout.ROW, Layout.COLUMN)
PROBLEM = Problem(
    name="sgemm",
    title="C[M,N] = alpha * A[M,K] B[K,N] + beta * C, float32",
    axes=("M", "N", "K"),
    operands=(
        Operand(name="A", axes=("M", "K"), layouts=BOTH),
        Operand(name="B", axes=("K", "N"), layouts=BOTH),
        Operand(name="C", axes=("M", "N"), access=Access.UPDATE, layouts=BOTH),
    ),
    parameters=("M", "N", "K", "alpha", "A", "lda", "B", "ldb", "beta", "C", "ldc"),
    flops=lambda size: 2 * size["M"] * size["N"] * size["K"],
    compulsory_bytes=lambda size: (
        4 * (size["M"] * size["K"] + size["K"] * size["N"] + 2 * size["M"] * size["N"])
    ),
    reference="gemm_float64",
    baseline="cublas_sgemm",
    tolerance=zero_mean_dot_product(unit_roundoff=FLOAT32_UNIT_ROUNDOFF),
    sizes=(
        perf(M=4096, N=4096, K=4096),
        perf(M=4092, N=4092, K=4092),
        check(M=256, N=256, K=256),
        check(M=127, N=65, K=33),
    ),
    transposed=(("M", "N"), ("A", "B")),
)


def block_tiles(size: Size, tile: Tile) -> Launch:
    """BM x BN of C a block, TM x TN a thread; a thread tile not declared is one element."""
    threads = tile["BM"] * tile["BN"] // (tile.get("TM", 1) * tile.get("TN", 1))
    return Launch(grid=covering(size, tile), block=(threads, 1, 1))


def warp_tiles(size: Size, tile: Tile) -> Launch:
    """BM x BN of C a block, WM x WN a warp of 32 threads."""
    warps = tile["BM"] // tile["WM"] * (tile["BN"] // tile["WN"])
    return Launch(grid=covering(size, tile), block=(32 * warps, 1, 1))


def covering(size: Size, tile: Tile) -> tuple[int, int, int]:
    """Return the grid of BM x BN tiles that covers C, columns along x."""
    return (cdiv(size["N"], tile["BN"]), *along_y(cdiv(size["M"], tile["BM"])))


LADDER = Ladder(
    problem=PROBLEM,
    stages=(
        CudaStage(
            source="01_naive.cu",
            entry="sgemm_naive",
            launch=lambda size, _: Launch(
                grid=(cdiv(size["M"], 32), *along_y(cdiv(size["N"], 8))), block=(32, 8, 1)
            ),
            idea="one thread computes one element of C, and a warp walks down its rows",
            credit="S. Boehm 2022, kernel 1",
        ),
        CudaStage(
            source="02_coalesced.cu",
            entry="sgemm_coalesced",
            launch=lambda size, _: Launch(
                grid=(cdiv(size["N"], 32), *along_y(cdiv(size["M"], 8))), block=(32, 8, 1)
            ),
            idea="a warp walks along a row of C, so its loads fall into few sectors",
            credit="S. Boehm 2022, kernel 2",
        ),
        CudaStage(
            source="03_shared_tile_16.cu",
            entry="sgemm_shared_tile",
            launch=block_tiles,
            tile={"BM": 16, "BN": 16, "BK": 16},
            idea="tiles of A and B wait in shared memory: a loaded element serves 16 threads",
            credit="S. Boehm 2022, kernel 3",
        ),
        CudaStage(
            source="04_shared_tile_32.cu",
            entry="sgemm_shared_tile",
            launch=block_tiles,
            tile={"BM": 32, "BN": 32, "BK": 32},
            idea="a larger tile: a loaded element serves 32 threads",
            credit="S. Boehm 2022, kernel 3",
        ),
        CudaStage(
            source="05_block_tile_1d.cu",
            entry="sgemm_block_tile_1d",
            launch=block_tiles,
            tile={"BM": 64, "BN": 64, "BK": 8, "TM": 8},
            idea="a thread keeps TM elements of C in registers: one read of B feeds TM FMAs",
            credit="S. Boehm 2022, kernel 4",
        ),
        CudaStage(
            source="06_block_tile_2d.cu",
            entry="sgemm_block_tile_2d",
            launch=block_tiles,
            tile={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
            idea="a thread owns TM x TN of C: TM + TN shared reads feed TM * TN FMAs",
            credit="S. Boehm 2022, kernel 5",
        ),
        CudaStage(
            source="07_vectorized.cu",
            entry="sgemm_vectorized",
            launch=block_tiles,
            tile={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
            idea="every access moves four elements; A is transposed on its way to shared memory",
            credit="S. Boehm 2022, kernel 6",
        ),
        CudaStage(
            source="08_autotuned.cu",
            entry="sgemm_autotuned",
            launch=block_tiles,
            tile={"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8},
            # sm_80: S. Boehm's search on an A100, the default his on an A6000; sm_90: ours on an
            # H200 (tune/nvidia-h200-0), 3.4 % faster there than the default.
            tile_by_arch={
                "sm_80": {"BM": 64, "BN": 64, "BK": 16, "TM": 4, "TN": 4},
                "sm_90": {"BM": 64, "BN": 128, "BK": 16, "TM": 8, "TN": 8},
            },
            tile_space={
                "BM": (64, 128),
                "BN": (64, 128, 256),
                "BK": (8, 16, 32),
                "TM": (4, 8),
                "TN": (4, 8),
            },
            idea="the tile is a parameter, chosen for each GPU",
            credit="S. Boehm 2022, kernel 9",
        ),
        CudaStage(
            source="09_warp_tile.cu",
            entry="sgemm_warp_tile",
            launch=warp_tiles,
            tile={
                "BM": 128,
                "BN": 128,
                "BK": 16,
                "WM": 64,
                "WN": 32,
                "WNITER": 2,
                "TM": 4,
                "TN": 4,
            },
            tile_space={
                "BM": (128,),
                "BN": (128, 256),
                "BK": (8, 16),
                "WM": (32, 64),
                "WN": (32, 64),
                "WNITER": (1, 2, 4),
                "TM": (4, 8),
                "TN": (4,),
            },
            idea="a warp owns WM x WN of C: its lanes read neighbours, free of bank conflicts",
            credit="S. Boehm 2022, kernel 10",
        ),
        CudaStage(
            source="10_double_buffer.cu",
            entry="sgemm_double_buffer",
            launch=warp_tiles,
            tile={
                "BM": 128,
                "BN": 256,
                "BK": 8,
                "WM": 64,
                "WN": 64,
                "WNITER": 4,
                "TM": 4,
                "TN": 4,
            },
            tile_space={
                "BM": (64, 128),
                "BN": (128, 256),
                "BK": (8, 16),
                "WM": (32, 64),
                "WN": (64,),
                "WNITER": (2, 4),
                "TM": (4, 8),
                "TN": (4,),
            },
            idea="the next tile travels to registers while this one is computed: nothing waits",
            credit="S. Boehm 2022, kernel 11",
        ),
    ),
)
