"""What is measured: the words for declaring kernels, the kernels, and how they are built."""

from kernels.spec import (
    Access,
    CallableStage,
    CudaStage,
    Ladder,
    Launch,
    Layout,
    Operand,
    Problem,
    Role,
    SizePoint,
    Suite,
    check,
    perf,
)
from kernels.suite import load_suite

__all__ = [
    "Access",
    "CallableStage",
    "CudaStage",
    "Ladder",
    "Launch",
    "Layout",
    "Operand",
    "Problem",
    "Role",
    "SizePoint",
    "Suite",
    "check",
    "load_suite",
    "perf",
]
