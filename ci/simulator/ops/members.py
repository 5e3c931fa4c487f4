"""Who takes part in an instruction that the lanes of a warp execute together.

A lane may name only lanes that come, itself among them. Lanes that have exited do not count.

Source: PTX ISA, "membermask" of shfl.sync, vote.sync, match.sync, redux.sync, bar.warp.sync; CUDA
C++ Programming Guide, "Warp Vote Functions" to "Warp Shuffle Functions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.forms import U4
from ci.simulator.lanes import WARP

if TYPE_CHECKING:
    from ci.simulator.forms import Array, Mask
    from ci.simulator.lanes import Lanes

LEFT_OUT = "lane outside its member mask"
MISSING = "warp instruction without all its lanes"

EVERYONE = 0xFFFFFFFF


def meet(lanes: Lanes, pc: int, mask: Mask, members: Array, *, at_once: bool = True) -> None:
    """Order the active lanes of each warp, after reporting masks that do not fit them.

    Args:
        lanes: The slice.
        pc: The instruction.
        mask: Active lanes.
        members: (b, t) member mask that each lane gives.
        at_once: Whether named lanes must come to this very instruction, as they need not to a
            warp barrier.
    """
    if members.size != 1 or members.item(0) != EVERYONE:
        _check_own(lanes, pc, mask, members)
    if at_once and (lanes.elsewhere or mask is not lanes.running):
        _check_others(lanes, pc, mask, members)
    lanes.order_warps(mask)


def names(members: Array, lane: Array) -> Array:
    """Return whether each member mask names a lane."""
    return np.asarray(members.view(U4) >> lane.astype(U4) & U4.type(1) != 0)


def _check_own(lanes: Lanes, pc: int, mask: Mask, members: Array) -> None:
    lane = np.arange(lanes.threads)[None, :] % WARP
    left_out = lanes.both(mask, ~names(members, lane))
    if left_out.any():
        lanes.report(LEFT_OUT, pc, left_out, "instruction whose mask leaves the lane out, executed")


def _check_others(lanes: Lanes, pc: int, mask: Mask, members: Array) -> None:
    here = lanes.spread(mask)
    by_warp = (len(here), -1, WARP)
    given = np.where(here, members.view(U4), U4.type(0)).reshape(by_warp)
    named = names(np.bitwise_or.reduce(given, axis=-1, keepdims=True), np.arange(WARP))
    missing = named & (lanes.live(lanes.exits) & ~here).reshape(by_warp)
    if missing.any():
        short = missing.any(axis=-1, keepdims=True) & here.reshape(by_warp)
        block, warp = (int(index[0]) for index in np.nonzero(short.any(axis=-1)))
        lane = int(missing[block, warp].argmax())
        text = f"instruction that waits for lane {lane}, which is elsewhere, executed"
        lanes.report(MISSING, pc, short.reshape(here.shape), text)
