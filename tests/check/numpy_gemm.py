"""A device that computes ``alpha*A*B + beta*C`` with NumPy, rightly or with a planted fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ci.check.combination import Combination
from ci.check.contents import place_operands
from ci.check.judge import judge, remember
from ci.check.launch import prepare
from ci.check.plan import tile_extents
from ci.check.references import REFERENCES
from ci.devices.protocol import Argument, Buffer, Execution, StepLaunch
from ci.results.model import Counters, Finding, SubCheck
from kernels.build import BuiltStage
from kernels.operands import Floats, read_as
from kernels.spec import (
    Access,
    CudaStage,
    Ladder,
    Launch,
    Layout,
    Operand,
    Problem,
)
from kernels.tolerance import FLOAT32_UNIT_ROUNDOFF, zero_mean_dot_product

BOTH = (Layout.ROW, Layout.COLUMN)

PROBLEM = Problem(
    name="product",
    title="C = alpha * A B + beta * C",
    axes=("M", "N", "K"),
    operands=(
        Operand(name="A", axes=("M", "K"), layouts=BOTH),
        Operand(name="B", axes=("K", "N"), layouts=BOTH),
        Operand(name="C", axes=("M", "N"), access=Access.UPDATE, layouts=BOTH),
    ),
    parameters=("M", "N", "K", "alpha", "A", "lda", "B", "ldb", "beta", "C", "ldc"),
    flops=lambda size: 2 * size["M"] * size["N"] * size["K"],
    compulsory_bytes=lambda size: 4 * size["M"] * size["N"],
    reference="gemm_float64",
    baseline="cublas_sgemm",
    tolerance=zero_mean_dot_product(unit_roundoff=FLOAT32_UNIT_ROUNDOFF),
    sizes=(),
    transposed=(("M", "N"), ("A", "B")),
)

STAGE = CudaStage(
    source="01_tile.cu",
    entry="tile",
    launch=lambda size, tile: Launch(
        grid=(-(-size["N"] // tile["BN"]), -(-size["M"] // tile["BM"]), 1), block=(32, 1, 1)
    ),
    idea="a stage that only the tests know",
    tile={"BM": 16, "BN": 8, "BK": 4},
)

LADDER = Ladder(problem=PROBLEM, stages=(STAGE,))

BUILT = BuiltStage(
    ladder="product",
    stage="01_tile",
    source_digest="",
    text="",
    ptx="",
    ptx_kernels={},
    cubins={},
    tile=STAGE.tile,
)


@dataclass(kw_only=True)
class Call:
    """The arguments of one launch as the entry sees them, C always row-major."""

    M: int
    N: int
    K: int
    alpha: np.float32
    beta: np.float32
    a: Floats
    b: Floats
    c: Floats
    buffers: dict[str, Floats]
    lds: dict[str, int]
    flags: dict[str, Layout]


Kernel = Callable[[Call], None]


def right(call: Call) -> None:
    """Compute what BLAS would."""
    call.c[...] = value(call)


def value(call: Call) -> Floats:
    """Return what BLAS would leave in C."""
    with np.errstate(invalid="ignore"):
        result = np.zeros_like(call.c)
        if call.alpha != 0:
            result += call.alpha * np.einsum("mk,kn->mn", call.a, call.b)
        if call.beta != 0:
            result += call.beta * call.c
    return result


@dataclass
class NumpyDevice:
    """Runs a kernel written in Python."""

    kernel: Kernel = right
    findings: tuple[Finding, ...] = ()
    name: str = "numpy"
    launches: list[tuple[str, Launch, bool]] = field(default_factory=list)

    def tile(self, built: BuiltStage) -> Mapping[str, int]:
        """Return the stage's own tile."""
        return built.tile

    def run(self, built: BuiltStage, steps: Sequence[StepLaunch], *, count: bool) -> Execution:
        """Run the kernel; see ``ci.devices.protocol.Device.run``."""
        del built
        (step,) = steps
        self.launches.append((step.variant, step.launch, count))
        self.kernel(unpack(step.variant, step.arguments))
        counters = Counters(global_load_elements=1) if count else None
        return Execution(findings=self.findings, counters=counters, lines=())


def unpack(variant: str, arguments: Sequence[Argument]) -> Call:
    """Return the call that a variant and arguments stand for."""
    given = dict(zip(PROBLEM.parameters, arguments, strict=True))
    flags = {flag.split("=")[0]: Layout(flag.split("=")[1]) for flag in variant.split(",")}
    extents = {axis: int(_scalar(given[axis])) for axis in PROBLEM.axes}
    lds = {name: int(_scalar(given[f"ld{name.lower()}"])) for name in "ABC"}
    buffers = {name: _data(given[name]) for name in "ABC"}
    views = {
        operand.name: read_as(
            buffers[operand.name],
            (extents[operand.axes[0]], extents[operand.axes[1]]),
            flags.get(operand.name, Layout.ROW),
            lds[operand.name],
        )
        for operand in PROBLEM.operands
    }
    return Call(
        M=extents["M"],
        N=extents["N"],
        K=extents["K"],
        alpha=np.float32(_scalar(given["alpha"])),
        beta=np.float32(_scalar(given["beta"])),
        a=views["A"],
        b=views["B"],
        c=views["C"],
        buffers=buffers,
        lds=lds,
        flags=flags,
    )


def _scalar(argument: Argument) -> float:
    assert not isinstance(argument, Buffer)
    return float(argument)


def _data(argument: Argument) -> Floats:
    assert isinstance(argument, Buffer)
    assert argument.data.dtype == np.float32
    return argument.data  # type: ignore[return-value]


def judged(kernel: Kernel, combination: Combination) -> SubCheck:
    """Return the sub-check of one combination on one kernel."""
    reference = REFERENCES["gemm_float64"]
    matrices = place_operands(PROBLEM, reference, combination)
    before = remember(PROBLEM, matrices)
    (step,) = prepare(
        PROBLEM,
        STAGE,
        STAGE.tile,
        matrices=matrices,
        size=combination.size,
        scalars=combination.scalars,
    )
    kernel(unpack(step.variant, step.arguments))
    tiles = tile_extents(PROBLEM, STAGE, STAGE.tile)
    return judge(PROBLEM, reference, combination, tiles=tiles, matrices=matrices, before=before)
