"""How a stage becomes PTX and cubins: which instantiations, for which architectures."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.cache import compile_cached
from kernels.nvrtc import Compiled
from kernels.source import FlatSource, flatten
from kernels.spec import CudaStage, Ladder, Layout, Problem, Step, Suite

SIMULATED_ARCH = "compute_80"
"""What the simulator executes: PTX for the oldest architecture with cp.async and mma.sync."""
WIDTHS_ARCH = "sm_90"
"""Architecture whose tile is simulated and whose SASS tells the shared-memory access widths."""

_CUBIN_OPTIONS = ("--std=c++17", "--ptxas-options=-v")
_PTX_OPTIONS = ("--std=c++17", "-lineinfo")


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltKernel:
    """One instantiation of one of a stage's kernels."""

    variant: str
    """Its layouts: ``A=row,B=column``; for a kernel after the first, its entry too."""
    expression: str
    """Its name expression: ``sgemm_shared_tile<16, false, true>``."""
    symbol: str
    """Its mangled name in the module."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cubin:
    """A stage's machine code for one architecture, without line information."""

    arch: str
    data: bytes
    log: str
    """The compiler's log with ptxas -v: registers, shared memory, stack and spills a kernel."""
    kernels: Mapping[str, BuiltKernel]
    """Variant → kernel."""
    tile: Mapping[str, int]
    """The tile it was instantiated with."""

    @property
    def identity(self) -> str:
        """Return the code identity: the sha256 of the cubin (hexadecimal).

        The whole file is digested: instructions, registers, shared memory, constants. Comments,
        blank lines and the names of locals, parameters and shared arrays leave no trace in it;
        names of kernels and of file-scope variables do, because hosts look them up.
        """
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltStage:
    """Everything made from a stage's source."""

    ladder: str
    stage: str
    source_digest: str
    """sha256 of the flattened text (hexadecimal)."""
    text: str
    """The flattened source."""
    ptx: str
    """PTX with line information, for the simulator."""
    ptx_kernels: Mapping[str, BuiltKernel]
    """Variant → kernel of the PTX."""
    cubins: Mapping[str, Cubin]
    """Architecture → cubin, for those asked for that the stage declares."""
    tile: Mapping[str, int]
    """The tile of the PTX."""


def variants(problem: Problem) -> tuple[tuple[str, Mapping[str, Layout]], ...]:
    """Return every instantiation of an entry: its label, and operand name → layout.

    The first has every operand's first layout: the one that is timed.
    """
    flagged = problem.flagged_operands()
    names = [operand.name for operand in flagged]
    layouts = [
        dict(zip(names, combination, strict=True))
        for combination in itertools.product(*(operand.layouts for operand in flagged))
    ]
    return tuple((_label(chosen), chosen) for chosen in layouts)


def step_variant(label: str, number: int, step: Step) -> str:
    """Return the name of a step's kernel among a stage's: the label alone for the first step."""
    return f"{label} {step.entry}".strip() if number else label


def build_stage(
    suite: Suite, ladder: Ladder, stage: CudaStage, *, architectures: Sequence[str], cache: Path
) -> BuiltStage:
    """Return a stage's PTX, and its cubins for the given architectures that it declares.

    All variants of a stage go through the compiler together, once an architecture.

    Args:
        suite: The suite the ladder belongs to.
        ladder: The ladder the stage belongs to.
        stage: What to build.
        architectures: Such as ``("sm_80", "sm_90")``; undeclared ones are left out.
        cache: Folder of compiled texts.

    Raises:
        SourceError: The source or one of its includes cannot be read.
        CompileError: The compiler refused the source.
        ToolError: A compiler wheel is not installed.
    """
    source = flatten(suite.source_path(ladder, stage), suite.folder)
    ptx_arch, tile_arch = _simulated(stage)
    ptx, ptx_kernels = _compile(
        source, ladder, stage, arch=ptx_arch, tile_arch=tile_arch, options=_PTX_OPTIONS, cache=cache
    )
    cubins = {}
    for arch in (arch for arch in architectures if arch in stage.architectures):
        cubin, kernels = _compile(
            source, ladder, stage, arch=arch, tile_arch=arch, options=_CUBIN_OPTIONS, cache=cache
        )
        cubins[arch] = Cubin(
            arch=arch,
            data=cubin.data,
            log=cubin.log,
            kernels=kernels,
            tile=stage.tile_for(arch),
        )
    return BuiltStage(
        ladder=ladder.name,
        stage=stage.name,
        source_digest=source.digest,
        text=source.text,
        ptx=ptx.data.decode(),
        ptx_kernels=ptx_kernels,
        cubins=cubins,
        tile=stage.tile_for(tile_arch),
    )


def _simulated(stage: CudaStage) -> tuple[str, str]:
    """Return the PTX architecture of a stage, and the architecture whose tile it has.

    A stage that needs a newer architecture than the simulator's is compiled for its own first
    one, so that the simulator can name the instruction it does not emulate.
    """
    tile_arch = WIDTHS_ARCH if WIDTHS_ARCH in stage.architectures else stage.architectures[0]
    if SIMULATED_ARCH.replace("compute", "sm") in stage.architectures:
        return SIMULATED_ARCH, tile_arch
    return tile_arch.replace("sm", "compute"), tile_arch


def _compile(
    source: FlatSource,
    ladder: Ladder,
    stage: CudaStage,
    *,
    arch: str,
    tile_arch: str,
    options: Sequence[str],
    cache: Path,
) -> tuple[Compiled, dict[str, BuiltKernel]]:
    """Compile every variant of a stage into one module."""
    named = {
        step_variant(label, number, step): stage.name_expression(step, tile_arch, layouts)
        for label, layouts in variants(ladder.problem)
        for number, step in enumerate(stage.steps(ladder.problem))
    }
    compiled = compile_cached(
        cache,
        source.text,
        source.name,
        arch=arch,
        options=options,
        expressions=tuple(named.values()),
    )
    kernels = {
        label: BuiltKernel(variant=label, expression=expression, symbol=symbol)
        for (label, expression), symbol in zip(named.items(), compiled.symbols, strict=True)
    }
    return compiled, kernels


def _label(layouts: Mapping[str, Layout]) -> str:
    """Return a variant as records write it: ``A=row,B=column``."""
    return ",".join(f"{name}={layout.value}" for name, layout in layouts.items())
