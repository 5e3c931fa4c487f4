"""What the operands of a timed case hold: random numbers that repeat, cheap in any amount."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ci.check.combination import Combination
from ci.check.contents import FILLINGS
from ci.check.reference import Reference
from kernels.dtypes import DTYPES, stored
from kernels.operands import GUARD_ELEMENTS, Elements, Floats, Matrix
from kernels.spec import Access, Layout, Problem

PERIOD = 262_139
"""Elements after which an operand repeats. A prime: no two rows or tiles of a usual extent are
alike, and to what a kernel's time can depend on, the data are as random as they ever were."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """What is known of some memory, copied to its next part."""

    target: int
    """First byte that is written; bytes from the start of the memory are read."""
    count: int


def unfilled(problem: Problem, combination: Combination) -> dict[str, Matrix]:
    """Return the operands' form, in declaration order; their host memory is never touched."""
    forms = {}
    for operand in problem.operands:
        shape = rows, columns = operand.shape(combination.size)
        layout = combination.layouts.get(operand.name, operand.layouts[0])
        lines, extent = (rows, columns) if layout is Layout.ROW else (columns, rows)
        ld = combination.leading_dimensions.get(operand.name, extent)
        elements = 2 * GUARD_ELEMENTS + (lines - 1) * ld + extent
        forms[operand.name] = Matrix(
            name=operand.name,
            shape=shape,
            layout=layout,
            leading_dimension=ld,
            misalignment=0,
            storage=np.empty(elements, dtype=DTYPES[operand.dtype].storage),
            dtype=operand.dtype,
        )
    return forms


def drawn(problem: Problem, reference: Reference, combination: Combination) -> dict[str, Elements]:
    """Return what each operand that is read repeats, as it is kept in memory.

    It is random in the operand's own way and the same in every process. Operands that the operation
    only writes, or must not read for these scalars, are left out.
    """
    unread = reference.unread(combination.scalars)
    found = {}
    for index, operand in enumerate(problem.operands):
        if operand.access in (Access.READ, Access.UPDATE) and operand.name not in unread:
            at_random, _ = FILLINGS[operand.contents]
            values = at_random((1, PERIOD), (index, *combination.size.values()))
            found[operand.name] = stored(values, operand.dtype).reshape(-1)
    return found


def filled(
    problem: Problem, reference: Reference, combination: Combination
) -> Mapping[str, Floats]:
    """Return the operands that are read, in host memory ([rows, columns]), as a bench has them."""
    forms = unfilled(problem, combination)
    values = {}
    for name, period in drawn(problem, reference, combination).items():
        forms[name].buffer()[...] = np.resize(period, forms[name].buffer().size)
        values[name] = forms[name].numbers()
    return values


def doublings(known: int, wanted: int) -> Iterator[Copy]:
    """Yield the copies by which the first ``known`` bytes of a memory repeat in all ``wanted``."""
    while known < wanted:
        count = min(known, wanted - known)
        yield Copy(target=known, count=count)
        known += count
