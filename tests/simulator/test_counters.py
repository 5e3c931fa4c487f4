"""Counts of whole launches against per-warp loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ci.simulator.counters import LaunchCounters
from ci.simulator.report import Counts
from tests.simulator.test_coalescing import slow_sectors, slow_wavefronts

_LOAD, _STORE = False, True


def _counters(blocks: int, threads: int) -> LaunchCounters:
    counters = LaunchCounters({})
    counters.begin_slice(blocks, threads)
    return counters


@st.composite
def accesses(
    draw: st.DrawFn,
) -> tuple[int, int, NDArray[np.int64], NDArray[np.bool_] | None]:
    """Return blocks, threads, and an address and mask in one of the shapes that may occur."""
    blocks = draw(st.integers(1, 3))
    threads = draw(st.sampled_from([1, 31, 32, 50, 64]))
    padded = -(-threads // 32) * 32
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (draw(st.sampled_from([1, blocks])), draw(st.sampled_from([1, padded])))
    address = 4 * random.integers(0, draw(st.integers(1, 300)), shape)
    kind = draw(st.sampled_from(["none", "rows", "lanes", "all"]))
    if kind == "none":
        return blocks, threads, address, None
    if kind == "rows":
        return blocks, threads, address, random.random((blocks, 1)) < 0.7
    mask = random.random((1 if kind == "lanes" else blocks, padded)) < draw(st.floats(0, 1))
    mask[:, threads:] = False
    return blocks, threads, address, mask


def _flat(
    blocks: int, threads: int, address: NDArray[np.int64], mask: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the access with every lane of every block spelled out, in warps."""
    shape = (blocks, -(-threads // 32) * 32)
    active = np.broadcast_to(True if mask is None else mask, shape) & (
        np.arange(shape[1]) < threads
    )
    return np.broadcast_to(address, shape).reshape(-1, 32), active.reshape(-1, 32)


@given(accesses())
def test_global_accesses_equal_the_slow_count(
    access: tuple[int, int, NDArray[np.int64], NDArray[np.bool_] | None],
) -> None:
    blocks, threads, address, mask = access
    counters = _counters(blocks, threads)
    counters.global_access(0, _LOAD, address, mask, 4, 1)
    counters.global_access(0, _STORE, address, mask, 4, 1)
    every, active = _flat(blocks, threads, address, mask)
    requests, sectors = int(active.any(axis=1).sum()), slow_sectors(every, active, 4)
    assert counters.report().get(0, Counts()) == Counts(
        global_load_requests=requests,
        global_load_sectors=sectors.total,
        global_load_ideal_sectors=sectors.ideal,
        global_load_elements=int(active.sum()),
        global_store_requests=requests,
        global_store_sectors=sectors.total,
        global_store_ideal_sectors=sectors.ideal,
    )


@given(accesses())
def test_shared_accesses_equal_the_slow_count(
    access: tuple[int, int, NDArray[np.int64], NDArray[np.bool_] | None],
) -> None:
    blocks, threads, address, mask = access
    counters = _counters(blocks, threads)
    counters.shared_access(0, _LOAD, 4 * address, mask, 16)
    counters.shared_access(0, _STORE, address, mask, 4)
    every, active = _flat(blocks, threads, address, mask)
    wide, narrow = slow_wavefronts(4 * every, active, 16), slow_wavefronts(every, active, 4)
    assert counters.report().get(0, Counts()) == Counts(
        shared_load_wavefronts=wide.total,
        shared_load_conflicts=wide.total - wide.ideal,
        shared_store_wavefronts=narrow.total,
        shared_store_conflicts=narrow.total - narrow.ideal,
    )


@given(accesses())
def test_local_accesses_and_atomics_equal_the_slow_count(
    access: tuple[int, int, NDArray[np.int64], NDArray[np.bool_] | None],
) -> None:
    blocks, threads, address, mask = access
    counters = _counters(blocks, threads)
    counters.local_access(0, _LOAD, mask, 8)
    counters.local_access(0, _STORE, mask, 4)
    counters.atomic_access(0, "global", address, mask, 4)
    counters.atomic_access(0, "shared", address, mask, 4)
    every, active = _flat(blocks, threads, address, mask)
    requests = int(active.any(axis=1).sum())
    assert counters.report().get(0, Counts()) == Counts(
        local_bytes=12 * int(active.sum()),
        local_load_requests=requests,
        local_store_requests=requests,
        atomic_requests=2 * requests,
        atomic_sectors=slow_sectors(every, active, 4).total,
        shared_atomic_requests=requests,
    )


def test_slices_and_instructions_add_up() -> None:
    counters = _counters(2, 64)
    own = 4 * np.arange(64, dtype=np.int64)[None, :]
    counters.global_access(3, _LOAD, own, None, 4, 1)
    counters.global_access(5, _LOAD, 4 * own, None, 16, 4)
    counters.begin_slice(1, 32)
    counters.global_access(3, _LOAD, own[:, :32], None, 4, 1)
    assert counters.report() == {
        3: Counts(
            global_load_requests=5,
            global_load_sectors=20,
            global_load_ideal_sectors=20,
            global_load_elements=160,
        ),
        5: Counts(
            global_load_requests=4,
            global_load_sectors=64,
            global_load_ideal_sectors=64,
            global_load_elements=512,
        ),
    }


@pytest.mark.parametrize("stride", [32, 33])
def test_a_remembered_pattern_counts_again(stride: int) -> None:
    counters = _counters(4, 32)
    column = 4 * stride * np.arange(32, dtype=np.int64)[None, :]
    for _ in range(3):
        counters.shared_access(0, _LOAD, column, None, 4)
    wavefronts = 32 if stride == 32 else 1
    assert counters.report() == {
        0: Counts(
            shared_load_wavefronts=12 * wavefronts, shared_load_conflicts=12 * (wavefronts - 1)
        )
    }
