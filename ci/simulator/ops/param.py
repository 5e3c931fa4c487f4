"""Loads and stores of the parameters that calls pass: pieces of a register of many bytes.

Source: PTX ISA, "Parameter State Space", "Device Function Parameters".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import Fetch, UnsupportedError
from ci.simulator.memory import joint_shape
from ci.simulator.ptx import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Mask, Step
    from ci.simulator.ptx import Operand


def load_param(
    code: Code,
    source: Address,
    stores: Sequence[Callable[[Array], None]],
    dtypes: Sequence[np.dtype[Any]],
) -> Step:
    """Return the step that reads elements that lie one behind the other.

    Raises:
        UnsupportedError: They lie outside of the parameter, or it is a register with an address.
    """
    slots, slot = code.slots, code.read_param(source.base)
    width, start = dtypes[0].itemsize, source.offset
    _require_inside(slots[slot], start, width * len(dtypes))

    def step(_: Mask) -> None:
        content = slots[slot]
        for element, (store, dtype) in enumerate(zip(stores, dtypes, strict=True)):
            store(as_type(content, dtype, start + element * width))

    return step


def as_type(param: Array, dtype: np.dtype[Any], start: int = 0) -> Array:
    """Return the element at byte ``start`` of each parameter."""
    piece = np.ascontiguousarray(_bytes(param)[..., start : start + dtype.itemsize])
    return np.asarray(piece.view(dtype)[..., 0])


def store_param(code: Code, target: Operand, fetches: Sequence[Fetch], width_bytes: int) -> Step:
    """Return the step that writes elements that lie one behind the other.

    Raises:
        UnsupportedError: They lie outside of the parameter, or it is none of a call.
    """
    if not isinstance(target, Address):
        raise UnsupportedError(str(target))
    slots, slot = code.slots, code.written_param(target.base)
    start, count = target.offset, width_bytes * len(fetches)
    _require_inside(slots[slot], start, count)
    if count < slots[slot].itemsize:
        # The other bytes stay.
        code.read_param(target.base)

    def step(_: Mask) -> None:
        before = slots[slot]
        values = [fetch() for fetch in fetches]
        content = np.empty((*joint_shape(before, *values), before.itemsize), np.uint8)
        content[:] = _bytes(before)
        for element, value in enumerate(values):
            at = start + element * width_bytes
            content[..., at : at + width_bytes] = _bytes(value)
        slots[slot] = content.view(before.dtype)[..., 0]

    return step


def _require_inside(param: Array, start: int, count: int) -> None:
    if not 0 <= start <= param.itemsize - count:
        raise UnsupportedError(f"byte {start} of a parameter of {param.itemsize}")


def _bytes(value: Array) -> Array:
    """Return (b, t) elements as (b, t, bytes)."""
    return np.ascontiguousarray(value).view(np.uint8).reshape(*value.shape, value.itemsize)
