"""What wrong elements share: where they lie, and which mistake would give just their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ci.check.launch import output_of
from ci.check.reference import Doubles, Expected, Reference
from kernels.dtypes import DTYPES, numbers
from kernels.operands import Floats, Matrix, is_poison
from kernels.spec import Access, Layout, Operand, Problem

_TF32_DROPPED_BITS = 13
"""Mantissa bits a float32 loses as TF32, 23 - 10."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """A wrong result and everything that was put in."""

    problem: Problem
    reference: Reference
    scalars: Mapping[str, float]
    size: Mapping[str, int]
    """Axis → extent."""
    tiles: Mapping[str, int]
    """Axis → what a block or step covers."""
    matrices: Mapping[str, Matrix]
    """The operands after the launch."""
    inputs: Mapping[str, Floats]
    """Operand → its elements before the launch."""
    got: Doubles
    """[rows, columns] of the output."""
    wrong: NDArray[np.bool_]
    relative: float
    """Accepted error per unit of the condition; 0 where the result is exact."""
    output_roundoff: float
    """Accepted error per unit of the result itself."""

    @property
    def output(self) -> Operand:
        """Return the operand that is wrong."""
        return output_of(self.problem)

    @property
    def read(self) -> tuple[Operand, ...]:
        """Return the float operands that are only read."""
        return tuple(
            operand
            for operand in self.problem.operands
            if operand.access is Access.READ and DTYPES[operand.dtype].unit_roundoff
        )

    def would_give(
        self,
        inputs: Mapping[str, Floats] | None = None,
        scalars: Mapping[str, float] | None = None,
    ) -> bool:
        """Return whether the operation on these inputs and scalars gives the wrong elements.

        An element that comes out NaN was read from poison, or from memory nobody knows: NaN fits
        it, and anything else counts as unknown. At least half must fit, one of them a number.
        """
        alternative = self.reference.compute(
            {**self.inputs, **(inputs or {})}, {**self.scalars, **(scalars or {})}
        )
        known = self.wrong & np.isfinite(alternative.value)
        fitting = known & _alike(self.got, alternative, self)
        poison = self.wrong & np.isnan(alternative.value) & np.isnan(self.got)
        enough = 2 * int((fitting | poison).sum()) >= int(self.wrong.sum())
        return bool(fitting.any() and (fitting == known).all() and enough)


def explain(evidence: Evidence) -> list[str]:
    """Return where the wrong elements lie and, if one hypothesis gives their values, which."""
    guesses = (hypothesis(evidence) for hypothesis in HYPOTHESES)
    return [_where(evidence), *[guess for guess in guesses if guess][:1]]


def _alike(got: Doubles, expected: Expected, evidence: Evidence) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        bound = evidence.relative * expected.condition
        bound += evidence.output_roundoff * np.abs(expected.value)
        alike: NDArray[np.bool_] = np.abs(got - expected.value) <= bound
    return alike


def _where(evidence: Evidence) -> str:
    """Return which part of the output is wrong, in tiles where it starts at a tile's edge."""
    wrong, tiles = _folded(evidence)
    if wrong.all():
        return "every element"
    edges = [extent // tile * tile for extent, tile in zip(wrong.shape, tiles, strict=True)]
    clauses = []
    for i, word in enumerate(("row", "column")):
        hit = np.flatnonzero(wrong.any(axis=1 - i))
        if hit.size < wrong.shape[i]:
            which = f"{word} {hit[0]}" if hit.size == 1 else f"{word}s {hit[0]} to {hit[-1]}"
            beyond = f" (beyond the last full tile of {tiles[i]})" if hit[0] >= edges[i] > 0 else ""
            clauses.append(which + beyond)
    if clauses:
        return f"all in {' and '.join(clauses)}"
    if not wrong[: edges[0], : edges[1]].any():
        return f"all beyond the last full tile of {tiles[0]} x {tiles[1]}"
    return "in every row and column"


def _folded(evidence: Evidence) -> tuple[NDArray[np.bool_], list[int]]:
    """Return where the output is wrong along its last two axes, and a block's extent there."""
    *_, rows, columns = (1, *evidence.output.extents(evidence.size))
    wrong: NDArray[np.bool_] = np.any(evidence.wrong.reshape(-1, rows, columns), axis=0)
    parts = (axis.partition("/") for axis in evidence.output.axes[-2:])
    tiles = [max(evidence.tiles[axis] // int(by or 1), 1) for axis, _, by in parts]
    return wrong, [*([1] if len(tiles) == 1 else []), *tiles]


def _not_written(evidence: Evidence) -> str:
    now = evidence.matrices[evidence.output.name].numbers().copy().view(np.uint32)
    old = evidence.inputs[evidence.output.name]
    unchanged = (now == old.view(np.uint32))[evidence.wrong].all()
    held = "poison" if is_poison(old, evidence.output.dtype).all() else "what they held"
    return f"these elements were not written, they still hold {held}" if unchanged else ""


def _poison_read(evidence: Evidence) -> str:
    if not np.isnan(evidence.got[evidence.wrong]).all():
        return ""
    places = [
        f"the slack of {name} (leading dimension {matrix.leading_dimension})"
        for name, matrix in evidence.matrices.items()
        if matrix.buffer().size > matrix.logical().size
    ]
    unread = evidence.reference.unread(evidence.scalars)
    zeros = ", ".join(f"{name} = 0" for name, value in evidence.scalars.items() if value == 0)
    places = [f"{name}, although {zeros}" for name in sorted(unread)] + places
    return f"NaN as if the kernel had read {', or '.join(places)}" if places else ""


def _scalar_replaced(evidence: Evidence) -> str:
    for name, value in evidence.scalars.items():
        others = evidence.reference.scalars[name] if isinstance(value, int) else (0.0, 1.0)
        for other in others:
            if value != other and evidence.would_give(scalars={name: other}):
                return f"this is the result with {name} = {other:g} instead of {value:g}"
    return ""


def _wrong_reading(evidence: Evidence) -> str:
    for operand in evidence.read:
        matrix = evidence.matrices[operand.name]
        for layout, ld in _other_readings(evidence, matrix):
            if evidence.would_give(inputs={operand.name: _reread(matrix, layout, ld)}):
                return f"this is the result with {operand.name} read {_as(matrix, layout, ld)}"
    return ""


def _wrong_writing(evidence: Evidence) -> str:
    matrix = evidence.matrices[evidence.output.name]
    expected = evidence.reference.compute(evidence.inputs, evidence.scalars)
    for layout, ld in _other_readings(evidence, matrix):
        values = _reread(matrix, layout, ld)
        with np.errstate(invalid="ignore"):
            alike = _alike(values.astype(np.float64), expected, evidence)
        # Elements written on top of each other, and past the end, are lost.
        if 2 * int(alike.sum()) > alike.size:
            return (
                f"the right values are there with {matrix.name} written {_as(matrix, layout, ld)}"
            )
    return ""


def _summed_tail_dropped(evidence: Evidence) -> str:
    for axis in _summed_axes(evidence):
        extent = evidence.size[axis]
        for step in (evidence.tiles[axis], 8, 4):
            kept = extent // step * step
            if kept < extent and evidence.would_give(inputs=_first_terms(evidence, axis, kept)):
                return (
                    f"this is the result of the first {kept} terms of {axis} = {extent}: the "
                    f"tail beyond a multiple of {step} is dropped"
                )
    return ""


def _low_precision(evidence: Evidence) -> str:
    rounded = {operand.name: _as_tf32(evidence.inputs[operand.name]) for operand in evidence.read}
    fits = evidence.would_give(inputs=rounded)
    return "this is the result with the inputs rounded to TF32" if fits else ""


HYPOTHESES: tuple[Callable[[Evidence], str], ...] = (
    _not_written,
    _poison_read,
    _summed_tail_dropped,
    _scalar_replaced,
    _wrong_reading,
    _wrong_writing,
    _low_precision,
)
"""Tried in this order; each returns a clause, or nothing where it does not explain every wrong
element."""


def _other_readings(evidence: Evidence, matrix: Matrix) -> Iterable[tuple[Layout, int]]:
    """Return the wrong layouts and leading dimensions a kernel may have mixed up."""
    own = (matrix.layout, matrix.leading_dimension)
    lds = [m.leading_dimension for m in evidence.matrices.values()]
    lds += list(evidence.size.values())
    candidates = [(layout, ld) for layout in Layout for ld in (own[1], *sorted(set(lds)))]
    candidates.sort(key=lambda c: (c[1] != own[1], c[0] is not own[0]))
    # A matrix of one row or column lies the same way under other words.
    same = _steps(matrix.shape, *own)
    return (each for each in dict.fromkeys(candidates) if _steps(matrix.shape, *each) != same)


def _steps(shape: tuple[int, int], layout: Layout, ld: int) -> tuple[int, int]:
    """Return the elements from a row to the next, and from a column; 0 where there is no next."""
    rows, columns = (ld, 1) if layout is Layout.ROW else (1, ld)
    return (rows if shape[0] > 1 else 0, columns if shape[1] > 1 else 0)


def _as(matrix: Matrix, layout: Layout, ld: int) -> str:
    parts = []
    if layout is not matrix.layout:
        parts.append(f"as {layout.value}-major (it is {matrix.layout.value}-major)")
    if ld != matrix.leading_dimension:
        parts.append(f"with leading dimension {ld} (it is {matrix.leading_dimension})")
    return " and ".join(parts)


def _reread(matrix: Matrix, layout: Layout, ld: int) -> Floats:
    """Return the matrix's memory read another way; NaN where that leaves the memory."""
    buffer = numbers(matrix.buffer(), matrix.dtype)
    row, column = np.ogrid[: matrix.shape[0], : matrix.shape[1]]
    reading = row * ld + column if layout is Layout.ROW else row + column * ld
    inside = reading < buffer.size
    values: Floats = np.where(inside, buffer[np.where(inside, reading, 0)], np.float32(np.nan))
    return values


def _summed_axes(evidence: Evidence) -> list[str]:
    """Return the axes the operation sums over, where all operands that have them are matrices."""
    packed = {
        name
        for operand in evidence.problem.operands
        for name in operand.axes
        if operand.access is Access.READ and not DTYPES[operand.dtype].unit_roundoff
    }
    stems = {name.partition("/")[0] for name in (*packed, *evidence.output.axes)}
    return [axis for axis in evidence.problem.axes if axis not in stems]


def _first_terms(evidence: Evidence, axis: str, kept: int) -> dict[str, Floats]:
    """Return the inputs cut to the first ``kept`` terms of a summed axis."""
    return {
        operand.name: evidence.inputs[operand.name].take(
            range(kept), axis=operand.axes.index(axis) - len(operand.axes)
        )
        for operand in evidence.read
        if axis in operand.axes
    }


def _as_tf32(values: Floats) -> Floats:
    """Return the values rounded to TF32's 10 bits of mantissa, half away from zero."""
    half = np.uint32(1 << (_TF32_DROPPED_BITS - 1))
    mask = np.uint32(0xFFFFFFFF << _TF32_DROPPED_BITS & 0xFFFFFFFF)
    return ((values.view(np.uint32) + half) & mask).view(np.float32)
