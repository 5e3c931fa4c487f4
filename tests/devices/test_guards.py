"""Guard bands: laid out where the address asks for it, and no damaged byte goes unseen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.devices.guards import GUARD_BYTES, damage, guarded


@pytest.mark.parametrize("misalignment", [0, 4, 12])
def test_the_data_start_at_the_misalignment_asked_for(misalignment: int) -> None:
    data = np.arange(33, dtype=np.float32)
    memory, start = guarded(data, misalignment)
    assert start % 256 == misalignment
    assert np.array_equal(memory[start : start + data.nbytes].view(np.float32), data)
    assert np.isnan(memory[start + data.nbytes :].view(np.float32)).all()
    assert damage(memory, start, data.nbytes) is None


@given(byte=st.integers(0, 2 * GUARD_BYTES + 4 + 40 - 1), flip=st.integers(1, 255))
def test_a_changed_byte_is_damage_unless_it_is_data(byte: int, flip: int) -> None:
    data = np.zeros(10, dtype=np.float32)
    memory, start = guarded(data, 4)
    memory[byte] ^= flip
    found = damage(memory, start, data.nbytes)
    assert (found is None) == (start <= byte < start + data.nbytes)


def test_a_write_past_the_end_is_told_with_its_distance() -> None:
    memory, start = guarded(np.zeros(10, dtype=np.float32), 0)
    memory[start + 40 : start + 48].view(np.float32)[:] = 1.0
    found = damage(memory, start, 40)
    assert found is not None
    assert found.words == 2
    assert "byte offset 40, 0 past its end" in found.place


def test_a_write_before_the_beginning_is_told_with_its_offset() -> None:
    memory, start = guarded(np.zeros(10, dtype=np.float32), 0)
    memory[start - 4 : start].view(np.float32)[:] = 1.0
    found = damage(memory, start, 40)
    assert found is not None
    assert found.words == 1
    assert "before its beginning" in found.place
