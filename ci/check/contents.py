"""What the operands of a combination hold before the launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ci.check.combination import Combination, Contents
from ci.check.errors import CheckError
from ci.check.reference import Reference
from kernels.operands import Elements, Matrix, allocate, integers, normal
from kernels.spec import Access, Problem

_HIDDEN = 0.2
"""Share of a random mask that is -inf."""

Seed = tuple[int, ...]
Shape = tuple[int, int]


def _packed(shape: Shape, seed: Seed) -> Elements:
    """Return random bits, 32 an element."""
    return np.random.default_rng(seed).integers(0, 1 << 32, shape, dtype=np.uint32)


def _scales(shape: Shape, seed: Seed) -> Elements:
    """Return positive factors of one order of magnitude."""
    return np.random.default_rng(seed).uniform(0.005, 0.015, shape).astype(np.float32)


def _powers(shape: Shape, seed: Seed) -> Elements:
    """Return powers of two, by which everything can be scaled exactly."""
    return np.exp2(np.random.default_rng(seed).integers(-1, 2, shape)).astype(np.float32)


def _mask(shape: Shape, seed: Seed) -> Elements:
    """Return an additive mask: a fifth -inf, the rest small; the second row -inf throughout."""
    generator = np.random.default_rng(seed)
    mask = generator.standard_normal(shape, dtype=np.float32)
    mask[generator.random(shape) < _HIDDEN] = -np.inf
    mask[1:2] = -np.inf
    return mask


FILLINGS: Mapping[str, tuple[Callable[[Shape, Seed], Elements], ...]] = {
    "normal": (normal, integers),
    "packed": (_packed, _packed),
    "scales": (_scales, _powers),
    "mask": (_mask, _mask),
}
"""``Operand.contents`` → how it is filled at random, and where the result must be exact."""


def place_operands(
    problem: Problem, reference: Reference, combination: Combination
) -> dict[str, Matrix]:
    """Return the operands in memory, in declaration order, filled for the combination.

    What the operation only writes, or must not read for these scalars, stays poison.

    Raises:
        CheckError: An operand's contents are unknown.
    """
    unread = reference.unread(combination.scalars)
    exact = combination.contents is Contents.INTEGERS
    matrices = {}
    for index, operand in enumerate(problem.operands):
        matrix = allocate(
            operand.name,
            operand.shape(combination.size),
            combination.layouts.get(operand.name, operand.layouts[0]),
            leading_dimension=combination.leading_dimensions.get(operand.name),
            misalignment=combination.misalignments.get(operand.name, 0),
            dtype=operand.dtype,
        )
        if operand.contents not in FILLINGS:
            expected = ", ".join(FILLINGS)
            raise CheckError(
                f"{problem.name}: {operand.name} has contents {operand.contents!r}, expected one "
                f"of {expected} (add it to ci/check/contents.py)"
            )
        read = operand.access in (Access.READ, Access.UPDATE)
        if read and operand.name not in unread:
            fill = FILLINGS[operand.contents][exact]
            matrix.fill(fill(matrix.shape, (index, *combination.size.values())))
        matrices[operand.name] = matrix
    if combination.contents in reference.inject:
        reference.inject[combination.contents](matrices)
    return matrices
