"""One launch of a correctness plan: a level of every factor, and how a draft of it is fitted."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kernels.spec import Layout, Problem

VECTOR = 4
"""Elements of the widest access, 16 bytes of float32."""


class Contents(enum.Enum):
    """What the operands hold."""

    RANDOM = "random"
    """Zero-mean N(0, 1)."""
    INTEGERS = "integers"
    """Small integers: the result is exact, whatever the order of summation."""
    NOT_FINITE = "NaN and infinity"
    """Random, with NaN and infinities that must reach just the elements they belong to."""
    CANCELLING = "cancelling"
    """Random, with sums that cancel to nearly 0: a purely relative bound would fail here."""
    EXTREME = "extreme"
    """Random, with values so large that a careless order of operations overflows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Combination:
    """One launch of a plan: a level of every factor."""

    size: Mapping[str, int]
    """Axis → extent."""
    layouts: Mapping[str, Layout]
    """Operand → layout, for the operands that have a choice."""
    leading_dimensions: Mapping[str, int]
    """Operand → elements, for the operands whose leading dimension kernels are told."""
    misalignments: Mapping[str, int]
    """Operand → elements by which its address misses the allocator's alignment."""
    scalars: Mapping[str, float]
    contents: Contents

    @property
    def name(self) -> str:
        """Return the combination as sub-checks name it."""
        words = [f"{axis}={extent}" for axis, extent in self.size.items()]
        words += [f"{operand}={layout.value}" for operand, layout in self.layouts.items()]
        words += [f"ld{name.lower()}={ld}" for name, ld in self.leading_dimensions.items()]
        words += [f"{name}+{by}" for name, by in self.misalignments.items() if by]
        words += [f"{name}={value:g}" for name, value in self.scalars.items()]
        return " ".join([*words, self.contents.value])


def tight(extent: int) -> int:
    """Return a leading dimension without slack."""
    return extent


def odd(extent: int) -> int:
    """Return one so that every other row is misaligned."""
    return extent + 1 + extent % 2


def vector(extent: int) -> int:
    """Return one that invites vector accesses even where the extent does not."""
    return (extent // VECTOR + 1) * VECTOR


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A combination whose size is still to be fitted to the stage's domain."""

    size: Mapping[str, int]
    scalars: Mapping[str, float]
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    """Operand → layout; the first one where it is not named."""
    rules: Mapping[str, Callable[[int], int]] = field(default_factory=dict)
    """Operand → contiguous extent → leading dimension; tight where it is not named."""
    misalignments: Mapping[str, int] = field(default_factory=dict)
    contents: Contents = Contents.RANDOM

    def at(self, problem: Problem, size: Mapping[str, int]) -> Combination:
        """Return the combination at a size."""
        leading_dimensions = {}
        for operand in problem.operands:
            if problem.has_leading_dimension(operand):
                rows, columns = operand.shape(size)
                by_row = self.layouts.get(operand.name, operand.layouts[0]) is Layout.ROW
                rule = self.rules.get(operand.name, tight)
                leading_dimensions[operand.name] = rule(columns if by_row else rows)
        return Combination(
            size=size,
            layouts={
                operand.name: self.layouts.get(operand.name, operand.layouts[0])
                for operand in problem.operands
                if len(operand.layouts) > 1
            },
            leading_dimensions=leading_dimensions,
            misalignments=self.misalignments,
            scalars=self.scalars,
            contents=self.contents,
        )


def everywhere(problem: Problem, rule: Callable[[int], int]) -> dict[str, Callable[[int], int]]:
    """Return one rule for all leading dimensions."""
    return {operand.name: rule for operand in problem.operands}
