"""What a profiler would count in one launch, for each instruction."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from ci.simulator.coalescing import LANES, Wavefronts, count_sectors, count_wavefronts
from ci.simulator.merging import MergedAccess
from ci.simulator.report import Counts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


_Item = TypeVar("_Item", bound=np.generic)

# Patterns repeat within a loop; what an earlier loop left behind need not stay.
_KNOWN_PATTERNS = 4096


class _Requests(NamedTuple):
    """The requests of one access: some blocks' worth of warps, each standing for several."""

    address: NDArray[np.int64]
    """(warps, 32)."""
    active: NDArray[np.bool_] | None
    """(warps, 32); None: every lane."""
    alike: int
    """How many times these warps occur."""

    def warps(self) -> int:
        """Return the number of warps with an active lane."""
        if self.active is None:
            return self.alike * len(self.address)
        return self.alike * int(np.count_nonzero(self.active.any(axis=1)))

    def lanes(self) -> int:
        """Return the number of active lanes."""
        if self.active is None:
            return self.alike * self.address.size
        return self.alike * int(np.count_nonzero(self.active))


class LaunchCounters:
    """Counts the requests of a launch, slice by slice.

    Addresses have shape (b, t) with b in {1, blocks} and t in {1, padded threads}, in bytes.
    Masks are broadcastable to that and exclude padding; None means every thread of every block.
    """

    def __init__(self, merged: Mapping[int, MergedAccess], *, local: bool = True) -> None:
        """Prepare for a kernel.

        Args:
            merged: Which of its accesses are parts of merged ones.
            local: Whether its machine code reaches local memory; if not, none of it is counted.
        """
        self._merged = merged
        self._local = local
        # First instructions whose merged access was aligned when they were executed last.
        self._performed_merged: set[int] = set()
        self._tally: defaultdict[tuple[int, str], int] = defaultdict(int)
        self.begin_slice(1, LANES)

    def begin_slice(self, blocks: int, threads: int) -> None:
        """Set the shape of the following accesses.

        Args:
            blocks: Blocks in the slice.
            threads: Threads of a block, without padding.
        """
        self._blocks = blocks
        self._padded = -(-threads // LANES) * LANES
        lane = np.arange(self._padded)
        self._real = None if threads == self._padded else (lane < threads)[None, :]
        self._patterns: dict[tuple[int, int, int, bytes, bytes], Wavefronts | None] = {}

    def global_access(
        self,
        pc: int,
        store: bool,  # noqa: FBT001
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
        elements: int,
    ) -> None:
        """Count a load, store or asynchronous copy from global memory.

        Args:
            pc: The instruction.
            store: Whether it is a store.
            address: Byte addresses; naturally aligned, so that a lane touches one sector.
            mask: Active lanes.
            width_bytes: Bytes per lane.
            elements: Components per lane, such as 4 for ``v4.f32``.
        """
        requests = self._requests(address, mask)
        if requests is None:
            return
        sectors = count_sectors(requests.address, requests.active, width_bytes)
        kind = "global_store" if store else "global_load"
        self._tally[pc, f"{kind}_requests"] += requests.warps()
        self._tally[pc, f"{kind}_sectors"] += requests.alike * sectors.total
        self._tally[pc, f"{kind}_ideal_sectors"] += requests.alike * sectors.ideal
        if not store:
            self._tally[pc, "global_load_elements"] += elements * requests.lanes()

    def shared_access(
        self,
        pc: int,
        store: bool,  # noqa: FBT001
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
    ) -> None:
        """Count a load from or store to shared memory, as part of a merged one where it is.

        A matrix load of n matrices is a 16-byte load of the first 8 n lanes of each warp: the
        mask holds those alone.

        Args:
            pc: The instruction.
            store: Whether it is a store.
            address: Byte addresses.
            mask: Active lanes.
            width_bytes: Bytes per lane.
        """
        merged = self._merged.get(pc)
        cost = None
        if merged is not None and merged.first == pc:
            cost = self._wavefronts(address, mask, merged.width_bytes, merged.skew_bytes)
            if cost is None:
                self._performed_merged.discard(pc)
            else:
                self._performed_merged.add(pc)
        elif merged is not None and merged.first in self._performed_merged:
            return
        if cost is None:
            cost = self._wavefronts(address, mask, width_bytes, 0)
        if cost is not None:
            kind = "shared_store" if store else "shared_load"
            self._tally[pc, f"{kind}_wavefronts"] += cost.total
            self._tally[pc, f"{kind}_conflicts"] += cost.total - cost.ideal

    def atomic_access(
        self,
        pc: int,
        space: str,
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
    ) -> None:
        """Count an atomic operation in a space; other arguments as in ``shared_access``."""
        requests = self._requests(address, mask)
        if requests is None:
            return
        self._tally[pc, "atomic_requests"] += requests.warps()
        if space == "shared":
            self._tally[pc, "shared_atomic_requests"] += requests.warps()
        else:
            sectors = count_sectors(requests.address, requests.active, width_bytes)
            self._tally[pc, "atomic_sectors"] += requests.alike * sectors.total

    def local_access(
        self,
        pc: int,
        store: bool,  # noqa: FBT001
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
    ) -> None:
        """Count a load from or store to local memory."""
        if not self._local:
            return
        requests = self._requests(np.zeros((1, 1), dtype=np.int64), mask)
        if requests is not None:
            kind = "local_store" if store else "local_load"
            self._tally[pc, f"{kind}_requests"] += requests.warps()
            self._tally[pc, "local_bytes"] += width_bytes * requests.lanes()

    def report(self) -> Mapping[int, Counts]:
        """Return the counts by program counter; instructions that count nothing are left out."""
        fields: dict[int, dict[str, int]] = {}
        for (pc, field), value in sorted(self._tally.items()):
            if value:
                fields.setdefault(pc, {})[field] = value
        return {pc: Counts(**values) for pc, values in fields.items()}

    def _requests(
        self, address: NDArray[np.int64], mask: NDArray[np.bool_] | None
    ) -> _Requests | None:
        """Return the access in rows of warps, None if no lane takes part."""
        blocks = self._blocks
        active = self._real
        if mask is not None and mask.shape[1] > 1:
            active = None if mask.all() else mask
        elif mask is not None:
            chosen = np.broadcast_to(mask[:, 0], blocks)
            blocks = int(np.count_nonzero(chosen))
            if len(address) > 1:
                address = address[chosen]
        if not blocks or (active is not None and not active.any()):
            return None
        rows = max(len(address), 1 if active is None else len(active))
        return _Requests(
            self._in_warps(address, rows),
            None if active is None else self._in_warps(active, rows),
            blocks // rows,
        )

    def _in_warps(self, lanes: NDArray[_Item], rows: int) -> NDArray[_Item]:
        """Return an array of (blocks, threads), broadcast to so many rows, as (warps, 32)."""
        if lanes.shape != (rows, self._padded):
            lanes = np.broadcast_to(lanes, (rows, self._padded))
        return lanes.reshape(-1, LANES)

    def _wavefronts(
        self,
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
        skew_bytes: int,
    ) -> Wavefronts | None:
        """Return what an access costs all blocks; None if an active lane is misaligned.

        The access begins ``skew_bytes`` below ``address``.
        """
        if len(address) > 1 or (mask is not None and len(mask) > 1):
            return self._find_wavefronts(address, mask, width_bytes, skew_bytes)
        active = b"" if mask is None else mask.tobytes()
        pattern = (self._blocks, width_bytes, skew_bytes, address.tobytes(), active)
        if pattern not in self._patterns:
            if len(self._patterns) == _KNOWN_PATTERNS:
                self._patterns.clear()
            cost = self._find_wavefronts(address, mask, width_bytes, skew_bytes)
            self._patterns[pattern] = cost
        return self._patterns[pattern]

    def _find_wavefronts(
        self,
        address: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        width_bytes: int,
        skew_bytes: int,
    ) -> Wavefronts | None:
        requests = self._requests(address - skew_bytes, mask)
        if requests is None:
            return Wavefronts(0, 0)
        odd = requests.address & (width_bytes - 1) != 0
        if requests.active is not None:
            odd &= requests.active
        if odd.any():
            return None
        cost = count_wavefronts(requests.address, requests.active, width_bytes)
        return Wavefronts(requests.alike * cost.total, requests.alike * cost.ideal)
