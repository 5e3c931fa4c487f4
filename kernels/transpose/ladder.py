"""Transpose of a float32 matrix, judged by bandwidth."""

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
from kernels.tolerance import exact

PROBLEM = Problem(
    name="transpose",
    title="Y[C,R] = X[R,C] transposed, float32",
    axes=("R", "C"),
    operands=(
        Operand(name="X", axes=("R", "C")),
        Operand(name="Y", axes=("C", "R"), access=Access.WRITE),
    ),
    parameters=("R", "C", "X", "ldx", "Y", "ldy"),
    flops=lambda _: 0,
    compulsory_bytes=lambda size: 8 * size["R"] * size["C"],
    reference="transpose_exact",
    baseline="copy",
    tolerance=exact(),
    sizes=(
        perf(R=8192, C=8192),
        perf(R=8191, C=8193),
        check(R=256, C=128),
        check(R=127, C=65),
    ),
)


def tiles(size: Size, tile: Tile, *, width: int) -> Launch:
    """A TILE x TILE tile of X a block, ``width`` elements of a row a thread."""
    step = tile["TILE"]
    return Launch(
        grid=(cdiv(size["C"], step), *along_y(cdiv(size["R"], step))),
        block=(step // width, tile["STEP"], 1),
    )


LADDER = Ladder(
    problem=PROBLEM,
    stages=(
        CudaStage(
            source="01_naive.cu",
            entry="transpose_naive",
            launch=lambda size, _: Launch(
                grid=(cdiv(size["C"], 32), *along_y(cdiv(size["R"], 8))), block=(32, 8, 1)
            ),
            idea="one thread moves one element",
        ),
        CudaStage(
            source="02_tiled.cu",
            entry="transpose_tiled",
            launch=lambda size, tile: tiles(size, tile, width=1),
            tile={"TILE": 32, "STEP": 8},
            idea="a tile waits in shared memory: loads and stores both run along rows",
        ),
        CudaStage(
            source="03_padded.cu",
            entry="transpose_padded",
            launch=lambda size, tile: tiles(size, tile, width=1),
            tile={"TILE": 64, "STEP": 2},
            idea="one extra column spreads the tile's columns over the banks",
        ),
        CudaStage(
            source="04_vectorized.cu",
            entry="transpose_vectorized",
            launch=lambda size, tile: tiles(size, tile, width=4),
            tile={"TILE": 64, "STEP": 16},
            idea="16-byte loads and stores: four times the bytes on their way",
        ),
    ),
)
