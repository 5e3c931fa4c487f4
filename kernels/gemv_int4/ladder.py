"""GEMV with 4-bit weights: a quarter of the bytes of bfloat16, taken apart in registers."""

from __future__ import annotations

from kernels.grids import cdiv
from kernels.spec import (
    ARCHITECTURES,
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
    name="gemv_int4",
    title="y[M] = (scales * (Wq - 8))[M,K] x[K], 4-bit weights, a scale for 128 of a row",
    axes=("M", "K"),
    operands=(
        # Rows are read in 16-byte vectors wherever K is a multiple of 32.
        Operand(name="Wq", axes=("M", "K/8"), dtype="uint32", contents="packed", alignment=4),
        Operand(name="scales", axes=("M", "K/128"), dtype="bfloat16", contents="scales"),
        Operand(name="x", axes=("K",), dtype="bfloat16"),
        Operand(name="y", axes=("M",), dtype="bfloat16", access=Access.WRITE),
    ),
    parameters=("M", "K", "Wq", "scales", "x", "y"),
    flops=lambda size: 2 * size["M"] * size["K"],
    compulsory_bytes=lambda size: (
        size["M"] * (4 * cdiv(size["K"], 8) + 2 * cdiv(size["K"], 128))
        + 2 * (size["K"] + size["M"])
    ),
    compute="float32",
    reference="gemv_int4_float64",
    baseline="",
    tolerance=zero_mean_dot_product(
        unit_roundoff=FLOAT32_UNIT_ROUNDOFF, output_unit_roundoff=BFLOAT16_UNIT_ROUNDOFF
    ),
    sizes=(
        perf(M=4096, K=4096),
        perf(M=16384, K=16384),
        check(M=256, K=1024),
        check(M=127, K=328),
    ),
)


FROM_SM_80 = tuple(arch for arch in ARCHITECTURES if arch != "sm_75")
"""What has mma of bfloat16, and asynchronous copies."""


def whole_words(size: Size) -> str | None:
    """Refuse a row that ends within a word of eight weights."""
    return f"K = {size['K']} is no multiple of 8, the weights of a word" if size["K"] % 8 else None


def warp_rows(size: Size, tile: Tile) -> Launch:
    """ROWS rows a warp (one where the tile does not say), WARPS warps a block."""
    blocks = cdiv(size["M"], tile["WARPS"] * tile.get("ROWS", 1))
    return Launch(grid=(blocks, 1, 1), block=(32 * tile["WARPS"], 1, 1))


def copied_rows(size: Size, tile: Tile) -> Launch:
    """16 rows a block; room for STAGES chunks of 16 x 512 weights, and their x, for each warp."""
    return Launch(
        grid=(cdiv(size["M"], 16), 1, 1),
        block=(32 * tile["WARPS"], 1, 1),
        dynamic_shared_bytes=tile["WARPS"] * tile["STAGES"] * (16 * 512 // 2 + 512 * 2),
    )


LADDER = Ladder(
    problem=PROBLEM,
    stages=(
        CudaStage(
            source="01_warp_per_row.cu",
            entry="gemv_int4_warp_per_row",
            launch=warp_rows,
            tile={"WARPS": 8},
            domain=whole_words,
            idea="a warp takes words of eight weights apart in registers",
        ),
        CudaStage(
            source="02_vectorized.cu",
            entry="gemv_int4_vectorized",
            launch=warp_rows,
            tile={"WARPS": 8, "ROWS": 4},
            tile_space={"WARPS": (2, 4, 8), "ROWS": (1, 2, 4, 8)},
            domain=whole_words,
            idea="32 weights a load, and several rows share what was unpacked of x",
        ),
        CudaStage(
            source="03_tensor_core.cu",
            entry="gemv_int4_tensor_core",
            launch=lambda size, tile: Launch(
                grid=(cdiv(size["M"], 16), 1, 1), block=(32 * tile["WARPS"], 1, 1)
            ),
            tile={"WARPS": 8},
            tile_space={"WARPS": (2, 4, 8, 16)},
            architectures=FROM_SM_80,
            domain=whole_words,
            idea="tensor cores multiply: a weight stays half of a bfloat16 pair",
        ),
        CudaStage(
            source="04_async_copies.cu",
            entry="gemv_int4_async_copies",
            launch=copied_rows,
            tile={"WARPS": 4, "STAGES": 3},
            tile_space={"WARPS": (2, 4, 8), "STAGES": (2, 3, 4)},
            architectures=FROM_SM_80,
            domain=whole_words,
            idea="asynchronous copies: bytes on their way take no registers, and come in lines",
        ),
    ),
)
