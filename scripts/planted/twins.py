"""The correct kernels that the catalogue's second part breaks: launch, operands, reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ci.check.combination import Contents
from ci.check.reference import Doubles, Expected, Inputs, KnownAnswer, Reference, Scalars
from ci.check.run import StageCheck, check_stage
from ci.devices.simulator import SimulatorDevice
from ci.verbs.context import cache_folder
from kernels.build import build_stage
from kernels.grids import cdiv
from kernels.operands import Matrix
from kernels.spec import Access, CudaStage, Ladder, Launch, Operand, Problem, Size, Suite
from kernels.tolerance import FLOAT32_UNIT_ROUNDOFF, exact, zero_mean_dot_product
from scripts.planted import references as of

KERNELS = Path(__file__).parent / "kernels"

Fill = Callable[[Mapping[str, Matrix]], None]
Triple = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Twin:
    """A correct kernel, declared as the stages of a suite are."""

    ladder: Ladder
    stage: CudaStage
    reference: Reference


def read(name: str, *axes: str, dtype: str = "float32", alignment: int = 1) -> Operand:
    """Return an operand that is only read; integers are random bits."""
    contents = "packed" if dtype == "uint32" else "normal"
    return Operand(name=name, axes=axes, dtype=dtype, alignment=alignment, contents=contents)


def written(name: str, *axes: str, dtype: str = "float32", alignment: int = 1) -> Operand:
    """Return the operand that holds nothing before."""
    return Operand(name=name, axes=axes, dtype=dtype, alignment=alignment, access=Access.WRITE)


def updated(name: str, *axes: str, dtype: str = "float32") -> Operand:
    """Return the operand whose contents matter."""
    contents = "packed" if dtype == "uint32" else "normal"
    return Operand(name=name, axes=axes, dtype=dtype, access=Access.UPDATE, contents=contents)


def scratch(name: str, *axes: str, dtype: str = "float32") -> Operand:
    """Return memory for the kernel's own use."""
    return Operand(name=name, axes=axes, dtype=dtype, access=Access.SCRATCH)


def twin(
    source: str,
    parameters: str,
    operands: tuple[Operand, ...],
    compute: Callable[[Inputs], tuple[Doubles, Doubles]],
    grid: Callable[[Size], Triple],
    block: Triple,
    *,
    fill: Fill | None = None,
    rounds: bool = True,
    integers: bool = True,
    dynamic_bytes: Callable[[Size], int] = lambda _: 0,
    first_row: int | None = None,
    **extents: tuple[int, ...],
) -> Twin:
    """Return a kernel whose entry is named like its file.

    Args:
        source: ``family/kernel.cu``.
        parameters: The entry's parameters, in order.
        operands: Its arrays.
        compute: Operands before → value and condition, see ``Expected``.
        grid: Blocks of a size.
        block: Threads of a block.
        fill: Writes what is not just random into the operands.
        rounds: Whether it rounds; else every result is exact.
        integers: Whether it is exact on small integers, which are tried then, too.
        dynamic_bytes: Dynamic shared memory of a size.
        first_row: The scalar of that name, if the entry has it.
        extents: Axis → the extents that are tried, all of which it takes.
    """
    family, file = source.split("/")

    def expected(inputs: Inputs, scalars: Scalars) -> Expected:
        del scalars
        with np.errstate(invalid="ignore"):
            value, condition = compute(inputs)
        return Expected(value=value, condition=condition)

    stage = CudaStage(
        source=file,
        entry=file.removesuffix(".cu"),
        launch=lambda size, _: Launch(
            grid=grid(size), block=block, dynamic_shared_bytes=dynamic_bytes(size)
        ),
        idea="the catalogue breaks it",
    )
    problem = Problem(
        name=family,
        title=file,
        axes=tuple(extents),
        operands=operands,
        parameters=tuple(parameters.split()),
        flops=lambda _: 0,
        compulsory_bytes=lambda _: 0,
        reference="",
        baseline="",
        tolerance=(
            zero_mean_dot_product(unit_roundoff=FLOAT32_UNIT_ROUNDOFF) if rounds else exact()
        ),
        sizes=(),
    )
    contents = (Contents.RANDOM, *([Contents.INTEGERS] if rounds and integers else []))
    reference = Reference(
        compute=expected,
        # The kernel itself is the second opinion: it is tested that the two agree.
        known=KnownAnswer(inputs={}, scalars={}, answer=np.zeros((0, 0))),
        scalars={} if first_row is None else {"first_row": (first_row,)},
        extents=extents,
        contents=contents,
        inject={} if fill is None else dict.fromkeys(contents, fill),
    )
    return Twin(ladder=Ladder(problem=problem, stages=(stage,)), stage=stage, reference=reference)


