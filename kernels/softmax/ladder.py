"""Softmax over rows in float32, judged by bandwidth."""

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
from kernels.tolerance import FLOAT32_UNIT_ROUNDOFF, softmax_row

PROBLEM = Problem(
    name="softmax",
    title="Y[r,:] = exp(X[r,:]) / sum(exp(X[r,:])), float32",
    axes=("R", "C"),
    operands=(
        Operand(name="X", axes=("R", "C")),
        Operand(name="Y", axes=("R", "C"), access=Access.WRITE),
    ),
    parameters=("R", "C", "X", "ldx", "Y", "ldy"),
    # Compare, subtract, exponentiate, add and scale: five operations an element.
    flops=lambda size: 5 * size["R"] * size["C"],
    compulsory_bytes=lambda size: 8 * size["R"] * size["C"],
    reference="softmax_float64",
    baseline="torch_softmax",
    tolerance=softmax_row(unit_roundoff=FLOAT32_UNIT_ROUNDOFF),
    sizes=(
        perf(R=16384, C=4096),
        perf(R=131072, C=512),
        perf(R=2048, C=32768),
        check(R=64, C=512),
        check(R=37, C=1025),
    ),
)

MOST_THREADS = 1024


def registers(size: Size, tile: Tile) -> Launch:
    """Threads for a whole row, as many rows as make a block of 256 threads or more."""
    warps = min(cdiv(size["C"], 128 * tile["VECTORS"]), MOST_THREADS // 32)
    # A barrier of the block must be one of the row, so rows share a block only if a warp is a row.
    rows = 8 if warps == 1 else 1
    return Launch(grid=(cdiv(size["R"], rows), 1, 1), block=(32 * warps, rows, 1))


LADDER = Ladder(
    problem=PROBLEM,
    stages=(
        CudaStage(
            source="01_shared.cu",
            entry="softmax_shared",
            launch=lambda size, tile: Launch(grid=(size["R"], 1, 1), block=(tile["THREADS"], 1, 1)),
            tile={"THREADS": 256},
            idea="a block sees a row once and adds up maximum and sum in shared memory",
            credit="M. Milakov and N. Gimelshein 2018",
        ),
        CudaStage(
            source="02_warp.cu",
            entry="softmax_warp",
            launch=lambda size, tile: Launch(
                grid=(cdiv(size["R"], tile["WARPS"]), 1, 1), block=(32 * tile["WARPS"], 1, 1)
            ),
            tile={"WARPS": 8},
            idea="a warp sees a row: shuffles in place of shared memory and barriers",
        ),
        CudaStage(
            source="03_registers.cu",
            entry="softmax_registers",
            launch=registers,
            tile={"VECTORS": 8},
            tile_space={"VECTORS": (1, 2, 4, 8, 16)},
            idea="the row stays in registers and crosses device memory once",
        ),
    ),
)
