"""Occupancy agrees with NVIDIA's calculator, and its inputs are refused when they make no sense."""

from __future__ import annotations

import shutil

import pytest

from ci.static.errors import StaticError
from ci.static.occupancy import multiprocessor, occupancy
from kernels.spec import ARCHITECTURES
from tests.static.occupancy_reference import Answer, Launch, ask, random_launches, read_golden


def _disagreements(pairs: list[tuple[Launch, Answer]]) -> list[str]:
    wrong = []
    for launch, answer in pairs:
        got = occupancy(
            f"sm_{launch.major}{launch.minor}",
            registers=launch.registers,
            shared_bytes=launch.static_shared_bytes + launch.dynamic_shared_bytes,
            threads_per_block=launch.threads,
            barriers=launch.barriers,
        )
        if (got.resident_blocks, got.limited_by) != (answer.resident_blocks, answer.limited_by):
            wrong.append(f"{launch}: expected {answer}, got {got}")
    return wrong


def test_occupancy_equals_every_recorded_answer_of_nvidias_calculator() -> None:
    golden = read_golden()
    assert len(golden) == 1600
    assert sum(answer.resident_blocks > 1 for _, answer in golden) > 400
    assert _disagreements(golden) == []


def test_a_wrong_recorded_answer_is_noticed() -> None:
    launch, answer = read_golden()[0]
    wrong = Answer(resident_blocks=answer.resident_blocks + 1, limits=answer.limits)
    assert len(_disagreements([(launch, wrong)])) == 1


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_occupancy_equals_nvidias_calculator_on_launches_that_were_never_recorded() -> None:
    launches = random_launches(seed=21, count=8000)
    assert _disagreements(list(zip(launches, ask(launches), strict=True))) == []


@pytest.mark.parametrize(
    ("arch", "registers", "shared_bytes", "threads", "blocks", "fraction"),
    [
        ("sm_90a", 168, 196_608, 384, 1, 0.1875),
        ("sm_80", 168, 196_608, 384, 0, 0.0),
        ("sm_89", 168, 196_608, 384, 0, 0.0),
        ("sm_120", 168, 196_608, 384, 0, 0.0),
        ("sm_80", 128, 65_536, 256, 2, 0.25),
        ("sm_90", 128, 65_536, 256, 2, 0.25),
        ("sm_89", 128, 65_536, 256, 1, 1 / 6),
        ("sm_120", 128, 65_536, 256, 1, 1 / 6),
        ("sm_90", 32, 0, 1024, 2, 1.0),
        ("sm_89", 32, 0, 1024, 1, 2 / 3),
    ],
)
def test_known_launches_get_their_known_occupancy(
    *, arch: str, registers: int, shared_bytes: int, threads: int, blocks: int, fraction: float
) -> None:
    got = occupancy(arch, registers=registers, shared_bytes=shared_bytes, threads_per_block=threads)
    assert got.resident_blocks == blocks
    assert got.fraction == pytest.approx(fraction)


def test_one_more_register_can_cost_a_block() -> None:
    at_64 = occupancy("sm_90", registers=64, shared_bytes=0, threads_per_block=256)
    at_65 = occupancy("sm_90", registers=65, shared_bytes=0, threads_per_block=256)
    assert (at_64.resident_blocks, at_65.resident_blocks) == (4, 3)
    assert at_65.limited_by == ("registers",)


def test_a_block_above_the_launch_bound_does_not_fit() -> None:
    got = occupancy(
        "sm_90", registers=32, shared_bytes=0, threads_per_block=512, max_threads_per_block=256
    )
    assert (got.resident_blocks, got.limited_by) == (0, ("threads",))


def test_every_architecture_that_a_stage_may_declare_is_known() -> None:
    for arch in ARCHITECTURES:
        assert multiprocessor(arch).threads >= 1024


@pytest.mark.parametrize("arch", ["sm_61", "compute_80", "80", "sm_", ""])
def test_an_unknown_architecture_is_refused_with_the_known_ones(arch: str) -> None:
    with pytest.raises(StaticError, match="expected one of sm_75, sm_80"):
        occupancy(arch, registers=32, shared_bytes=0, threads_per_block=256)
