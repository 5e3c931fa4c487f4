"""Suites of Python callables, timed with the processor's clock where there is no GPU."""

from __future__ import annotations

from pathlib import Path

_LADDER = '''
"""Matrix products as Python callables."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from kernels.spec import Access, CallableStage, Ladder, Operand, Problem, perf
from kernels.tolerance import zero_mean_dot_product

PROBLEM = Problem(
    name="product",
    title="C = A B",
    axes=("M", "N", "K"),
    operands=(
        Operand(name="A", axes=("M", "K")),
        Operand(name="B", axes=("K", "N")),
        Operand(name="C", axes=("M", "N"), access=Access.UPDATE),
    ),
    parameters=("M", "N", "K", "A", "lda", "B", "ldb", "C", "ldc"),
    flops=lambda size: 2 * size["M"] * size["N"] * size["K"],
    compulsory_bytes=lambda size: 4 * (size["M"] * size["K"]),
    reference="gemm_float64",
    baseline="none",
    tolerance=zero_mean_dot_product(unit_roundoff=2.0**-24),
    sizes=(perf(M=16, N=16, K=16),),
)

def multiply(m, n, k, a, lda, b, ldb, c, ldc):
    np.matmul(a, b, out=c)


def build(body):
    calls = 0

    def function(*arguments):
        nonlocal calls
        calls += 1
        multiply(*arguments)
        body(arguments[7], calls)

    return lambda device: function


def stage(name, body):
    return CallableStage(name=name, build=build(body), idea="")


'''


def case(stage: str) -> str:
    return f"product/{stage}[M=16,N=16,K=16]"


def write_suite(folder: Path, stages: dict[str, str]) -> Path:
    """Write a suite whose stages multiply and then run a body of Python.

    A body knows the output ``c`` and how many ``calls`` its process has made of the stage.

    Args:
        folder: Where the suite is to lie.
        stages: Stage → body.
    """
    text = _LADDER
    for name, body in stages.items():
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        text += f"def {name}(c, calls):\n{lines}\n\n\n"
    declared = ", ".join(f'stage("{name}", {name})' for name in stages)
    text += f"LADDER = Ladder(problem=PROBLEM, stages=({declared},))\n"
    (folder / "product").mkdir(parents=True)
    (folder / "product/ladder.py").write_text(text)
    return folder
