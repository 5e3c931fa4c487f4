"""Compile ``figures.cu``, once an architecture."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kernels.nvrtc import Compiled, compile_text

SPILLING = "spilling<96>"
SPILLING_TWICE = "spilling_twice<96>"


@cache
def compile_figures(arch: str) -> Compiled:
    source = Path(__file__).with_name("figures.cu")
    return compile_text(
        source.read_text(encoding="utf-8"),
        source.name,
        arch=arch,
        options=["--std=c++17", "--ptxas-options=-v"],
        expressions=[SPILLING, SPILLING_TWICE],
    )
