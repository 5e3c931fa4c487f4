"""Both controls run one code; the slowed one makes more launches, which nothing but time tells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ci.measure.batch import Batch, Survey, cold_parts
from ci.measure.controls import controls_of
from ci.measure.nvml import GpuWatch
from ci.measure.rounds import Setting, take_rounds
from ci.results.model import Round
from kernels.build import build_stage
from kernels.spec import CudaStage
from kernels.suite import load_suite


@pytest.mark.parametrize("bench", ["cuda", "clock"])
def test_every_control_names_a_case_of_its_suite(bench: str) -> None:
    controls = controls_of(bench)
    assert set(controls.cases.values()) <= {c.id for c in load_suite(controls.suite).cases()}
    equal = {case for name, case in controls.cases.items() if name not in controls.slowed}
    assert {controls.cases[name] for name in controls.slowed} <= equal


def test_a_gpu_has_five_controls_of_equal_code_and_three_slowed_ones() -> None:
    controls = controls_of("cuda")
    assert (len(controls.cases), len(controls.slowed)) == (8, 3)


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_the_kernel_of_the_controls_compiles(arch: str, tmp_path: Path) -> None:
    suite = load_suite(controls_of("cuda").suite)
    (ladder,) = suite.ladders
    (stage,) = (stage for stage in ladder.stages if isinstance(stage, CudaStage))
    built = build_stage(suite, ladder, stage, architectures=[arch], cache=tmp_path)
    assert built.cubins[arch].data


def test_a_slowed_head_takes_as_much_longer_as_it_makes_more_launches(tmp_path: Path) -> None:
    controls = controls_of("clock")

    def wanted(taken: Sequence[Round]) -> Sequence[str]:
        return () if len(taken) == 3 else tuple(controls.slowed)

    setting = Setting(
        suites=(controls.suite, controls.suite),
        bench="clock",
        cache=tmp_path,
        watch=GpuWatch("GPU-none"),
        usual={},
        seed=1,
        controls=controls,
    )
    rounds = take_rounds(setting, wanted, budget_s=60.0).rounds
    pairs = [pair for entry in rounds for pair in entry.pairs]
    # What else the machine does adds time, never takes some off.
    slower = min(pair.head_s for pair in pairs) / min(pair.base_s for pair in pairs)
    assert 1.25 < slower < 1.8, slower


@pytest.mark.parametrize("launch_us", [2, 5, 20])
def test_more_launches_are_as_cold_as_the_others(launch_us: int) -> None:
    batch = cold_parts(
        [Survey(launch_s=launch_us * 1e-6, set_bytes=1 << 19)], l2_bytes=60 << 20, tick_s=32e-9
    )
    more = -(-batch.launches * 4 // 100)
    orders = batch.orders(more)
    assert [len(order) for order in orders] == [batch.launches + more] * batch.parts
    assert [order[: batch.launches] for order in orders] == batch.orders()
    used = [number for order in orders * 2 for number in order]
    last: dict[int, int] = {}
    gaps = []
    for at, number in enumerate(used):
        gaps += [at - last[number]] if number in last else []
        last[number] = at
    # A set comes again after others that fill the cache, in all but a few launches of a sample.
    assert min(gaps) >= batch.sets // 2 - more


def test_no_more_launches_is_the_plain_order() -> None:
    assert Batch(launches=3, sets=6, parts=2).orders() == [[0, 1, 2], [3, 4, 5]]
    assert Batch(launches=3, sets=6, parts=2).orders(2) == [[0, 1, 2, 0, 1], [3, 4, 5, 3, 4]]
