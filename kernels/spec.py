"""The declaring words: what a problem, a stage and a ladder are. Standard library only."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernels.errors import DeclarationError
from kernels.tolerance import Tolerance

ARCHITECTURES = (
    "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_120",
)  # fmt: skip
"""Every architecture a stage may declare, as NVRTC 13.0 names them."""

DTYPES = ("float32", "float16", "bfloat16", "uint32")
"""Element types an operand may have; ``kernels.dtypes`` knows each."""

Size = Mapping[str, int]
"""One binding of all axes of a problem: axis name → extent in elements."""

Tile = Mapping[str, int]
"""Compile-time tile parameters: name → value, in template-argument order."""


class Access(enum.Enum):
    """How a kernel uses an operand."""

    READ = "read"
    UPDATE = "update"
    """Read and written, as C in ``C = alpha*A*B + beta*C``."""
    WRITE = "write"
    SCRATCH = "scratch"
    """Memory the kernels of a stage pass on to each other: it holds nothing before and after."""


class Layout(enum.Enum):
    """Which axis of a matrix is contiguous in memory."""

    ROW = "row"
    COLUMN = "column"


class Role(enum.Enum):
    """What a size is for."""

    PERF = "perf"
    """Timed on a GPU."""
    CHECK = "check"
    """Checked and counted on any device, the simulator included."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Operand:
    """An array argument of a problem."""

    name: str
    axes: tuple[str, ...]
    """Axis names, outermost first: ("M", "K"). "K/8" is an eighth of K, rounded up: packed data."""
    dtype: str = "float32"
    """Element type, one of ``DTYPES``."""
    access: Access = Access.READ
    layouts: tuple[Layout, ...] = (Layout.ROW,)
    """Layouts every stage of the ladder takes; the first is the one that is timed."""
    alignment: int = 1
    """Elements: the address of the first one is always a multiple of so many."""
    contents: str = "normal"
    """What it is filled with, one of the words of ``ci.check.contents``."""

    def __post_init__(self) -> None:
        """Refuse an operand without axes, or one that no element or address fits."""
        if not self.axes:
            msg = f"{self.name}: has no axes, expected at least one"
            raise DeclarationError(msg)
        for axis in self.axes:
            _, divided, by = axis.partition("/")
            if divided and not (by.isdecimal() and int(by) > 0):
                msg = f"{self.name}: axis {axis!r} must be divided by a whole number above 0"
                raise DeclarationError(msg)
        if self.alignment < 1:
            msg = f"{self.name}: alignment {self.alignment} must be at least 1 element"
            raise DeclarationError(msg)

    def extents(self, size: Size) -> tuple[int, ...]:
        """Return the extent of each axis in elements."""
        parts = (axis.partition("/") for axis in self.axes)
        return tuple(-(-size[axis] // int(by or 1)) for axis, _, by in parts)

    def shape(self, size: Size) -> tuple[int, int]:
        """Return rows and columns of the matrix it is in memory.

        The last axis runs along the columns; a single axis is one row, and more than two are rows
        one after the other.
        """
        *outer, columns = self.extents(size)
        return math.prod(outer), columns


@dataclass(frozen=True, kw_only=True, slots=True)
class SizePoint:
    """One problem size and what it is for."""

    role: Role
    axes: tuple[tuple[str, int], ...]
    """(axis, extent in elements), in the problem's axis order."""

    def as_dict(self) -> dict[str, int]:
        """Return the size as axis → extent."""
        return dict(self.axes)

    @property
    def label(self) -> str:
        """Return the size as ids write it: ``M=256,N=256,K=256``."""
        return ",".join(f"{axis}={extent}" for axis, extent in self.axes)


def perf(**axes: int) -> SizePoint:
    """Return a size that is timed on a GPU."""
    return SizePoint(role=Role.PERF, axes=tuple(axes.items()))


def check(**axes: int) -> SizePoint:
    """Return a size that is checked and counted on any device."""
    return SizePoint(role=Role.CHECK, axes=tuple(axes.items()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """The operation: operands, work, reference and tolerance."""

    name: str
    """Id of the ladder and name of its folder, for ever."""
    title: str
    """The formula as people read it."""
    axes: tuple[str, ...]
    operands: tuple[Operand, ...]
    parameters: tuple[str, ...]
    """The entry's parameters in order. An axis name is its extent (int), an operand name its
    pointer, ``ld`` + lower-case operand name its leading dimension (int), anything else a
    scalar of the operation, of the type its reference gives it (int or float32)."""
    flops: Callable[[Size], int]
    compulsory_bytes: Callable[[Size], int]
    """Bytes moved if every operand crossed device memory exactly once each way."""
    reference: str
    """Name of the trusted computation; ``ci.check`` implements it."""
    baseline: str
    """Name of the vendor library's routine; the GPU device implements it. Empty: there is none."""
    tolerance: Tolerance
    sizes: tuple[SizePoint, ...]
    transposed: tuple[tuple[str, str], ...] = ()
    """Pairs of names (axes or operands) to exchange so that the transposed result is the same
    problem: ``Cᵀ = Bᵀ·Aᵀ`` is (("M", "N"), ("A", "B")). This is how a column-major result is
    launched: once, by the launcher, never inside a kernel. Empty: there is no such form."""
    compute: str = "float32"
    """The arithmetic whose peak is the problem's roof: ``float32``, ``float16``, ``bfloat16``."""

    def flagged_operands(self) -> tuple[Operand, ...]:
        """Return the operands whose layout is a template flag of the entry, in order."""
        return tuple(
            operand
            for operand in self.operands
            if operand.access is Access.READ and len(operand.layouts) > 1
        )

    def has_leading_dimension(self, operand: Operand) -> bool:
        """Return whether kernels are told an operand's leading dimension."""
        return f"ld{operand.name.lower()}" in self.parameters

    def __post_init__(self) -> None:
        """Refuse a declaration whose sizes and operands name different axes."""
        for operand in self.operands:
            names = [axis.partition("/")[0] for axis in operand.axes]
            unknown = [axis for axis in names if axis not in self.axes]
            if operand.dtype not in DTYPES:
                expected = ", ".join(DTYPES)
                msg = f"{self.name}: {operand.name} is {operand.dtype}, expected one of {expected}"
                raise DeclarationError(msg)
            if unknown:
                expected = ", ".join(self.axes)
                msg = f"{self.name}: {operand.name} has axis {unknown[0]}, expected {expected}"
                raise DeclarationError(msg)
        for size in self.sizes:
            if tuple(axis for axis, _ in size.axes) != self.axes:
                expected = ", ".join(self.axes)
                msg = f"{self.name}: size {size.label} must bind exactly {expected}, in this order"
                raise DeclarationError(msg)
            if any(extent < 1 for _, extent in size.axes):
                msg = f"{self.name}: size {size.label} has an extent below 1"
                raise DeclarationError(msg)


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """Grid and block of one launch, and its dynamic shared memory."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int = 0


def everything(size: Size) -> str | None:
    """Accept every size: the domain of a stage with edge code."""
    del size
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One kernel of a stage; those of one stage run one after the other on the same operands."""

    entry: str
    """Name of the ``__global__`` template."""
    launch: Callable[[Size, Tile], Launch]
    """Grid and block for a size, given the tile in force."""
    parameters: tuple[str, ...]
    """The entry's parameters in order; see ``Problem.parameters``."""
    tile: tuple[str, ...] | None = None
    """Tile parameters that are its template arguments, in order; None: all of the stage's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CudaStage:
    """One rung of a ladder, implemented as a ``__global__`` template in one .cu file."""

    source: str
    """File name in the ladder's folder; without ``.cu`` it is the stage's id, for ever."""
    entry: str
    """Name of the ``__global__`` template."""
    launch: Callable[[Size, Tile], Launch]
    """Grid and block for a size, given the tile in force."""
    idea: str
    """The one ingredient this rung adds, in a sentence."""
    tile: Mapping[str, int] = field(default_factory=dict)
    """Tile parameters in template order; the stated default where no architecture is named."""
    tile_by_arch: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Whole tile tables that replace ``tile`` on the named architectures."""
    tile_space: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Values ``flopwatch tune`` tries for each tile parameter; empty: the tile is no choice."""
    architectures: tuple[str, ...] = ARCHITECTURES
    domain: Callable[[Size], str | None] = everything
    """None if the stage takes a size, else the reason why not."""
    credit: str = ""
    parameters: tuple[str, ...] = ()
    """The first kernel's parameters where it has others than the problem; empty: the problem's."""
    entry_tile: tuple[str, ...] | None = None
    """Tile parameters of the first kernel, as ``Step.tile``."""
    then: tuple[Step, ...] = ()
    """The kernels that follow the first one."""

    @property
    def name(self) -> str:
        """Return the stage's id: its file name without the suffix."""
        return self.source.removesuffix(".cu")

    def steps(self, problem: Problem) -> tuple[Step, ...]:
        """Return all kernels of the stage, in launch order."""
        first = Step(
            entry=self.entry,
            launch=self.launch,
            parameters=self.parameters or problem.parameters,
            tile=self.entry_tile,
        )
        return (first, *self.then)

    def __post_init__(self) -> None:
        """Refuse a space that names other parameters than the tile does."""
        for step_tile in (self.entry_tile, *(step.tile for step in self.then)):
            unknown = [name for name in step_tile or () if name not in self.tile]
            if unknown:
                msg = f"{self.name}: a kernel's tile names {unknown[0]}, which tile does not"
                raise DeclarationError(msg)
        if self.tile_space and list(self.tile_space) != list(self.tile):
            msg = (
                f"{self.name}: tile_space names {', '.join(self.tile_space)}, expected "
                f"{', '.join(self.tile)} as tile does, in this order"
            )
            raise DeclarationError(msg)

    def tile_for(self, arch: str) -> dict[str, int]:
        """Return the tile parameters in force on ``arch`` (such as ``sm_90``)."""
        return dict(self.tile_by_arch.get(arch, self.tile))

    def name_expression(self, step: Step, arch: str, layouts: Mapping[str, Layout]) -> str:
        """Return the instantiation to compile: tile values, then one flag a matrix operand read.

        Args:
            step: Which of the stage's kernels.
            arch: Architecture whose tile is used.
            layouts: Operand name → layout, for the operands whose layout is a template flag,
                in declaration order. The flag is ``true`` for column-major.
        """
        tile = self.tile_for(arch)
        values = [str(tile[name]) for name in (tile if step.tile is None else step.tile)]
        values += ["true" if layout is Layout.COLUMN else "false" for layout in layouts.values()]
        return f"{step.entry}<{', '.join(values)}>" if values else step.entry


@dataclass(frozen=True, kw_only=True, slots=True)
class CallableStage:
    """A stage that is any Python callable: Triton, torch, a prebuilt binary. GPU only."""

    name: str
    build: Callable[[str], Callable[..., object]]
    """Device name → function of the problem's parameters."""
    idea: str
    domain: Callable[[Size], str | None] = everything
    credit: str = ""


Stage = CudaStage | CallableStage


@dataclass(frozen=True, kw_only=True, slots=True)
class Ladder:
    """Ordered implementations of one problem, from naive to best."""

    problem: Problem
    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        """Refuse two stages of one name."""
        names = [stage.name for stage in self.stages]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            msg = f"{self.problem.name}: stage {twice[0]} is declared twice (names are ids)"
            raise DeclarationError(msg)

    @property
    def name(self) -> str:
        """Return the ladder's id, its problem's name."""
        return self.problem.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Ladder × stage × size: what a verdict is about."""

    ladder: Ladder
    stage: Stage
    size: SizePoint

    @property
    def id(self) -> str:
        """Return the id, stable for ever: ``sgemm/01_naive[M=256,N=256,K=256]``."""
        return f"{self.ladder.name}/{self.stage.name}[{self.size.label}]"

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the devices that can run this case, best first."""
        if isinstance(self.stage, CallableStage) or self.size.role is Role.PERF:
            return ("cuda",)
        return ("cuda", "simulator")


@dataclass(frozen=True, kw_only=True, slots=True)
class Suite:
    """A folder of ladders."""

    name: str
    folder: Path
    ladders: tuple[Ladder, ...]

    def cases(self) -> tuple[Case, ...]:
        """Return every case, in ladder, stage and size order."""
        return tuple(
            Case(ladder=ladder, stage=stage, size=size)
            for ladder in self.ladders
            for stage in ladder.stages
            for size in ladder.problem.sizes
        )

    def source_path(self, ladder: Ladder, stage: CudaStage) -> Path:
        """Return the path of a stage's .cu file."""
        return self.folder / ladder.name / stage.source