HALF = "float16"
WORD = "uint32"
_LINE = (1, 64, 65, 200)

_TWINS = (
    twin("async/pipelined.cu", "N K A B C",
         (read("A", "M", "K", alignment=4), read("B", "K", "N", alignment=4),
          written("C", "M", "N")),
         of.product, lambda s: (s["N"] // 32, s["M"] // 32, 1), (64, 1, 1),
         M=(32, 64), N=(32, 64), K=(4, 16, 20, 48, 76)),
    twin("async/smoothed.cu", "N x y", (read("x", "N"), written("y", "N")), of.neighbours(1),
         lambda s: (cdiv(s["N"], 64), 1, 1), (64, 1, 1), N=_LINE),
    twin("matrix/fragments.cu", "M N K A B C",
         (read("A", "M", "K", dtype=HALF, alignment=8),
          read("B", "K", "N", dtype=HALF, alignment=8), written("C", "M", "N")),
         of.product, lambda s: (s["N"] // 32, cdiv(s["M"], 32), 1), (64, 1, 1),
         M=(1, 13, 32, 45), N=(32, 64), K=(16, 48)),
    twin("matrix/warp_matrix.cu", "N K A B C",
         (read("A", "M", "K", dtype=HALF, alignment=16),
          read("B", "K", "N", dtype=HALF, alignment=16), written("C", "M", "N", alignment=8)),
         of.product, lambda s: (s["N"] // 16, s["M"] // 16, 1), (32, 1, 1),
         M=(16, 32), N=(16, 48), K=(16, 32)),
    twin("reduction/tree.cu", "N x sums", (read("x", "N"), written("sums", "G")),
         of.block_sums(96), lambda s: (s["G"], 1, 1), (96, 1, 1), N=(1, 40, 96, 200, 500),
         G=(1, 2, 3)),
    twin("reduction/last_warp.cu", "x sums", (read("x", "B", "E"), written("sums", "B")),
         of.row_sums, lambda s: (s["B"], 1, 1), (64, 1, 1), B=(1, 3), E=(64,)),
    twin("reduction/shuffles.cu", "N x total", (read("x", "N"), updated("total", "one")),
         of.total, lambda s: (cdiv(s["N"], 256), 1, 1), (256, 1, 1), N=(1, 100, 256, 700),
         one=(1,)),
    twin("reduction/last_block.cu", "N x sums tickets total",
         (read("x", "N"), scratch("sums", "N/64"), scratch("tickets", "one", dtype=WORD),
          written("total", "one")),
         of.fresh_total, lambda s: (cdiv(s["N"], 64), 1, 1), (64, 1, 1),
         fill=of.zeros("tickets"), N=_LINE, one=(1,)),
    twin("scan/block_scan.cu", "x y",
         (read("x", "B", "E", dtype=WORD), written("y", "B", "E", dtype=WORD)),
         of.row_scan, lambda s: (s["B"], 1, 1), (128, 1, 1), rounds=False, B=(1, 3), E=(128,)),
    twin("scan/two_buffers.cu", "x y",
         (read("x", "B", "E", dtype=WORD), written("y", "B", "E", dtype=WORD)),
         of.row_scan, lambda s: (s["B"], 1, 1), (64, 1, 1), fill=of.steps_of_2048, rounds=False,
         B=(1, 3), E=(64,)),
    twin("scan/chained.cu", "x y totals flags",
         (read("x", "B", "E", dtype=WORD), written("y", "B", "E", dtype=WORD),
          scratch("totals", "B", dtype=WORD), scratch("flags", "B", dtype=WORD)),
         of.scan, lambda s: (s["B"], 1, 1), (32, 1, 1), fill=of.zeros("flags"), rounds=False,
         B=(1, 2, 5), E=(32,)),
    twin("histogram/bins.cu", "N x counts", (read("x", "N"), updated("counts", "bins", dtype=WORD)),
         of.histogram, lambda s: (cdiv(s["N"], 128), 1, 1), (64, 1, 1), fill=of.between_0_and_1,
         rounds=False, N=(1, 64, 300, 1000), bins=(32,)),
    twin("histogram/leaders.cu", "N x counts",
         (read("x", "N"), updated("counts", "bins", dtype=WORD)),
         of.histogram, lambda s: (cdiv(s["N"], 64), 1, 1), (64, 1, 1), fill=of.between_0_and_1,
         rounds=False, N=(1, 64, 300, 1000), bins=(32,)),
    twin("stencil/line.cu", "N x y", (read("x", "N"), written("y", "N")), of.neighbours(2),
         lambda s: (cdiv(s["N"], 64), 1, 1), (64, 1, 1), N=(1, 2, *_LINE[1:])),
    twin("stencil/plane.cu", "W H x y", (read("x", "H", "W"), written("y", "H", "W")), of.heat,
         lambda s: (cdiv(s["W"], 16), cdiv(s["H"], 8), 1), (16, 8, 1),
         W=(1, 2, 16, 33), H=(1, 2, 8, 19)),
    twin("stencil/window.cu", "W H taps x y",
         (read("taps", "taps", dtype=WORD), read("x", "H", "W"), written("y", "H", "W")),
         of.trailing_rows, lambda s: (cdiv(s["W"], 32), 1, 1), (32, 1, 1), fill=of.taps,
         W=(1, 33), H=(5, 12), taps=(5,)),
    twin("stencil/shard.cu", "first_row W x y", (read("x", "R", "W"), written("y", "R", "W")),
         of.doubled, lambda s: (cdiv(s["W"], 32), s["R"], 1), (32, 1, 1), first_row=40_000_000,
         W=(64, 100), R=(1, 3)),
    twin("compaction/partition.cu", "N x y", (read("x", "N"), written("y", "N/32", "E")),
         of.partition, lambda s: (cdiv(s["N"], 64), 1, 1), (64, 1, 1), N=(1, 32, 50, 200),
         E=(32,)),
    twin("compaction/append.cu", "x y",
         (read("x", "B", "E", dtype=WORD), written("y", "B", dtype=WORD)),
         of.odd_squares, lambda s: (s["B"], 1, 1), (64, 1, 1), fill=of.mostly_odd, rounds=False,
         B=(1, 3), E=(64,)),
    twin("compaction/cursor.cu", "N x cursor y",
         (read("x", "N"), scratch("cursor", "one", dtype=WORD), updated("y", "N")),
         of.positive_first, lambda _: (1, 1, 1), (32, 1, 1), fill=of.zeros("cursor"), N=_LINE,
         one=(1,)),
    twin("barrier/named.cu", "T x y", (read("x", "T", "E"), written("y", "E")),
         of.sums_backwards, lambda _: (1, 1, 1), (64, 1, 1), T=(1, 2, 3, 6), E=(32,)),
    twin("lanes/groups.cu", "R K lengths x y",
         (read("lengths", "R", dtype=WORD), read("x", "R", "K"), written("y", "R")),
         of.sums_of_lengths, lambda s: (cdiv(s["R"], 8), 1, 1), (64, 1, 1), fill=of.lengths,
         R=(1, 4, 11), K=(1, 8, 21, 40)),
    twin("lanes/rows.cu", "M K A x y",
         (read("A", "M", "K", dtype=HALF), read("x", "K", dtype=HALF), written("y", "M")),
         of.row_products, lambda s: (cdiv(s["M"], 4), 1, 1), (128, 1, 1), M=(1, 4, 7),
         K=(1, 32, 100)),
    twin("dynamic/centred.cu", "C X Y", (read("X", "R", "C"), written("Y", "R", "C")), of.centred,
         lambda s: (s["R"], 1, 1), (128, 1, 1), integers=False,
         dynamic_bytes=lambda s: 4 * (cdiv(s["C"], 4) * 4 + 4), R=(1, 3), C=(1, 31, 128, 301)),
    twin("transpose/in_place.cu", "N X", (updated("X", "N", "N"),), of.transposed,
         lambda s: (s["N"] // 16, s["N"] // 16, 1), (16, 16, 1), N=(16, 48)),
)  # fmt: skip

TWINS = {f"{each.ladder.name}/{each.stage.source}": each for each in _TWINS}
"""``family/kernel.cu`` → the kernel."""


def check_twin(folder: Path, source: str) -> StageCheck:
    """Return what the check says of a kernel, or of what was made of it in another folder."""
    each = TWINS[source]
    suite = Suite(name="planted", folder=folder, ladders=(each.ladder,))
    built = build_stage(suite, each.ladder, each.stage, architectures=(), cache=cache_folder())
    return check_stage(SimulatorDevice({}), built, each.ladder, each.stage, each.reference)
