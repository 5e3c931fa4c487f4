"""Compiles and launches the kernels that the profiler measured."""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ci.simulator import Buffer, MachineAccesses, Module, Report, parse, run
from ci.simulator.merging import merged_accesses
from ci.static.disassembly import Disassembly, disassemble, machine_accesses
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

    def accesses(self, kernel: str) -> MachineAccesses:
        """Return what a kernel's machine code tells of its accesses."""
        load, store, local = machine_accesses(self.disassembly)[kernel]
        return MachineAccesses(load=load, store=store, local=local)

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
        accesses=program.accesses(kernel) if count else MachineAccesses(),
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


def static_widths(program: Program, kernel: str) -> Counter[str]:
    """Return the shared-memory accesses of a kernel's PTX after merging, named as in SASS."""
    instructions = program.module.kernels[kernel].instructions
    plan = merged_accesses(instructions, program.accesses(kernel))
    found: Counter[str] = Counter()
    for instruction in instructions:
        merged = plan.get(instruction.pc)
        if instruction.opcode not in {"ld", "st"} or "shared" not in instruction.modifiers:
            continue
        if merged is None:
            components = {"v2": 2, "v4": 4}.get(instruction.modifiers[-2], 1)
            width = components * int(instruction.modifiers[-1][1:])
        elif merged.first == instruction.pc:
            width = 8 * merged.width_bytes
        else:
            continue
        name = "LDS" if instruction.opcode == "ld" else "STS"
        found[name if width <= 32 else f"{name}.{width}"] += 1
    return found


def shared_accesses(program: Program, kernel: str) -> dict[str, int]:
    """Return the shared-memory accesses in a kernel's machine code."""
    return {
        opcode: count
        for opcode, count in program.disassembly[kernel].items()
        if opcode.split(".")[0] in {"LDS", "STS"}
    }
