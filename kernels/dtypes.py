"""Element types: how each is kept in memory, what its poison is, how it becomes a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Dtype:
    """One element type."""

    storage: np.dtype[np.generic]
    """How NumPy keeps it; bfloat16, which NumPy lacks, as its bits."""
    poison: int
    """Bits of an element that nobody wrote. For floats a signalling NaN with a payload:
    arithmetic never makes one, so finding it proves a copy."""
    unit_roundoff: float
    """u of round-to-nearest; 0 for integers."""


DTYPES: Mapping[str, Dtype] = {
    "float32": Dtype(storage=np.dtype(np.float32), poison=0x7FA0D1E5, unit_roundoff=2.0**-24),
    "float16": Dtype(storage=np.dtype(np.float16), poison=0x7D1E, unit_roundoff=2.0**-11),
    "bfloat16": Dtype(storage=np.dtype(np.uint16), poison=0x7FA5, unit_roundoff=2.0**-8),
    "uint32": Dtype(storage=np.dtype(np.uint32), poison=0xA0D1E5A0, unit_roundoff=0.0),
}
"""Every element type an operand may have."""

_CANONICAL_NAN = 0x7FFF
"""What hardware makes of any NaN that is rounded to bfloat16 (PTX ISA, cvt)."""


def bits(elements: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the same contiguous memory as unsigned integers of the same width."""
    same: NDArray[np.generic] = elements.view(f"u{elements.itemsize}")
    return same


def numbers(elements: NDArray[np.generic], dtype: str) -> NDArray[np.generic]:
    """Return stored elements as numbers: float32 for floats, exactly; integers as they are."""
    if dtype == "bfloat16":
        widened = np.ascontiguousarray(elements).astype(np.uint32) << np.uint32(16)
        return widened.view(np.float32)
    if dtype == "float16":
        return elements.astype(np.float32)
    return elements


def stored(values: NDArray[np.generic], dtype: str) -> NDArray[np.generic]:
    """Return numbers as an element type keeps them, floats rounded to nearest even."""
    if dtype != "bfloat16":
        return values.astype(DTYPES[dtype].storage)
    single = np.ascontiguousarray(values, dtype=np.float32)
    word = single.view(np.uint32)
    odd = word >> np.uint32(16) & np.uint32(1)
    rounded = (word + np.uint32(0x7FFF) + odd) >> np.uint32(16)
    return np.where(np.isnan(single), np.uint32(_CANONICAL_NAN), rounded).astype(np.uint16)
