"""When a result is right: error against bound, NaN and infinity by class, memory untouched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ci.check.explain import Evidence, explain
from ci.check.launch import output_of
from ci.check.plan import Combination, Contents
from ci.check.references import Doubles, Expected, Reference
from ci.results.model import SubCheck
from kernels.operands import Floats, Matrix
from kernels.spec import Access, Problem


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
    """Operand → its elements, [rows, columns]."""
    storages: Mapping[str, Floats]
    """Operand → all its memory, one-dimensional."""


def remember(matrices: Mapping[str, Matrix]) -> Before:
    """Return a copy of everything a launch could change."""
    return Before(
        inputs={name: matrix.logical().copy() for name, matrix in matrices.items()},
        storages={name: matrix.storage.copy() for name, matrix in matrices.items()},
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
    expected = reference.compute(before.inputs, combination.scalars)
    with np.errstate(invalid="ignore"):
        got = matrices[output.name].logical().astype(np.float64)
        bound = relative * expected.condition
    comparison = compare(got, expected.value, bound)
    complaints = []
    if comparison.wrong.any():
        evidence = Evidence(
            problem=problem,
            reference=reference,
            scalars=combination.scalars,
            tiles=tiles,
            matrices=matrices,
            inputs=before.inputs,
            got=got,
            wrong=comparison.wrong,
            relative=relative,
        )
        complaints.append(_first_wrong(output.name, got, expected, bound, comparison.wrong))
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
        bound=None if exact else comparison.bound,
        detail="; ".join(complaints),
    )


def _first_wrong(
    name: str, got: Doubles, expected: Expected, bound: Doubles, wrong: NDArray[np.bool_]
) -> str:
    row, column = (int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements wrong, first {name}[{row}, {column}]: got "
        f"{got[row, column]:.7g}, want {expected.value[row, column]:.7g} "
        f"within {bound[row, column]:.2g}"
    )


def _damages(problem: Problem, matrices: Mapping[str, Matrix], before: Before) -> list[str]:
    damages = [
        matrices[operand.name].first_damage(
            before.storages[operand.name], may_write=operand.access is not Access.READ
        )
        for operand in problem.operands
    ]
    return [damage for damage in damages if damage]
