"""Error bounds as functions of size and precision, each with its source."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.errors import ToleranceError

FLOAT32_UNIT_ROUNDOFF = 2.0**-24
"""u of round-to-nearest float32 (dimensionless)."""
BFLOAT16_UNIT_ROUNDOFF = 2.0**-8
"""u of round-to-nearest bfloat16 (dimensionless)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tolerance:
    """Accept ``|got - want| <= factor * unit_roundoff * condition + output_roundoff * |want|``.

    ``condition`` is what the operation sums in absolute value, for a matrix product
    ``|alpha| * (|A| @ |B|) + |beta * C|``. Compared so that NaN fails.
    """

    factor: float
    """How many unit roundoffs of the condition are accepted (dimensionless)."""
    unit_roundoff: float
    """u of the accumulator (dimensionless)."""
    source: str
    """Where the factor comes from."""
    output_unit_roundoff: float = 0.0
    """u of the result's element type where that is coarser than the accumulator."""

    def __post_init__(self) -> None:
        """Refuse a bound that accepts anything or nothing."""
        if not 0 <= self.factor * self.unit_roundoff < 1 or not 0 <= self.output_unit_roundoff < 1:
            msg = f"tolerance {self.factor} * {self.unit_roundoff} must lie between 0 and 1"
            raise ToleranceError(msg)

    @property
    def relative(self) -> float:
        """Return the accepted error per unit of the condition (dimensionless)."""
        return self.factor * self.unit_roundoff


def exact() -> Tolerance:
    """Return the bound for moving data: every element arrives as it is."""
    return Tolerance(factor=0.0, unit_roundoff=0.0, source="nothing is computed")


def softmax_row(*, unit_roundoff: float, factor: float = 4.0) -> Tolerance:
    """Return the bound for softmax over a row, and for sums weighted by it.

    The condition its references give counts roundings: of the difference from the row's largest
    element, of the exponential, of the sum, of the quotient, each of them a few units. NumPy in
    float32 used 0.7 to 0.9 of the 4 for rows of 1,000, and 0.1 to 0.3 for attention over 5 to 2,048
    keys; with inputs rounded to TF32 2,000 and more, and 60 to 420
    (``tests/kernels/test_tolerance.py``).

    Args:
        unit_roundoff: u of float32, 2**-24 (dimensionless).
        factor: Accepted multiples of u times the condition (dimensionless).

    Source: Blanchard, Higham & Higham, IMA J. Numer. Anal. 41 (2021) 2311 for the form: the error
    of a shifted softmax grows with the distance from the largest element.
    """
    return Tolerance(
        factor=factor,
        unit_roundoff=unit_roundoff,
        source="Blanchard, Higham & Higham 2021",
    )


def zero_mean_dot_product(
    *, unit_roundoff: float, factor: float = 16.0, output_unit_roundoff: float = 0.0
) -> Tolerance:
    """Return the bound for dot products of zero-mean random data, summed in any order.

    Rounding errors of zero-mean data behave as a random walk: for N(0, 1) inputs the largest
    error of 2,000 dot products was 2.2 to 4.0 u·|a|·|b| for K from 64 to 16,384 with sequential
    FMA, less with blocked sums; inputs rounded to TF32 gave 220 to 4,000. A factor of 16 passes
    every FP32 summation order and rejects a silent TF32 product, which Higham's worst case
    (factor K) does not.

    Args:
        unit_roundoff: u of the accumulator, 2**-24 for float32 (dimensionless).
        factor: Accepted multiples of u·(|A|·|B|) (dimensionless).
        output_unit_roundoff: u of the result's element type, 0 where it is the accumulator's.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 3.1 for the form;
    Higham & Mary, SIAM J. Sci. Comput. 41 (2019) A2815 for the probabilistic view; the figures
    are reproduced by ``tests/kernels/test_tolerance.py``.
    """
    return Tolerance(
        factor=factor,
        unit_roundoff=unit_roundoff,
        source="Higham 2002, 3.1; Higham & Mary 2019; factor measured on zero-mean data",
        output_unit_roundoff=output_unit_roundoff,
    )
