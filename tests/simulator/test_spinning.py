"""Locks and flags: lanes that wait for others let them go on, and loops without end are named."""

from __future__ import annotations

import numpy as np
import pytest

from ci.simulator import Buffer, Report, StepLimitError, run
from tests.simulator.cuda_text import module_of

SOURCE = r"""
extern "C" __global__ void locked(int *sum, int *lock) {
    while (atomicCAS(lock, 0, 1) != 0) { }
    *(volatile int *)sum += threadIdx.x;
    __threadfence();
    atomicExch(lock, 0);
}
extern "C" __global__ void flagged(int *sum, int *flag) {
    if (threadIdx.x < 32) {
        while (*(volatile int *)flag == 0) { }
        atomicAdd(sum, 1);
    } else {
        atomicAdd(sum, 100);
        __threadfence();
        *(volatile int *)flag = 1;
    }
}
extern "C" __global__ void counted(int *sum, int *turns) {
    __shared__ int seen;
    if (threadIdx.x == 0) {
        while (atomicAdd(turns, 1) < 1000) { }
        seen = *turns;
    }
    __syncthreads();
    atomicAdd(sum, seen);
}
extern "C" __global__ void never(int *sum, int *flag) {
    for (int i = 0; i < 100; ++i) atomicAdd(sum, i);
    while (*(volatile int *)flag == 0)
        atomicAdd(sum, 1);
}
extern "C" __global__ void alone(int *sum, int *flag) {
    while (*(volatile int *)flag == 0) { }
    *sum = 1;
}
extern "C" __global__ void crosswise(int *sum, int *flag) {
    if (threadIdx.x < 32) {
        while (*(volatile int *)flag != 2) { }
        atomicExch(flag, 1);
    } else {
        while (*(volatile int *)flag != 1) { }
        atomicExch(flag, 2);
    }
}
extern "C" __global__ void gathered(int *sum, int *flag) {
    if (threadIdx.x == 40) {
        while (*(volatile int *)flag == 0) { }
    }
    __syncthreads();
    *flag = 1;
}
extern "C" __global__ void timed(int *sum, int *flag) {
    const long long start = clock64();
    while (*(volatile int *)flag == 0 && clock64() - start < 1000000) { }
    atomicAdd(sum, 1);
}
extern "C" __global__ void handed(int *sum, int *flag) {
    const int t = threadIdx.x;
    while (*(volatile int *)flag != t) { }
    *(volatile int *)sum += 1;
    __threadfence();
    *(volatile int *)flag = t + 1;
}
"""


def _run(name: str, step_limit: int = 300_000) -> tuple[Report, np.ndarray]:
    out, word = np.zeros(1, np.int32), np.zeros(1, np.int32)
    buffers = [Buffer(name="sum", data=out), Buffer(name="word", data=word)]
    report = run(
        module_of(SOURCE),
        name,
        grid=(1, 1, 1),
        block=(64, 1, 1),
        arguments=buffers,
        step_limit=step_limit,
    )
    return report, out


def test_lanes_of_one_warp_take_a_lock_one_after_the_other() -> None:
    report, out = _run("locked")
    assert out[0] == sum(range(64))
    assert "divergent barrier" not in {hazard.kind for hazard in report.hazards}


def test_warp_that_waits_for_a_flag_lets_the_other_set_it() -> None:
    assert _run("flagged")[1][0] == 32 * 100 + 32


def test_lanes_at_a_barrier_are_not_sent_ahead_of_a_loop_that_will_end() -> None:
    report, out = _run("counted")
    assert out[0] == 64 * 1001
    assert not report.hazards


def test_loop_that_never_ends_is_named_by_its_own_line() -> None:
    with pytest.raises(StepLimitError, match=r"^k\.cu:29: never has not ended after 3000 "):
        _run("never", step_limit=3000)


@pytest.mark.parametrize(
    ("name", "lines"), [("alone", [33]), ("crosswise", [38, 41]), ("gathered", [47])]
)
def test_waiting_that_nobody_can_end_is_told_at_once(name: str, lines: list[int]) -> None:
    with pytest.raises(StepLimitError) as caught:
        _run(name, step_limit=5000)
    assert str(caught.value) in {
        f"k.cu:{line}: {name} never ends: this loop waits, and no other thread that runs with it "
        "can end its waiting"
        for line in lines
    }


def test_waiting_that_the_clock_ends_is_none_for_ever() -> None:
    assert _run("timed")[1][0] == 64


def test_a_flag_that_each_thread_hands_to_the_next_goes_round() -> None:
    report, out = _run("handed")
    assert out[0] == 64
    assert not report.hazards
