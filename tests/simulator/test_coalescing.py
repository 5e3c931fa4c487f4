"""Sectors and wavefronts against a slow transcription of their rules."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ci.simulator.coalescing import Sectors, Wavefronts, count_sectors, count_wavefronts


def slow_sectors(
    address: NDArray[np.int64], active: NDArray[np.bool_], width_bytes: int
) -> Sectors:
    total = ideal = 0
    for warp, lanes in zip(address, active, strict=True):
        accesses = {int(a) for a, on in zip(warp, lanes, strict=True) if on}
        total += len({each // 32 for each in accesses})
        ideal += math.ceil(len(accesses) * width_bytes / 32)
    return Sectors(total, ideal)


def slow_wavefronts(
    address: NDArray[np.int64], active: NDArray[np.bool_], width_bytes: int
) -> Wavefronts:
    total = ideal = 0
    for warp, lanes in zip(address.tolist(), active.tolist(), strict=True):
        phases = max(1, width_bytes // 4)
        if phases > 1 and any(
            all(
                warp[lane] == warp[lane ^ distance] or not (lanes[lane] and lanes[lane ^ distance])
                for lane in range(32)
            )
            for distance in (1, 2)
        ):
            phases //= 2
        per_phase = 32 // phases
        for first in range(0, 32, per_phase):
            banks: dict[int, set[int]] = {}
            for lane in range(first, first + per_phase):
                if lanes[lane]:
                    for byte in range(warp[lane], warp[lane] + width_bytes):
                        banks.setdefault(byte // 4 % 32, set()).add(byte // 4)
            total += max(map(len, banks.values()), default=0)
            ideal += bool(banks)
    return Wavefronts(total, ideal)


@st.composite
def warps(draw: st.DrawFn) -> tuple[NDArray[np.int64], NDArray[np.bool_], int]:
    """Return addresses, activity and width of up to three warps, regular or not."""
    width = draw(st.sampled_from([1, 2, 4, 8, 16]))
    rows = draw(st.integers(1, 3))
    lane = np.arange(32)
    address = np.empty((rows, 32), dtype=np.int64)
    for row in range(rows):
        stride = draw(st.sampled_from([0, 1, 2, 5, 8, 32, 33]))
        group = draw(st.sampled_from([1, 2, 4, 16]))
        seed = draw(st.integers(0, 2**32 - 1))
        scattered = np.random.default_rng(seed).integers(0, draw(st.integers(1, 90)), 32)
        regular = lane // group * stride + lane % draw(st.sampled_from([1, 3, 32]))
        address[row] = (draw(st.sampled_from([scattered, regular, regular[::-1]]))) * width
    bits = draw(st.lists(st.integers(0, 2**32 - 1), min_size=rows, max_size=rows))
    active = (np.array(bits)[:, None] >> lane & 1).astype(np.bool_)
    return address, active, width


@given(warps())
def test_sectors_equal_the_slow_count(
    case: tuple[NDArray[np.int64], NDArray[np.bool_], int],
) -> None:
    address, active, width = case
    everyone = np.ones_like(active)
    assert count_sectors(address, active, width) == slow_sectors(address, active, width)
    assert count_sectors(address, None, width) == slow_sectors(address, everyone, width)


@given(warps())
def test_wavefronts_equal_the_slow_count(
    case: tuple[NDArray[np.int64], NDArray[np.bool_], int],
) -> None:
    address, active, width = case
    everyone = np.ones_like(active)
    assert count_wavefronts(address, active, width) == slow_wavefronts(address, active, width)
    assert count_wavefronts(address, None, width) == slow_wavefronts(address, everyone, width)


def test_a_column_of_a_32_wide_array_conflicts_32_ways_and_a_padded_one_does_not() -> None:
    row = np.arange(32, dtype=np.int64)[None, :]
    assert count_wavefronts(row * 32 * 4, None, 4) == (32, 1)
    assert count_wavefronts(row * 33 * 4, None, 4) == (1, 1)
