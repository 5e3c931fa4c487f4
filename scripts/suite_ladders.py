"""The ladders and stages that the scripts beside this one work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.spec import CudaStage, Ladder, Role, Size, Suite
from kernels.suite import load_suite

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rung:
    """One stage of one ladder."""

    ladder: Ladder
    stage: CudaStage

    @property
    def name(self) -> str:
        """Return ``sgemm/01_naive``."""
        return f"{self.ladder.name}/{self.stage.name}"

    def check_size(self, number: int) -> Size:
        """Return one of the ladder's check sizes: the first is even, the second ragged."""
        sizes = [s for s in self.ladder.problem.sizes if s.role is Role.CHECK]
        return sizes[number].as_dict()


def suite() -> Suite:
    """Return this checkout's suite."""
    return load_suite(ROOT / "kernels")


def rungs(ladders: Sequence[str] = ()) -> tuple[Rung, ...]:
    """Return the CUDA stages of the named ladders in order; no names: of all ladders."""
    return tuple(
        Rung(ladder=ladder, stage=stage)
        for ladder in suite().ladders
        if not ladders or ladder.name in ladders
        for stage in ladder.stages
        if isinstance(stage, CudaStage)
    )


def sgemm() -> tuple[Suite, Ladder, tuple[CudaStage, ...]]:
    """Return the suite, its SGEMM ladder, and that one's CUDA stages in order."""
    found = rungs(["sgemm"])
    return suite(), found[0].ladder, tuple(rung.stage for rung in found)
