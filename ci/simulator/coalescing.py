"""What the addresses of warps cost on sm_90: sectors of global, wavefronts of shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Addresses = NDArray[np.int64]
    Activity = NDArray[np.bool_]

LANES = 32
"""Lanes of a warp."""
BANKS = 32
WORD_BYTES = 4
SECTOR_BYTES = 32

_SECTOR_SHIFT = 5
_WORD_SHIFT = 2

# Sorts behind every address.
_NOWHERE = np.int64(np.iinfo(np.int64).max)
# Shared words stay far below 2**40, so bank and word share one sortable number.
_BANK_SHIFT = 40


class Sectors(NamedTuple):
    """Cost of global-memory requests."""

    total: int
    """Sectors the lanes touch."""
    ideal: int
    """Sectors if the distinct accesses of each warp lay side by side."""


class Wavefronts(NamedTuple):
    """Cost of shared-memory requests."""

    total: int
    """Wavefronts with bank conflicts."""
    ideal: int
    """Wavefronts if no two words shared a bank."""


def count_sectors(address: Addresses, active: Activity | None, width_bytes: int) -> Sectors:
    """Return the number of distinct 32-byte sectors per warp, summed over the warps.

    Args:
        address: (warps, 32) byte addresses; a naturally aligned access lies in one sector.
        active: (warps, 32), or None if every lane is active.
        width_bytes: Bytes per lane.

    Source:
        Equal to ``l1tex__t_sectors_pipe_lsu_mem_global_op_{ld,st}.sum`` on an H200.
    """
    where = address if active is None else np.where(active, address, _NOWHERE)
    # Lanes mostly ascend through memory, and then neighbours tell distinct ones apart.
    if (where[:, 1:] < where[:, :-1]).any():
        where = np.sort(where, axis=1)
    sector = where >> _SECTOR_SHIFT
    changes = int(np.count_nonzero(sector[:, 1:] != sector[:, :-1]))
    # Inactive lanes come last and stand for one place that is none.
    idle = where[:, -1] == _NOWHERE
    total = changes + len(where) - int(np.count_nonzero(idle))
    accesses = np.count_nonzero(where[:, 1:] != where[:, :-1], axis=1) + 1 - idle
    ideal = -(-accesses * width_bytes // SECTOR_BYTES)
    return Sectors(total, int(ideal.sum()))


def count_wavefronts(address: Addresses, active: Activity | None, width_bytes: int) -> Wavefronts:
    """Return the wavefronts of shared-memory requests, summed over the warps.

    A request of 8 or 16 bytes a lane is served in 2 or 4 phases of consecutive lanes, in half as
    many if every active lane has the address of lane xor 1, or every active lane that of lane
    xor 2. In a phase, distinct words of one bank follow each other.

    Args:
        address: (warps, 32) byte addresses in shared memory.
        active: (warps, 32), or None if every lane is active.
        width_bytes: Bytes per lane; up to 4, 8 or 16.

    Source:
        Equal to ``l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{ld,st}.sum`` and
        ``l1tex__data_bank_conflicts_...`` on an H200 for all of ``tests/data/ncu-h200``.
    """
    phases = max(1, width_bytes // WORD_BYTES)
    if phases == 1:
        return _serialise(address >> _WORD_SHIFT, active)
    halved = _pairs_agree(address, active, 1) | _pairs_agree(address, active, 2)
    total = ideal = 0
    for chosen, count in ((halved, phases // 2), (~halved, phases)):
        if not chosen.any():
            continue
        first_word = address[chosen].reshape(-1, LANES // count) >> _WORD_SHIFT
        word = first_word[:, :, None] + np.arange(phases)
        lanes_active = None
        if active is not None:
            lanes_active = np.repeat(active[chosen].reshape(first_word.shape), phases, axis=1)
        cost = _serialise(word.reshape(len(word), -1), lanes_active)
        total += cost.total
        ideal += cost.ideal
    return Wavefronts(total, ideal)


def _pairs_agree(address: Addresses, active: Activity | None, distance: int) -> Activity:
    """Return per warp whether lanes whose number differs in one bit have equal addresses."""
    pairs = address.reshape(len(address), -1, 2, distance)
    agree = pairs[:, :, 0] == pairs[:, :, 1]
    if active is not None:
        both = active.reshape(pairs.shape)
        agree |= ~(both[:, :, 0] & both[:, :, 1])
    return np.asarray(agree.all(axis=(1, 2)))


def _serialise(word: Addresses, active: Activity | None) -> Wavefronts:
    """Return the wavefronts of phases, each a row of (phases, words) word numbers."""
    key = (word % BANKS << _BANK_SHIFT) | word
    if active is not None:
        key = np.where(active, key, _NOWHERE)
    key.sort(axis=1)
    distinct = np.ones(key.shape, dtype=np.bool_)
    np.not_equal(key[:, 1:], key[:, :-1], out=distinct[:, 1:])
    distinct &= key != _NOWHERE
    phase, _ = np.nonzero(distinct)
    bank = key[distinct] >> _BANK_SHIFT
    words = np.bincount(phase * BANKS + bank, minlength=len(key) * BANKS)
    longest = words.reshape(len(key), BANKS).max(axis=1)
    return Wavefronts(int(longest.sum()), int(np.count_nonzero(longest)))
