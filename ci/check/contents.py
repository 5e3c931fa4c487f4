"""What the operands of a combination hold before the launch."""

from __future__ import annotations

import numpy as np

from ci.check.plan import Combination, Contents
from ci.check.references import Reference
from kernels.operands import Floats, Matrix, allocate, integers, normal
from kernels.spec import Access, Problem


def place_operands(
    problem: Problem, reference: Reference, combination: Combination
) -> dict[str, Matrix]:
    """Return the operands in memory, in declaration order, filled for the combination.

    What the operation only writes, or must not read for these scalars, stays poison.
    """
    unread = reference.unread(combination.scalars)
    matrices = {}
    for index, operand in enumerate(problem.operands):
        rows, columns = (combination.size[axis] for axis in operand.axes)
        matrix = allocate(
            operand.name,
            (rows, columns),
            combination.layouts[operand.name],
            leading_dimension=combination.leading_dimensions[operand.name],
            misalignment=combination.misalignments[operand.name],
        )
        if operand.access is not Access.WRITE and operand.name not in unread:
            draw = integers if combination.contents is Contents.INTEGERS else normal
            matrix.fill(draw(matrix.shape, (index, *combination.size.values())))
        matrices[operand.name] = matrix
    _inject(problem, matrices, combination.contents)
    return matrices


def _inject(problem: Problem, matrices: dict[str, Matrix], contents: Contents) -> None:
    """Put the special values of directed contents into the operands of a product."""
    read = [matrices[o.name].logical() for o in problem.operands if o.access is Access.READ]
    updated = [matrices[o.name].logical() for o in problem.operands if o.access is Access.UPDATE]
    if contents is Contents.NOT_FINITE:
        read[0][-1, -1] = np.nan
        read[0][0, 0] = -np.inf
        read[1][-1, 0] = np.inf
        for elements in updated:
            elements[1, -1] = np.nan
    elif contents is Contents.CANCELLING:
        _cancel(read[0], read[1])


def _cancel(a: Floats, b: Floats) -> None:
    """Make the second half of the summed axis undo the first, up to a small rest."""
    half = a.shape[1] // 2
    a[:, half : 2 * half] = -a[:, :half]
    b[half : 2 * half] = b[:half]
    a[:, -1] += np.float32(2.0**-12)
