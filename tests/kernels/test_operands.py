"""Operands in memory: layout, bounds, poison, and damage named by place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.errors import DeclarationError
from kernels.operands import (
    GUARD_ELEMENTS,
    POISON_BITS,
    Matrix,
    allocate,
    integers,
    is_poison,
    normal,
    read_as,
)
from kernels.spec import Layout


def matrix(layout: Layout = Layout.ROW, ld: int | None = None) -> Matrix:
    made = allocate("C", (3, 5), layout, leading_dimension=ld)
    made.fill(normal((3, 5), (1,)))
    return made


def test_a_row_major_element_lies_at_row_times_leading_dimension_plus_column() -> None:
    c = matrix(Layout.ROW, ld=7)
    assert c.buffer()[2 * 7 + 4] == c.logical()[2, 4]


def test_a_column_major_element_lies_at_column_times_leading_dimension_plus_row() -> None:
    c = matrix(Layout.COLUMN, ld=4)
    assert c.buffer()[4 * 4 + 2] == c.logical()[2, 4]


def test_the_buffer_ends_with_the_last_element_not_with_its_slack() -> None:
    c = matrix(Layout.ROW, ld=7)
    assert c.buffer().size == 2 * 7 + 5
    assert c.buffer().flags.c_contiguous
    assert c.buffer()[-1] == c.logical()[-1, -1]


@given(
    rows=st.integers(1, 9),
    columns=st.integers(1, 9),
    slack=st.integers(0, 5),
    layout=st.sampled_from(Layout),
)
def test_everything_but_the_elements_is_poison(
    rows: int, columns: int, slack: int, layout: Layout
) -> None:
    extent = columns if layout is Layout.ROW else rows
    c = allocate("C", (rows, columns), layout, leading_dimension=extent + slack)
    assert is_poison(c.storage).all()
    c.fill(np.ones((rows, columns), dtype=np.float32))
    assert int((~is_poison(c.storage)).sum()) == rows * columns
    assert (c.logical() == 1).all()


def test_an_operand_is_unwritten_until_one_element_is_not_poison() -> None:
    c = allocate("C", (3, 5), Layout.ROW, leading_dimension=7)
    assert c.is_unwritten()
    c.logical()[2, 4] = 0
    assert not c.is_unwritten()


def test_poison_is_a_signalling_nan() -> None:
    bits = np.array([POISON_BITS], dtype=np.uint32)
    quiet_bit = 1 << 22
    assert np.isnan(bits.view(np.float32)).all()
    assert not POISON_BITS & quiet_bit


def test_a_nan_made_by_arithmetic_is_not_poison() -> None:
    assert not is_poison(np.array([np.nan], dtype=np.float32)).any()


def test_a_leading_dimension_below_the_extent_is_refused() -> None:
    with pytest.raises(DeclarationError, match="leading dimension 4 is below the extent 5"):
        allocate("A", (3, 5), Layout.ROW, leading_dimension=4)


def test_contents_repeat_for_a_seed_and_differ_between_seeds() -> None:
    assert (normal((4, 4), (1, 2)) == normal((4, 4), (1, 2))).all()
    assert (normal((4, 4), (1, 2)) != normal((4, 4), (1, 3))).any()


def test_random_contents_have_zero_mean_and_unit_variance() -> None:
    drawn = normal((200, 200), (7,))
    assert abs(drawn.mean()) < 0.02
    assert abs(drawn.std() - 1) < 0.02


def test_no_integer_is_zero() -> None:
    assert set(np.unique(integers((50, 50), (3,)))) == {-4, -3, -2, -1, 1, 2, 3, 4}


def test_products_of_integer_contents_sum_exactly_in_any_order() -> None:
    terms = integers((1, 4096), (1,))[0] * integers((1, 4096), (2,))[0]
    forward = np.cumsum(terms, dtype=np.float32)[-1]
    backward = np.cumsum(terms[::-1], dtype=np.float32)[-1]
    assert forward == backward == terms.sum(dtype=np.float64)


def test_an_untouched_operand_has_no_damage() -> None:
    c = matrix(ld=7)
    before = c.storage.copy()
    assert c.first_damage(before, may_write=False) == ""


def test_elements_of_an_output_may_change_and_those_of_an_input_may_not() -> None:
    c = matrix(ld=7)
    before = c.storage.copy()
    c.logical()[1, 3] = 8
    assert c.first_damage(before, may_write=True) == ""
    assert c.first_damage(before, may_write=False) == "C[1, 3] was overwritten with 8.0"


@pytest.mark.parametrize(
    ("layout", "ld", "index", "place"),
    [
        (Layout.ROW, 7, -1, "the guard band, 1 before the first element of C,"),
        (Layout.ROW, 7, 2 * 7 + 5, "the guard band, 1 past the last element of C,"),
        (Layout.ROW, 7, 1 * 7 + 6, "the slack of C, 2 past the end of row 1,"),
        (Layout.COLUMN, 4, 2 * 4 + 3, "the slack of C, 1 past the end of column 2,"),
    ],
)
def test_damage_outside_the_elements_is_named_by_place(
    layout: Layout, ld: int, index: int, place: str
) -> None:
    c = matrix(layout, ld)
    before = c.storage.copy()
    c.storage[GUARD_ELEMENTS + index] = 0
    assert c.first_damage(before, may_write=True) == f"{place} was overwritten with 0.0"


def test_damage_is_seen_bit_by_bit_even_where_values_compare_equal() -> None:
    c = matrix()
    c.logical()[0, 0] = 0.0
    before = c.storage.copy()
    c.logical()[0, 0] = -0.0
    assert c.first_damage(before, may_write=False)


def test_memory_that_is_too_short_for_a_reading_is_refused() -> None:
    with pytest.raises(ValueError, match="strides is incompatible"):
        read_as(np.zeros(14, dtype=np.float32), (3, 5), Layout.ROW, 5)
