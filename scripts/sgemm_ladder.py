"""Which ladder the scripts beside this one work on."""

from __future__ import annotations

from pathlib import Path

from kernels.spec import CudaStage, Ladder, Suite
from kernels.suite import load_suite

ROOT = Path(__file__).resolve().parents[1]


def sgemm() -> tuple[Suite, Ladder, tuple[CudaStage, ...]]:
    """Return this checkout's suite, its SGEMM ladder, and that one's CUDA stages in order."""
    suite = load_suite(ROOT / "kernels")
    ladder = next(ladder for ladder in suite.ladders if ladder.name == "sgemm")
    return suite, ladder, tuple(s for s in ladder.stages if isinstance(s, CudaStage))
