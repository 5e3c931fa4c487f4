"""The upper half of integer products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import U8

if TYPE_CHECKING:
    from ci.simulator.forms import Array

DType = np.dtype[Any]


def wide_type(dtype: DType) -> DType:
    """Return the integer type of twice the width."""
    return np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")


def high_product(a: Array, b: Array) -> Array:
    """Return the upper half of the double-width product."""
    dtype = a.dtype
    bits = 8 * dtype.itemsize
    if dtype.itemsize < 8:
        wide = wide_type(dtype)
        return np.asarray((a.astype(wide) * b.astype(wide)) >> bits).astype(dtype)
    half, low = U8.type(32), U8.type(0xFFFFFFFF)
    x, y = a.view(U8), b.view(U8)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + (x0 * y0 >> half)
    other = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> half) + (other >> half)
    if dtype.kind == "i":
        # A negative factor counts 2**64 too much of the other one.
        high = high - np.where(a < 0, y, 0) - np.where(b < 0, x, 0)
    return np.asarray(high).view(dtype)
