"""Whether stores that meet in shared memory store the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ci.simulator.forms import unsigned
from ci.simulator.memory import spread_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from ci.simulator.marks import Touches


class Stored(NamedTuple):
    """What one instruction stored."""

    touches: Touches | None
    """Where; None: in places that are no longer known."""
    values: Sequence[NDArray[Any]] | None
    """(b, t) arrays, one per element; None: unknown."""

    def pieces(self, blocks: int, granule_bytes: int) -> NDArray[np.uint32] | None:
        """Return what each touch stored, (blocks or 1, touches); None if unknown."""
        touches = self.touches
        if touches is None or self.values is None:
            return None
        threads = max(int(touches.thread.max()) + 1, *(v.shape[1] for v in self.values))
        shape = (blocks, threads)
        bits = [value.view(unsigned(value.dtype)) for value in self.values]
        each = np.stack([spread_to(value, shape) for value in bits], axis=-1)
        parts = each.view(np.uint8).view(f"u{granule_bytes}")
        part = np.arange(len(touches.thread)) % touches.per_lane
        if touches.row is None:
            return np.asarray(parts[:, touches.thread, part].astype(np.uint32))
        return np.asarray(parts[touches.row, touches.thread, part].astype(np.uint32)[None])


def differing(
    stores: Iterable[Stored],
    touches: Touches,
    found: NDArray[np.bool_],
    blocks: int,
    granule_bytes: int,
) -> NDArray[np.bool_]:
    """Return which of the ``found`` touches lie where the stores do not all store one value.

    Args:
        stores: All stores since the last barrier, the one in question included.
        touches: Where the one in question stores.
        found: Those of its touches that meet another store.
        blocks: Blocks of the slice.
        granule_bytes: Bytes of a touch.
    """
    places = np.unique(touches.granule[found])
    rows = blocks if touches.row is None else 1
    lowest = np.full((len(places), rows), np.iinfo(np.uint32).max, np.uint32)
    highest = np.zeros((len(places), rows), np.uint32)
    for store in stores:
        pieces = store.pieces(blocks, granule_bytes)
        if pieces is None or store.touches is None:
            return found.copy()
        granule = store.touches.granule
        at = np.minimum(np.searchsorted(places, granule), len(places) - 1)
        meets = places[at] == granule
        np.minimum.at(lowest, at[meets], pieces[:, meets].T)
        np.maximum.at(highest, at[meets], pieces[:, meets].T)
    real = found.copy()
    unequal = (lowest != highest).any(axis=1)
    real[found] = unequal[np.searchsorted(places, touches.granule[found])]
    return real
