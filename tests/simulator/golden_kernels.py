"""Compiles and launches the kernels that the profiler measured."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ci.simulator import Buffer, Module, Report, SharedWidths, parse, run
from ci.static.disassembly import Disassembly, disassemble, shared_widths
from kernels.nvrtc import compile_text
from tests.simulator.ncu_golden import GOLDEN

_OPTIONS = ("--std=c++17", "-ftz=true")
Triple = tuple[int, int, int]


class Program:
    """A source file as PTX, and on request as machine code."""

    def __init__(self, text: str, source: str, defines: Sequence[str] = ()) -> None:
        """Compile a text under the name of the file it comes from."""
        self._text = text
        self._source = source
        self._options = (*_OPTIONS, *defines)
        self.module: Module = parse(self._compile("compute_80", "-lineinfo").decode())

    @functools.cached_property
    def disassembly(self) -> Disassembly:
        """Return the instruction counts of the sm_90 cubin."""
        with tempfile.TemporaryDirectory() as cache:
            return disassemble(self._compile("sm_90"), Path(cache))

    def widths(self, kernel: str) -> SharedWidths:
        """Return the vector widths in a kernel's machine code."""
        load, store = shared_widths(self.disassembly)[kernel]
        return SharedWidths(load=load, store=store)

    def _compile(self, arch: str, *more: str) -> bytes:
        options = (*self._options, *more)
        return compile_text(
            self._text, self._source, arch=arch, options=options, expressions=[]
        ).data


@functools.cache
def compiled(source: str, *defines: str) -> Program:
    """Compile ``suite.cu`` or ``holdout.cu``, with macros such as ``-DPAD0``."""
    return Program((GOLDEN / source).read_text(), source, defines)


def launch(
    program: Program,
    kernel: str,
    arguments: Sequence[np.ndarray | np.generic],
    *,
    grid: Triple,
    block: Triple,
    dynamic_shared_bytes: int = 0,
    count: bool = True,
) -> Report:
    """Run one kernel on arrays that are named by their position."""
    return run(
        program.module,
        kernel,
        grid=grid,
        block=block,
        arguments=[
            Buffer(name=f"argument {number}", data=argument)
            if isinstance(argument, np.ndarray)
            else argument
            for number, argument in enumerate(arguments)
        ],
        dynamic_shared_bytes=dynamic_shared_bytes,
        widths=program.widths(kernel) if count else SharedWidths(),
        count=count,
    )


def arguments_of(kernel: str, side: int) -> list[np.ndarray | np.generic]:
    """Return zeros as a suite kernel takes them, for matrices of ``side`` x ``side``."""
    extent = np.int32(side)
    cells = 90 * 100 if kernel == "stencil5" else side * side
    source, target = np.zeros(cells, np.float32), np.zeros(cells, np.float32)
    if kernel in ("mm_mma", "mm_wmma"):
        half = source.astype(np.float16)
        return [half, half.copy(), target, extent, extent, extent]
    if kernel.startswith("mm_"):
        return [source, source.copy(), target, extent, extent, extent]
    if kernel.startswith("red_"):
        return [source, target, np.int32(cells)]
    if kernel == "stencil5":
        return [source, target, np.int32(90), np.int32(100)]
    return [source, target, extent]
