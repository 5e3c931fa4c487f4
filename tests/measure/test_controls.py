"""The controls compile everywhere, and one of them does more work than the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.measure.controls import NEGATIVE, POSITIVE, controls_of
from kernels.build import build_stage
from kernels.spec import ARCHITECTURES, CudaStage
from kernels.suite import load_suite


@pytest.mark.parametrize("bench", ["cuda", "clock"])
def test_every_control_names_cases_of_its_suite(bench: str) -> None:
    controls = controls_of(bench)
    known = {case.id for case in load_suite(controls.suite).cases()}
    assert {case for sides in controls.cases.values() for case in sides} <= known
    base, head = controls.cases[NEGATIVE]
    assert base == head
    base, head = controls.cases[POSITIVE]
    assert base != head
    assert controls.slowed == {POSITIVE}


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_the_controls_of_a_gpu_compile_to_different_code(arch: str, tmp_path: Path) -> None:
    assert arch in ARCHITECTURES
    suite = load_suite(controls_of("cuda").suite)
    (ladder,) = suite.ladders
    built = [
        build_stage(suite, ladder, stage, architectures=[arch], cache=tmp_path)
        for stage in ladder.stages
        if isinstance(stage, CudaStage)
    ]
    one, other = (each.cubins[arch] for each in built)
    assert one.identity != other.identity
