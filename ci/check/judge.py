"""When a result is right: error against bound, NaN and infinity by class, memory untouched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ci.check.combination import Combination, Contents
from ci.check.explain import Evidence, explain
from ci.check.launch import output_of
from ci.check.reference import Doubles, Expected, Reference
from ci.results.model import SubCheck
from kernels import dtypes
from kernels.operands import Elements, Floats, Matrix
from kernels.spec import Access, Operand, Problem, Size


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A result against what was expected, element by element."""

    wrong: NDArray[np.bool_]
    """[rows, columns]."""
    max_error: float | None
    """Largest |got - want| where both are finite; None if that is nowhere."""
    bound: float | None
    """Bound where error over bound is largest; None if that is nowhere."""


def compare(got: Doubles, want: Doubles, bound: Doubles) -> Comparison:
    """Return which elements are wrong. All arguments are float64 [rows, columns].

    A finite expectation needs ``|got - want| <= bound``, written so that NaN fails; NaN and
    infinities are expected exactly, an infinity with its sign.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(got - want)
        close = np.isfinite(want) & (error <= bound)
        same = (np.isnan(want) & np.isnan(got)) | (np.isinf(want) & (got == want))
        ratio = np.where(error > 0, error / bound, 0.0)
    finite = np.isfinite(got) & np.isfinite(want)
    worst = int(np.argmax(np.where(finite, ratio, -1.0)))
    return Comparison(
        wrong=~(close | same),
        max_error=float(error[finite].max()) if finite.any() else None,
        bound=float(bound.flat[worst]) if finite.any() else None,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Before:
    """The operands as they were before a launch."""

    inputs: Mapping[str, Floats]
    """Operand → its elements as numbers, [rows, columns]; scratch memory is left out."""
    storages: Mapping[str, Elements]
    """Operand → all its memory, one-dimensional; scratch memory is left out."""


def remember(problem: Problem, matrices: Mapping[str, Matrix]) -> Before:
    """Return a copy of everything a launch could change that anybody looks at."""
    kept = {
        operand.name: matrices[operand.name]
        for operand in problem.operands
        if operand.access is not Access.SCRATCH
    }
    return Before(
        inputs={name: matrix.numbers().copy() for name, matrix in kept.items()},
        storages={name: matrix.storage.copy() for name, matrix in kept.items()},
    )


def judge(
    problem: Problem,
    reference: Reference,
    combination: Combination,
    *,
    tiles: Mapping[str, int],
    matrices: Mapping[str, Matrix],
    before: Before,
) -> SubCheck:
    """Return the sub-check of a launch that has run.

    Args:
        problem: The operation, with its tolerance.
        reference: Its trusted computation.
        combination: What was launched.
        tiles: Axis → what a block or step covers, in which places are told.
        matrices: The operands after the launch.
        before: The operands before it.
    """
    output = output_of(problem)
    exact = combination.contents is Contents.INTEGERS
    relative = 0.0 if exact else problem.tolerance.relative
    coarse = 0.0 if exact else problem.tolerance.output_unit_roundoff
    expected = _expected(problem, reference, combination, before)
    with np.errstate(invalid="ignore"):
        got = matrices[output.name].numbers().astype(np.float64)
        bound = relative * expected.condition
        bound += coarse * np.abs(expected.value)
    comparison = compare(got, expected.value, bound)
    if expected.rows is not None:
        comparison = _of_some_rows(comparison, got, expected.rows)
    complaints = []
    if comparison.wrong.any():
        evidence = Evidence(
            problem=problem,
            reference=reference,
            scalars=combination.scalars,
            size=combination.size,
            tiles=tiles,
            matrices=matrices,
            inputs=before.inputs,
            got=got,
            wrong=comparison.wrong,
            relative=relative,
            output_roundoff=coarse,
        )
        place = _named(output, combination.size, comparison.wrong)
        complaints.append(_first_wrong(place, got, expected, bound, comparison.wrong))
        complaints += explain(evidence)
    if reference.confirm and combination.contents is not Contents.NOT_FINITE:
        looked_at = {f"the reference of {output.name}": expected.value}
        if not comparison.wrong.any():
            looked_at[output.name] = got
        for name, values in looked_at.items():
            said = reference.confirm(
                before.inputs, combination.scalars, values, problem.tolerance.relative
            )
            complaints += [f"{name}: {said}"] if said else []
    complaints += _damages(problem, matrices, before)
    return SubCheck(
        name=combination.name,
        passed=not complaints,
        max_error=comparison.max_error,
        bound=None if exact or not problem.tolerance.relative else comparison.bound,
        detail="; ".join(complaints),
    )


def _expected(
    problem: Problem, reference: Reference, combination: Combination, before: Before
) -> Expected:
    """Return what the launch should have left, an exact result as the output keeps it."""
    expected = reference.compute(before.inputs, combination.scalars)
    dtype = output_of(problem).dtype
    if combination.contents is not Contents.INTEGERS or dtype == "float32":
        return expected
    kept = dtypes.stored(expected.value.astype(np.float32), dtype)
    return replace(expected, value=dtypes.numbers(kept, dtype).astype(np.float64))


def _of_some_rows(comparison: Comparison, got: Doubles, rows: NDArray[np.bool_]) -> Comparison:
    """Return a comparison in which the rows that were not computed only have to be finite."""
    wrong = np.where(rows[:, None], comparison.wrong, ~np.isfinite(got))
    return replace(comparison, wrong=wrong)


def _named(output: Operand, size: Size, wrong: NDArray[np.bool_]) -> str:
    """Return the first wrong element as ``C[3, 17]``, with one index an axis."""
    index = np.unravel_index(int(np.argmax(wrong)), output.extents(size))
    return f"{output.name}[{', '.join(str(int(i)) for i in index)}]"


def _first_wrong(
    place: str, got: Doubles, expected: Expected, bound: Doubles, wrong: NDArray[np.bool_]
) -> str:
    row, column = (int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements wrong, first {place}: got "
        f"{got[row, column]:.7g}, want {expected.value[row, column]:.7g} "
        f"within {bound[row, column]:.2g}"
    )


def _damages(problem: Problem, matrices: Mapping[str, Matrix], before: Before) -> list[str]:
    damages = [
        matrices[operand.name].first_damage(
            before.storages[operand.name], may_write=operand.access is not Access.READ
        )
        for operand in problem.operands
        if operand.access is not Access.SCRATCH
    ]
    return [damage for damage in damages if damage]
