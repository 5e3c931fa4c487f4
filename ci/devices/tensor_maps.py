"""Tensor maps, which kernels for the tensor memory accelerator take as a parameter by value."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ci.devices.errors import LaunchError

_BYTES = 128
_FLOAT32 = 7
"""CU_TENSOR_MAP_DATA_TYPE_FLOAT32."""


def tiled_float32(
    address: int, shape: Sequence[int], leading_bytes: Sequence[int], box: Sequence[int]
) -> NDArray[np.void]:
    """Return the tensor map of float32 memory, as an argument of a launch.

    Args:
        address: Device address of element 0, a multiple of 16.
        shape: Extents, innermost first.
        leading_bytes: Bytes between neighbours along each axis but the innermost.
        box: Extents of what one copy moves, innermost first.

    Raises:
        LaunchError: The driver refuses these numbers.
    """
    # The driver wants 64 bytes of alignment, kernels declare 128; NumPy gives neither by itself.
    memory = np.zeros(2 * _BYTES, dtype=np.uint8)
    start = -memory.ctypes.data % _BYTES
    descriptor = memory[start : start + _BYTES]
    rank = len(shape)
    numbers = (
        (ctypes.c_uint64 * rank)(*shape),
        (ctypes.c_uint64 * max(1, rank - 1))(*leading_bytes),
        (ctypes.c_uint32 * rank)(*box),
        (ctypes.c_uint32 * rank)(*[1] * rank),
    )
    no_interleave, no_swizzle, no_promotion, zero_fill = (ctypes.c_int(0) for _ in range(4))
    status = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.c_void_p(descriptor.ctypes.data),
        ctypes.c_int(_FLOAT32),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(address),
        *numbers,
        no_interleave,
        no_swizzle,
        no_promotion,
        zero_fill,
    )
    if status != 0:
        raise LaunchError(
            f"cuTensorMapEncodeTiled answered error {status} for shape {tuple(shape)}, strides "
            f"{tuple(leading_bytes)} bytes, box {tuple(box)}, address {address:#x}, expected 0 "
            "(addresses and strides are multiples of 16 bytes, a box has at most 256 a side)"
        )
    argument: NDArray[np.void] = descriptor.view("V128").reshape(())
    return argument
