"""How many blocks cover a problem, within the limits of a grid."""

from __future__ import annotations

GRID_Y_LIMIT = 65_535
"""Most blocks a grid has along y and z (CUDA C++ Programming Guide, compute capabilities)."""


def cdiv(extent: int, step: int) -> int:
    """Return how many steps cover an extent."""
    return -(-extent // step)


def along_y(blocks: int) -> tuple[int, int]:
    """Return the grid's y and z for a number of blocks along y; kernels call ``block_y()``."""
    layers = cdiv(blocks, GRID_Y_LIMIT)
    return (cdiv(blocks, layers), layers)
