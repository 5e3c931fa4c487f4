"""The threads of one slice of a launch, and what they share: the state that steps act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.memory import GlobalMemory, spread_to
from ci.simulator.onchip import Local, Shared, Unwritten
from ci.simulator.pending import Pending
from ci.simulator.printf import Output

if TYPE_CHECKING:
    from ci.simulator.counters import LaunchCounters
    from ci.simulator.forms import Array, Mask
    from ci.simulator.global_shadow import GlobalShadow
    from ci.simulator.hazards import SharedShadow
    from ci.simulator.sink import HazardSink

WARP = 32
TICK = 1 << 10
"""By how much the clocks move on between two looks."""


class Lanes:
    """Blocks and threads of the current slice, their memories, and who watches them."""

    sink: HazardSink
    shadow: SharedShadow
    globals: GlobalShadow
    counters: LaunchCounters | None

    def __init__(self) -> None:
        """Begin without a launch."""
        self.blocks = 1
        self.threads = WARP
        """Threads of a block, padded to whole warps."""
        self.everyone: Mask = None
        """All lanes that are no padding: None, or (1, threads)."""
        self.elsewhere: dict[tuple[int, ...], Mask] = {}
        """Calls and program counter → lanes that wait there for the running ones to catch up."""
        self.exits: frozenset[int] = frozenset()
        """Program counters at which nothing is left to do but to exit."""
        self.ends: frozenset[int] = frozenset()
        """Those from which lanes exit with no barrier, warp instruction or shared memory before."""
        self.running: Mask = None
        """The lanes that the current instructions are executed for, before guards."""
        self.parameters = np.zeros(0, np.uint8)
        """The parameter block."""
        self.output = Output()
        """What the launch prints."""
        self.ticks = 0
        """What the clocks of the slice showed last."""
        self.memory = GlobalMemory(self)
        self.shared = Shared(self)
        self.local = Local(self)
        self.unwritten = Unwritten(self)
        self.pending = Pending(self)

    def begin_slice(self, blocks: int, threads: int, shared_bytes: int, local_bytes: int) -> None:
        """Start ``blocks`` fresh blocks of ``threads`` threads."""
        self.blocks = blocks
        self.threads = -(-threads // WARP) * WARP
        self.everyone = None
        if threads < self.threads:
            self.everyone = np.zeros((1, self.threads), np.bool_)
            self.everyone[:, :threads] = True
        self.elsewhere = {}
        self.running = self.everyone
        self.pending.begin_slice()
        self.ticks = 0
        self.shared.begin_slice(shared_bytes)
        self.local.begin_slice(local_bytes)
        self.unwritten.begin_slice(local_bytes)
        self.shadow.begin_slice(blocks, threads)
        self.globals.begin_slice(blocks)
        if self.counters is not None:
            self.counters.begin_slice(blocks, threads)

    def tick(self) -> int:
        """Return the time, which goes on whenever someone looks."""
        self.ticks += TICK
        return self.ticks

    def spread(self, mask: Mask) -> Array:
        """Return a mask in full, (blocks, threads)."""
        shape = (self.blocks, self.threads)
        chosen = self.everyone if mask is None else mask
        return np.ones(shape, np.bool_) if chosen is None else spread_to(chosen, shape)

    def reduced(self, mask: Mask, shape: tuple[int, ...]) -> Array:
        """Return a mask in the shape of addresses: true where any lane of theirs is active."""
        chosen = self.everyone if mask is None else mask
        if chosen is None:
            return np.ones(shape, np.bool_)
        for axis in (0, 1):
            if shape[axis] == 1 and chosen.shape[axis] > 1:
                chosen = np.logical_or.reduce(chosen, axis=axis, keepdims=True)
        return spread_to(chosen, shape)

    def both(self, mask: Mask, other: Array) -> Array:
        """Return the active lanes among ``other``."""
        chosen = self.everyone if mask is None else mask
        return other if chosen is None else chosen & other

    def barrier(self, mask: Mask) -> None:
        """Order what the threads of blocks did; ``mask`` as in ``SharedShadow.barrier``."""
        self.shadow.barrier(mask)
        self.globals.barrier(mask)

    def order_warps(self, mask: Mask) -> None:
        """Order the active lanes of each warp, which execute an instruction together."""
        chosen = self.everyone if mask is None else mask
        self.shadow.order_warps(chosen)
        self.globals.order_warps(chosen)

    def live(self, gone: frozenset[int]) -> Array:
        """Return the lanes that have not exited, (blocks, threads).

        Args:
            gone: Program counters, outside calls, at which lanes count as having exited.
        """
        everything = self.spread(self.running).copy()
        for path, waiting in self.elsewhere.items():
            if len(path) > 1 or path[0] not in gone:
                everything |= self.spread(waiting)
        return everything

    def report(self, kind: str, pc: int, bad: Array, detail: str) -> None:
        """Report the lanes in ``bad``, which is broadcast; ``detail`` is about its first one."""
        everywhere = self.spread(bad)
        count = int(np.count_nonzero(everywhere))
        if count:
            block, thread = divmod(int(everywhere.argmax()), self.threads)
            self.sink.add(kind, pc, count, block, thread, detail)
