"""Operands of a timed case are random, alike everywhere, and cheap."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.check.contents import place_operands
from ci.check.plan import plain
from ci.check.references import trusted_reference
from ci.measure.contents import PERIOD, doublings, drawn, filled, unfilled
from kernels.spec import Ladder, Role
from kernels.suite import load_suite
from tests.check.numpy_gemm import PROBLEM

SUITE = Path(__file__).resolve().parents[2] / "kernels"
REFERENCE = trusted_reference("gemm_float64")
SIZE = {"M": 600, "N": 500, "K": 550}
PRODUCT = plain(PROBLEM, SIZE, {"alpha": 1.0, "beta": 0.0})
UPDATE = plain(PROBLEM, SIZE, {"alpha": 1.0, "beta": 1.0})


@given(st.integers(1, 50), st.integers(1, 2000))
def test_doubling_repeats_the_first_bytes_in_all(known: int, wanted: int) -> None:
    period = np.random.default_rng(known).integers(0, 256, known, dtype=np.uint8)
    memory = np.zeros(wanted, dtype=np.uint8)
    memory[: min(known, wanted)] = period[:wanted]
    copies = list(doublings(known, wanted))
    for copy in copies:
        assert copy.count <= copy.target
        memory[copy.target : copy.target + copy.count] = memory[: copy.count]
    assert (memory == np.resize(period, wanted)).all()
    assert len(copies) <= 11


@pytest.mark.parametrize("ladder", load_suite(SUITE).ladders, ids=lambda ladder: ladder.name)
def test_operands_have_the_form_of_those_that_are_checked(ladder: Ladder) -> None:
    problem, reference = ladder.problem, trusted_reference(ladder.problem.reference)
    size = next(size for size in problem.sizes if size.role is Role.CHECK).as_dict()
    scalars = {name: levels[0] for name, levels in reference.scalars.items()}
    combination = plain(problem, size, scalars)
    checked = place_operands(problem, reference, combination)
    forms = unfilled(problem, combination)
    assert list(forms) == list(checked)
    for name, form in forms.items():
        like = checked[name]
        assert (form.shape, form.layout, form.leading_dimension, form.dtype) == (
            (like.shape, like.layout, like.leading_dimension, like.dtype)
        )
        assert form.buffer().nbytes == like.buffer().nbytes
    for name, values in drawn(problem, reference, combination).items():
        assert values.dtype == forms[name].buffer().dtype
        assert values.size == PERIOD


def test_contents_are_normal_differ_between_operands_and_are_the_same_again() -> None:
    found, again = (filled(PROBLEM, REFERENCE, UPDATE) for _ in range(2))
    for name, values in found.items():
        assert (values == again[name]).all()
        assert abs(values.mean()) < 0.01
        assert abs(values.std() - 1) < 0.01
    assert not np.isin(found["A"][:4], found["B"]).all()


def test_contents_repeat_after_a_prime_number_of_elements() -> None:
    a = filled(PROBLEM, REFERENCE, PRODUCT)["A"].reshape(-1)
    assert (a[PERIOD:] == a[: a.size - PERIOD]).all()
    assert all(PERIOD % divisor for divisor in range(2, int(PERIOD**0.5) + 1))


def test_what_is_not_read_has_no_contents() -> None:
    assert set(drawn(PROBLEM, REFERENCE, PRODUCT)) == {"A", "B"}
    assert set(drawn(PROBLEM, REFERENCE, UPDATE)) == {"A", "B", "C"}
