"""Scaled dot-product attention in float32: scores, softmax and values, a kernel each."""

from __future__ import annotations

from collections.abc import Callable

from kernels.grids import along_y, cdiv
from kernels.spec import (
    Access,
    CudaStage,
    Ladder,
    Launch,
    Operand,
    Problem,
    Size,
    Step,
    Tile,
    check,
    perf,
)
from kernels.tolerance import FLOAT32_UNIT_ROUNDOFF, softmax_row

HEAD_SIZES = (64, 128)
ROWS = ("B", "H", "S", "D")

SCORES = ("B", "H", "S", "D", "scale", "mask", "Q", "K", "Mask", "P")
SOFTMAX = ("B", "H", "S", "mask", "P")
VALUES = ("B", "H", "S", "D", "mask", "P", "V", "O")

PROBLEM = Problem(
    name="attention",
    title="O = softmax(scale * Q K^T under a mask) V for B batches of H heads, float32",
    axes=ROWS,
    operands=(
        # Rows are read in 16-byte vectors.
        Operand(name="Q", axes=ROWS, alignment=4),
        Operand(name="K", axes=ROWS, alignment=4),
        Operand(name="V", axes=ROWS, alignment=4),
        Operand(name="Mask", axes=("S", "S"), contents="mask"),
        Operand(name="P", axes=("B", "H", "S", "S"), access=Access.SCRATCH, alignment=4),
        Operand(name="O", axes=ROWS, access=Access.WRITE, alignment=4),
    ),
    parameters=("B", "H", "S", "D", "scale", "mask", "Q", "K", "V", "Mask", "P", "O"),
    # Two products; the softmax between them is left out, as papers do. No mask, so none is halved.
    flops=lambda size: 4 * size["B"] * size["H"] * size["S"] ** 2 * size["D"],
    compulsory_bytes=lambda size: 16 * size["B"] * size["H"] * size["S"] * size["D"],
    reference="attention_float64",
    baseline="torch_attention",
    tolerance=softmax_row(unit_roundoff=FLOAT32_UNIT_ROUNDOFF),
    sizes=(
        perf(B=4, H=16, S=512, D=64),
        perf(B=4, H=16, S=1024, D=64),
        perf(B=4, H=16, S=2048, D=64),
        perf(B=4, H=16, S=4096, D=64),
        perf(B=4, H=16, S=2048, D=128),
        check(B=1, H=2, S=128, D=64),
        check(B=1, H=3, S=67, D=128),
    ),
)


def tiles(columns: str, rows: str, width: str, threads: int) -> Callable[[Size, Tile], Launch]:
    """Return the launch of a product of every head: tiles over S rows and ``columns``.

    Args:
        columns: The axis the product's columns lie along.
        rows: Tile parameter: rows a block.
        width: Tile parameter: columns a block.
        threads: Threads a block.
    """

    def launch(size: Size, tile: Tile) -> Launch:
        blocks = size["B"] * size["H"] * cdiv(size["S"], tile[rows])
        grid = (cdiv(size[columns], tile[width]), *along_y(blocks))
        return Launch(grid=grid, block=(threads, 1, 1))

    return launch


def a_row_a_block(size: Size, tile: Tile) -> Launch:
    """Threads for a whole row of scores, VECTORS float4 each."""
    warps = min(cdiv(size["S"], 128 * tile["VECTORS"]), 32)
    return Launch(grid=(size["B"] * size["H"] * size["S"], 1, 1), block=(32 * warps, 1, 1))


def whole_heads(size: Size) -> str | None:
    """Refuse a head that is not made of whole tiles."""
    if size["D"] in HEAD_SIZES:
        return None
    return f"D = {size['D']}, expected one of {', '.join(map(str, HEAD_SIZES))}"


def stage(
    name: str,
    idea: str,
    tile: Tile,
    *,
    scores: tuple[int, tuple[str, ...]],
    values: tuple[int, tuple[str, ...]],
) -> CudaStage:
    """Return a stage of three kernels, all in one file.

    Args:
        name: The stage's id.
        idea: What it adds.
        tile: Its tile parameters.
        scores: The first kernel's threads, and its template arguments: rows and columns of its
            tile first, or one name for both.
        values: The same of the last kernel.
    """
    kind = name[len("00_") :]
    (score_threads, score_tile), (value_threads, value_tile) = scores, values
    return CudaStage(
        source=f"{name}.cu",
        entry=f"attention_scores_{kind}",
        launch=tiles("S", score_tile[0], score_tile[:2][-1], score_threads),
        parameters=SCORES,
        entry_tile=score_tile,
        then=(
            Step(
                entry=f"attention_softmax_{kind}",
                launch=a_row_a_block,
                parameters=SOFTMAX,
                tile=("VECTORS",),
            ),
            Step(
                entry=f"attention_values_{kind}",
                launch=tiles("D", value_tile[0], value_tile[:2][-1], value_threads),
                parameters=VALUES,
                tile=value_tile,
            ),
        ),
        tile=tile,
        domain=whole_heads,
        idea=idea,
    )


LADDER = Ladder(
    problem=PROBLEM,
    stages=(
        stage(
            "01_shared_tile",
            "tiles of both factors wait in shared memory, K transposed on its way",
            {"TILE": 32, "VECTORS": 4},
            scores=(1024, ("TILE",)),
            values=(1024, ("TILE",)),
        ),
        stage(
            "02_block_tile_1d",
            "a thread keeps TM elements in registers: one shared read feeds TM FMAs",
            {"BM": 64, "BN": 64, "BK": 8, "TM": 8, "VECTORS": 4},
            scores=(512, ("BM", "BN", "BK", "TM")),
            values=(512, ("BM", "BN", "BK", "TM")),
        ),
        stage(
            "03_block_tile_2d",
            "a thread owns TM x TN elements: TM + TN shared reads feed TM * TN FMAs",
            {"BM": 128, "BN": 128, "VN": 64, "BK": 8, "TM": 8, "TN": 8, "VT": 4, "VECTORS": 4},
            scores=(256, ("BM", "BN", "BK", "TM", "TN")),
            values=(256, ("BM", "VN", "BK", "TM", "VT")),
        ),
        stage(
            "04_vectorized",
            "every access moves four elements, from device memory and from shared memory",
            {
                "BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8,
                "VM": 64, "VN": 64, "VK": 16, "VT": 4, "VECTORS": 4,
            },
            scores=(256, ("BM", "BN", "BK", "TM", "TN")),
            values=(128, ("VM", "VN", "VK", "TM", "VT")),
        ),
        stage(
            "05_double_buffer",
            "warp tiles, and the next tile travels to registers while this one is computed",
            {
                "BM": 128, "BN": 128, "BK": 8, "WM": 64, "WN": 64, "WNITER": 4,
                "VM": 256, "VN": 64, "VK": 16, "VWM": 64, "VWN": 32, "VITER": 2, "VECTORS": 4,
            },
            scores=(128, ("BM", "BN", "BK", "WM", "WN", "WNITER")),
            values=(256, ("VM", "VN", "VK", "VWM", "VWN", "VITER")),
        ),
    ),
)  # fmt: skip
