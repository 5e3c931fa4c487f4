"""The shadow of shared memory against a slow one that remembers every access of every byte."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ci.simulator.hazards import SharedShadow
from ci.simulator.report import Place
from ci.simulator.sink import (
    READ_AFTER_WRITE,
    UNINITIALISED,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    HazardSink,
)

_THREADS = 96
_SHARED_BYTES = 64
_ACTIONS = ["read", "write", "atomic", "start_copy", "end_copy"] + ["barrier", "order"] * 2


@dataclass
class _Byte:
    written: bool = False
    threads: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Since the last barrier."""
    lanes: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Since their warp was ordered last."""

    def is_met(self, earlier: str, thread: int) -> bool:
        """Return whether another thread, not ordered against this one, did that before."""
        warp = thread // 32
        return any(other // 32 != warp for other in self.threads[earlier]) or any(
            other // 32 == warp and other != thread for other in self.lanes[earlier]
        )


class _SlowShadow:
    """All threads that read, wrote or updated each byte since they were ordered last."""

    def __init__(self, blocks: int) -> None:
        self.blocks = [[_Byte() for _ in range(_SHARED_BYTES)] for _ in range(blocks)]
        self.found: Counter[tuple[str, int]] = Counter()

    def barrier(self, passed: list[bool]) -> None:
        for memory, yes in zip(self.blocks, passed, strict=True):
            if yes:
                for byte in memory:
                    byte.threads.clear()
                    byte.lanes.clear()

    def order(self, warps: list[bool]) -> None:
        """Order the lanes of some warps of all blocks."""
        for byte in (byte for memory in self.blocks for byte in memory):
            for lanes in byte.lanes.values():
                lanes -= {lane for lane in lanes if warps[lane // 32]}

    def access(
        self, action: str, pc: int, lanes: list[tuple[int, int, int]], width_bytes: int
    ) -> None:
        """Perform one instruction; each lane is (block, thread, address)."""
        if action in {"write", "end_copy"}:
            self._record("write", lanes, width_bytes)
        if action == "end_copy":
            return
        against = {
            "read": {"write": READ_AFTER_WRITE, "atomic": READ_AFTER_WRITE},
            "atomic": {"read": WRITE_AFTER_READ, "write": WRITE_AFTER_WRITE},
        }.get(
            action,
            {"read": WRITE_AFTER_READ, "write": WRITE_AFTER_WRITE, "atomic": WRITE_AFTER_WRITE},
        )
        for block, thread, address in lanes:
            touched = self.blocks[block][address : address + width_bytes]
            for earlier, kind in against.items():
                if any(byte.is_met(earlier, thread) for byte in touched):
                    self.found[kind, pc] += 1
            if action in {"read", "atomic"} and not all(byte.written for byte in touched):
                self.found[UNINITIALISED, pc] += 1
        if action in {"read", "atomic", "start_copy"}:
            self._record(action, lanes, width_bytes)

    def _record(self, action: str, lanes: list[tuple[int, int, int]], width_bytes: int) -> None:
        for block, thread, address in lanes:
            for byte in self.blocks[block][address : address + width_bytes]:
                byte.threads[action].add(thread)
                byte.lanes[action].add(thread)
                byte.written |= action != "read"


def _lanes(
    blocks: int, address: NDArray[np.int64], mask: NDArray[np.bool_] | None
) -> list[tuple[int, int, int]]:
    shape = (blocks, _THREADS)
    every = np.broadcast_to(address, shape)
    active = np.broadcast_to(True if mask is None else mask, shape)
    return [(int(b), int(t), int(every[b, t])) for b, t in np.argwhere(active)]


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2))
def test_random_traces_show_what_the_slow_shadow_finds(seed: int, blocks: int) -> None:
    random = np.random.default_rng(seed)
    sink = HazardSink(
        place_of=lambda pc: Place(file="k.cu", line=pc),
        block_of=lambda block: (block, 0, 0),
        thread_of=lambda thread: (thread, 0, 0),
    )
    shadow = SharedShadow(_SHARED_BYTES, sink)
    shadow.begin_slice(blocks, _THREADS)
    slow = _SlowShadow(blocks)
    widths = random.permutation([[4, 8, 16], [2, 4], [1, 4, 16]][random.integers(3)])
    for pc in range(14):
        action = str(random.choice(_ACTIONS))
        if action == "order":
            warps = random.random(_THREADS // 32) < 0.5
            shadow.order_warps(np.repeat(warps, 32)[None, :])
            slow.order(warps.tolist())
            continue
        if action == "barrier":
            passed = random.random((blocks, 1)) < random.choice([0.5, 1.0])
            shadow.barrier(None if passed.all() else passed)
            slow.barrier(passed[:, 0].tolist())
            continue
        width = int(random.choice(widths))
        shape = (random.choice([1, blocks]), random.choice([1, _THREADS]))
        address = width * random.integers(0, _SHARED_BYTES // width, shape)
        shape = (random.choice([1, blocks]), random.choice([1, _THREADS]))
        mask = None if random.random() < 0.3 else random.random(shape) < random.random() ** 3
        getattr(shadow, action)(pc, address, mask, width)
        slow.access(action, pc, _lanes(blocks, address, mask), width)
    shadow.end_slice()
    assert {(hazard.kind, hazard.line): hazard.count for hazard in sink.hazards()} == slow.found
