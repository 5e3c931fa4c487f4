"""Small CUDA sources, compiled to the PTX that the simulator runs."""

from __future__ import annotations

from functools import cache

from ci.simulator import Module, parse
from kernels.nvrtc import compile_text


@cache
def ptx_of(source: str, arch: str = "compute_80") -> str:
    """Return the PTX of a source whose file is ``k.cu``."""
    options = ["--std=c++17", "-lineinfo", "--device-int128"]
    return compile_text(source, "k.cu", arch=arch, options=options, expressions=[]).data.decode()


def module_of(source: str) -> Module:
    """Return the loaded module of a source."""
    return parse(ptx_of(source))
