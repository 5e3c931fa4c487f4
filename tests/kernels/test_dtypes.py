"""Element types: how they are kept, rounded and poisoned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels import spec
from kernels.dtypes import DTYPES, bits, numbers, stored
from kernels.operands import allocate, is_poison
from kernels.spec import Layout

FLOATS = [name for name, dtype in DTYPES.items() if dtype.unit_roundoff]


def test_every_declared_element_type_is_known() -> None:
    assert tuple(DTYPES) == spec.DTYPES


@given(st.integers(0, 0xFFFF))
def test_bfloat16_survives_the_way_to_float32_and_back(word: int) -> None:
    kept = np.array([word], dtype=np.uint16)
    value = numbers(kept, "bfloat16")
    again = stored(value, "bfloat16")
    assert np.isnan(value[0]) if again[0] != word else True
    assert again[0] == (0x7FFF if np.isnan(value[0]) else word)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_rounding_to_bfloat16_is_to_the_nearest_and_ties_to_even(value: float) -> None:
    single = np.array([value], dtype=np.float32)
    below = single.view(np.uint32) >> np.uint32(16)
    rest = int(single.view(np.uint32)[0] & 0xFFFF)
    up = rest > 0x8000 or (rest == 0x8000 and int(below[0]) % 2 == 1)
    assert int(stored(single, "bfloat16")[0]) == int(below[0]) + up


@pytest.mark.parametrize("dtype", FLOATS)
def test_poison_is_a_nan_that_no_arithmetic_makes(dtype: str) -> None:
    kept = np.array([DTYPES[dtype].poison], dtype=bits(np.zeros(1, DTYPES[dtype].storage)).dtype)
    poison = numbers(kept.view(DTYPES[dtype].storage), dtype)
    made = numbers(stored(np.array([np.nan], dtype=np.float32), dtype), dtype)
    assert np.isnan(poison[0])
    assert bits(poison)[0] != bits(made)[0]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_matrix_is_poison_until_it_is_filled(dtype: str) -> None:
    matrix = allocate("A", (3, 5), Layout.ROW, leading_dimension=7, dtype=dtype)
    assert is_poison(matrix.numbers(), dtype).all()
    matrix.fill(np.full((3, 5), 1.5, dtype=np.float32))
    assert (matrix.numbers() == 1.5).all()
