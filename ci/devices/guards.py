"""Guard bands around a buffer in device memory: how they are laid out, and what damaged them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.operands import POISON_BITS

GUARD_BYTES = 4096
"""On each side of a buffer: a row of a tile that runs over lands in it."""
_WORD_BYTES = 4

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, slots=True)
class Damage:
    """What a launch did to the guard bands of a buffer."""

    words: int
    """4-byte words that changed."""
    place: str
    """The first of them, as its distance from the buffer."""


def guarded(data: NDArray[np.generic], misalignment_bytes: int) -> tuple[Bytes, int]:
    """Return the memory to copy to an aligned address, and where in it the data start (bytes).

    Args:
        data: One-dimensional and contiguous.
        misalignment_bytes: By how much the data miss the alignment of the address.
    """
    start = GUARD_BYTES + misalignment_bytes
    memory = np.empty(start + data.nbytes + GUARD_BYTES, dtype=np.uint8)
    for band in _bands(memory, start, data.nbytes):
        band[:] = _poison(band.size)
    memory[start : start + data.nbytes] = data.view(np.uint8)
    return memory, start


def damage(memory: Bytes, start: int, length: int) -> Damage | None:
    """Return what changed outside the ``length`` bytes from ``start``, None if nothing did."""
    before, behind = (np.flatnonzero(b != _poison(b.size)) for b in _bands(memory, start, length))
    words = np.unique((before - start) // _WORD_BYTES).size + np.unique(behind // _WORD_BYTES).size
    if not words:
        return None
    if behind.size:
        place = f"byte offset {length + int(behind[0])}, {int(behind[0])} past its end"
    else:
        place = f"byte offset {int(before[-1]) - start}, before its beginning"
    return Damage(words=words, place=place)


def _bands(memory: Bytes, start: int, length: int) -> tuple[Bytes, Bytes]:
    return memory[:start], memory[start + length :]


def _poison(size: int) -> Bytes:
    """Return ``size`` bytes that read as NaN where float32 is read."""
    word = np.array([POISON_BITS], dtype=np.uint32).view(np.uint8)
    return np.resize(word, size)
