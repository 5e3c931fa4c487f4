"""f64 arithmetic rounded toward zero, up or down, with exact fractions: rare, so slow is fine.

Source: PTX ISA, "Floating Point Instructions", rounding modifiers; IEEE 754-2019, section 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.forms import F8

if TYPE_CHECKING:
    from ci.simulator.forms import Array

_EXACT_BELOW = 2.0**53

EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
}
"""Opcode → operation on fractions; a square root is compared by its square instead."""


def directed_double(opcode: str, nearest: Callable[..., Array], mode: str) -> Callable[..., Array]:
    """Return an operation on f64 arrays, rounded as ``rz``, ``rm`` or ``rp`` says.

    Args:
        opcode: Such as ``add``.
        nearest: The operation, rounded to nearest.
        mode: The direction.
    """

    def operate(*values: Array) -> Array:
        near = np.array(np.broadcast_arrays(nearest(*values), *values)[0])
        parts = np.broadcast_arrays(near, *values)[1:]
        finite = np.logical_and.reduce([np.isfinite(part) for part in parts])
        # Infinities that come of finite operands are overflows, or divisions by zero.
        for place in np.argwhere(finite):
            index = tuple(place)
            near[index] = _one(opcode, float(near[index]), [float(p[index]) for p in parts], mode)
        return near

    return operate


def _one(opcode: str, near: float, values: list[float], mode: str) -> float:
    if math.isnan(near) or (opcode in ("div", "rcp") and values[-1] == 0):
        return near
    sign = _beyond(opcode, near, values)
    if sign == 0:
        return (
            _zero(opcode, values, mode) if near == 0 and opcode in ("add", "sub", "fma") else near
        )
    # An exact zero keeps its sign; otherwise the nearest value is moved where it lies wrong.
    if mode == "rp" or (mode == "rz" and (near < 0 or (near == 0 and sign < 0))):
        return math.nextafter(near, math.inf) if sign > 0 else near
    return math.nextafter(near, -math.inf) if sign < 0 else near


def _beyond(opcode: str, near: float, values: list[float]) -> int:
    """Return the sign of the exact result minus the nearest one."""
    if opcode == "sqrt":
        off = Fraction(values[0]) - Fraction(near) ** 2
        return (off > 0) - (off < 0)
    exact = EXACT[opcode](*[Fraction(value) for value in values])
    if math.isinf(near):
        return -1 if near > 0 else 1
    off = exact - Fraction(near)
    return (off > 0) - (off < 0)


def _zero(opcode: str, values: list[float], mode: str) -> float:
    """Return an exact zero sum: negative when rounding down, unless both addends are +0."""
    if opcode == "fma":
        # A product of two values has the sign of both, even where it is zero.
        first = math.copysign(1.0, values[0]) * math.copysign(1.0, values[1])
        second = math.copysign(1.0, values[2])
    else:
        first = math.copysign(1.0, values[0])
        second = math.copysign(1.0, values[1]) * (-1 if opcode == "sub" else 1)
    if first == second:
        return math.copysign(0.0, first)
    return -0.0 if mode == "rm" else 0.0


def double_of_integers(value: Array, mode: str) -> Array:
    """Return 64-bit integers as f64, rounded as ``rz``, ``rm`` or ``rp`` says."""
    near = np.array(value.astype(F8))
    for place in np.argwhere(np.abs(near) >= _EXACT_BELOW):
        index = tuple(place)
        got, want = int(near[index]), int(value[index])
        up = mode == "rp" or (mode == "rz" and want < 0)
        if want != got and (want > got) == up:
            near[index] = math.nextafter(near[index], math.inf if up else -math.inf)
    return near
