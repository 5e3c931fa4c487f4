"""What a trusted computation is, and how it shows that it can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ci.check.combination import Contents, Draft
from ci.check.errors import UntrustedReferenceError
from kernels.operands import Floats, Matrix
from kernels.spec import Problem

Doubles = NDArray[np.float64]
Inputs = Mapping[str, Floats]
"""Operand name → its elements before the launch, [rows, columns] float32 (packed: integers)."""
Scalars = Mapping[str, float]
"""Scalar parameter → value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """What a launch should leave in the output."""

    value: Doubles
    """[rows, columns]."""
    condition: Doubles
    """What was summed in absolute value, which a tolerance multiplies; [rows, columns]."""
    rows: NDArray[np.bool_] | None = None
    """The rows that were computed, where all would take too long: of the others an output only
    has to be a finite number. None: all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownAnswer:
    """A problem whose exact answer is known, and which only float64 gets right."""

    inputs: Inputs
    scalars: Scalars
    answer: Doubles
    relative: float = 0.0
    """How far off the answer may be, relative; 0 where the computation is exact."""


def doubles(values: NDArray[np.generic]) -> Doubles:
    """Return numbers in float64; poison, which is a signalling NaN, passes without a warning."""
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)


def no_drafts(problem: Problem, tiles: Mapping[str, int]) -> tuple[Draft, ...]:
    """Return no directed combinations."""
    del problem, tiles
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """A trusted computation and what the plan must know of it."""

    compute: Callable[[Inputs, Scalars], Expected]
    known: KnownAnswer
    scalars: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Scalar parameter → the levels a plan tries; the first is what a case is run with."""
    unread: Callable[[Scalars], frozenset[str]] = lambda _: frozenset()
    """The operands whose contents must not matter, given the scalars."""
    masking: Mapping[str, float] = field(default_factory=dict)
    """Scalar → the level at which most of the operation is not done, and so not tested."""
    extents: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Axis → the extents a plan tries, where the tile does not tell."""
    contents: tuple[Contents, ...] = (Contents.RANDOM, Contents.INTEGERS)
    """The contents every other factor is combined with."""
    directed: Callable[[Problem, Mapping[str, int]], tuple[Draft, ...]] = no_drafts
    """Combinations that no pair of levels stands for, given what a block covers of each axis."""
    inject: Mapping[Contents, Callable[[Mapping[str, Matrix]], None]] = field(default_factory=dict)
    """Contents → what puts their special values into operands filled at random."""
    confirm: Callable[[Inputs, Scalars, Doubles, float], str] | None = None
    """A second look, by another way, at a result [rows, columns] within a relative tolerance:
    what is wrong in words, empty if nothing is. For references that round themselves."""


def require_known_answer(name: str, reference: Reference) -> None:
    """Refuse a reference that computes its known answer other than it is.

    A reference in lower precision, TF32 switched on by accident above all, would pass wrong
    kernels and fail right ones without a word.

    Raises:
        UntrustedReferenceError: With the first element that differs.
    """
    known = reference.known
    got = reference.compute(known.inputs, known.scalars).value
    if got.shape != known.answer.shape:
        raise UntrustedReferenceError(
            f"reference {name!r} returned shape {got.shape}, expected {known.answer.shape}"
        )
    wrong = np.argwhere(~(np.abs(got - known.answer) <= known.relative * np.abs(known.answer)))
    if wrong.size:
        row, column = (int(i) for i in wrong[0])
        raise UntrustedReferenceError(
            f"reference {name!r} computes its known answer wrongly at [{row}, {column}]: got "
            f"{float(got[row, column])!r}, want {float(known.answer[row, column])!r} "
            "(is it computed in lower precision?)"
        )
