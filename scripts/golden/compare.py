"""Whether the simulator's results agree with a GPU's, by the rule of each form.

Source: the accuracy notes of the PTX ISA for ``.approx``; for tensor cores the error bound of a
sum of K products in float32, four times, because they truncate where they align (Fasi et al.,
"Numerical behavior of NVIDIA tensor cores", 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scripts.golden.model import Bits, Form, InputSet, Rule

_U32, _TRUNCATION = 2.0**-24, 4
_MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "tf32": 23, "f64": 52}
_HALF_UNIT = 2.0**-11
"""Unit roundoff of f16, in which some products are added up and all of those are stored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """How a form's results compare."""

    differing: int
    """Values outside the rule."""
    ulps: int
    """Largest distance among values that the rule measures in units in the last place."""
    example: str
    """The first value outside the rule, with its inputs; empty if there is none."""


def agreement(
    form: Form, given: InputSet, want: tuple[Bits, ...], got: tuple[Bits, ...]
) -> Agreement:
    """Compare the results of a form.

    Args:
        form: The form.
        given: Its input set.
        want: What the GPU gave.
        got: What the simulator gave, arrays of the same shapes.
    """
    differing, largest, example = 0, 0, ""
    kinds = [*form.outputs, *(_cell_kind(form, cell) for cell in given.cells)]
    for number, (kind, right, mine) in enumerate(zip(kinds, want, got, strict=True)):
        if form.rule is Rule.PRODUCT:
            wrong = _beyond_product(form, given, kind, right, mine)
        else:
            wrong, distance = _wrong(form, kind, right, mine)
            largest = max(largest, distance)
        differing += int(np.count_nonzero(wrong))
        if not example and wrong.any():
            row = tuple(np.argwhere(wrong)[0].tolist())
            example = _example(given, number, row, int(right[row]), int(mine[row]))
    return Agreement(differing=differing, ulps=largest, example=example)


def _cell_kind(form: Form, cell: Bits) -> str:
    """Return what a memory cell holds: the type at the end of an atomic's name, else integers."""
    last = form.name.rpartition(".")[2]
    return last if form.rule is Rule.VALUE else f"i{8 * cell.itemsize}"


def _example(given: InputSet, number: int, row: tuple[int, ...], want: int, got: int) -> str:
    seen = " ".join(f"{int(column[row[0]]):#x}" for column in given.columns)
    return f"row {row[0]}, result {number}: inputs {seen}: expected {want:#x}, got {got:#x}"


def _wrong(form: Form, kind: str, want: Bits, got: Bits) -> tuple[NDArray[np.bool_], int]:
    """Return which values lie outside the rule, and the largest distance."""
    if kind.endswith("x2"):
        half = kind.removesuffix("x2")
        parts = [x[..., None].view(np.uint16) for x in (want, got)]
        wrong, distance = _wrong(form, half, *parts)
        return np.asarray(wrong.any(axis=-1)), distance
    wrong = np.asarray(want != got)
    if form.rule is Rule.BITS or kind[0] == "i":
        return wrong, 0
    wrong &= ~(_is_nan(kind, want) & _is_nan(kind, got))
    if form.rule is Rule.VALUE:
        return wrong, 0
    finite = np.isfinite(numbers(kind, want)) & np.isfinite(numbers(kind, got))
    apart = _ordered(want) - _ordered(got)
    apart = np.where(finite, np.abs(apart), 0)
    with np.errstate(all="ignore"):
        off = np.abs(numbers(kind, want) - numbers(kind, got))
    near = finite & ((apart <= form.ulps) | (off <= form.absolute))
    measured = np.where(finite & (off > form.absolute), apart, 0)
    return wrong & ~near, int(measured.max())


def _is_nan(kind: str, bits: Bits) -> NDArray[np.bool_]:
    return np.asarray(np.isnan(numbers(kind, bits)))


def numbers(kind: str, bits: Bits) -> NDArray[Any]:
    """Return bit patterns of a float type as f64."""
    if kind == "bf16":
        wide = bits.astype(np.uint32) << np.uint32(16)
        return np.asarray(wide).view(np.float32).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return bits.view({2: "f2", 4: "f4", 8: "f8"}[bits.itemsize]).astype(np.float64)


def _ordered(bits: Bits) -> NDArray[np.int64]:
    """Return patterns as integers that grow with the number they stand for."""
    sign = 1 << 8 * bits.itemsize - 1
    magnitude = (bits & bits.dtype.type(sign - 1)).astype(np.int64)
    return np.asarray(np.where(bits & bits.dtype.type(sign), -magnitude, magnitude))


def _beyond_product(
    form: Form, given: InputSet, kind: str, want: Bits, got: Bits
) -> NDArray[np.bool_]:
    """Return which elements of a product lie further from the GPU's than both may err together.

    The bound is the worst of the data's: the largest |a| |b| of its fragments times the depth.
    """
    pairs = kind.endswith("x2")
    number = kind.removesuffix("x2")
    sides = [x[..., None].view(np.uint16) if pairs else x[..., None] for x in (want, got)]
    off = np.abs(numbers(number, sides[0]) - numbers(number, sides[1]))
    factors = [_largest(k, c) for k, c in zip(given.kinds, given.columns, strict=True)]
    scale = form.depth * max(factors) ** 2 + max(factors)
    unit = {"f64": 2.0**-53, "f32": _TRUNCATION * _U32}.get(number, _HALF_UNIT)
    # Negated, so that a NaN counts as beyond.
    return np.asarray((~(off <= 2 * (form.depth + 1) * unit * scale)).any(axis=-1))


def _largest(kind: str, column: Bits) -> float:
    number = kind.removesuffix("x2")
    bits = column[:, None].view(np.uint16) if kind.endswith("x2") else column
    return float(np.abs(numbers(number, bits)).max())
