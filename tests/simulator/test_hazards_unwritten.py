"""Reads of global memory that nothing wrote: CUDA kernels with one, and twins with none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ci.simulator import Buffer
from ci.simulator.sink import UNINITIALISED_GLOBAL
from tests.simulator.planted import HEAD, ints, launched, planted, seen

_ACCUMULATE = (
    HEAD
    + """k(float* c, const float* a, float beta) {
  const int t = threadIdx.x;
  float sum = a[t];
  if (beta != 0.f) sum += beta * c[t]; // FOUND
  c[t] = sum;
}
"""
)
_ADD = (
    HEAD
    + """k(float* c, const float* a) {
  %s
  atomicAdd(&c[0], a[threadIdx.x]); // FOUND
}
"""
)
_TWICE = (
    HEAD
    + """k(int* scratch, int* out) {
  const int t = threadIdx.x;
  if (t %s) scratch[t] = t;
  __syncthreads();
  out[t] = scratch[31 - t]; // FOUND
}
"""
)
_WIDE = (
    HEAD
    + """k(float4* c, float* out) {
  reinterpret_cast<float*>(c)[threadIdx.x] = 1.f;
  __syncthreads();
  if (threadIdx.x < %s) out[threadIdx.x] = c[threadIdx.x].w; // FOUND
}
"""
)


def _unwritten(data: np.ndarray[Any, Any], misalignment_bytes: int = 0) -> Buffer:
    written = np.zeros(data.nbytes, np.bool_)
    return Buffer(name="C", data=data, written=written, misalignment_bytes=misalignment_bytes)


def _zeros(count: int) -> np.ndarray[Any, Any]:
    return np.zeros(count, np.float32)


def test_a_result_may_not_be_read_before_it_is_written() -> None:
    def found(beta: float, c: Any) -> set[tuple[str, int]]:  # noqa: ANN401
        return seen(launched(_ACCUMULATE, c, _zeros(32), np.float32(beta)))

    assert found(0.0, _unwritten(_zeros(32))) == set()
    assert found(1.0, _zeros(32)) == set()
    assert found(1.0, _unwritten(_zeros(32), 4)) == planted(_ACCUMULATE, UNINITIALISED_GLOBAL)


def test_an_example_names_byte_and_thread() -> None:
    report = launched(_ACCUMULATE, _unwritten(_zeros(32), 8), _zeros(32), np.float32(1))
    assert [(hazard.count, hazard.example) for hazard in report.hazards] == [
        (32, "byte 0 of C, which nothing wrote, read by thread (0,0,0) of block (0,0,0)")
    ]


def test_an_atomic_reads_as_well() -> None:
    right = _ADD % "if (threadIdx.x == 0) c[0] = 0.f; __syncthreads();"
    assert seen(launched(right, _unwritten(_zeros(1)), _zeros(32))) == set()
    faulty = _ADD % ""
    found = seen(launched(faulty, _unwritten(_zeros(1)), _zeros(32)))
    assert found == planted(faulty, UNINITIALISED_GLOBAL)


@pytest.mark.parametrize(("guard", "unwritten"), [(">= 0", 0), ("!= 5", 1), ("& 1", 16)])
def test_what_the_kernel_itself_wrote_may_be_read(guard: str, unwritten: int) -> None:
    source = _TWICE % guard
    report = launched(source, _unwritten(ints(32)), ints(32))
    assert sum(hazard.count for hazard in report.hazards) == unwritten
    assert seen(report) == (planted(source, UNINITIALISED_GLOBAL) if unwritten else set())


def test_a_buffer_remembers_what_was_written_for_the_next_launch() -> None:
    scratch = _unwritten(ints(32))
    launched(_TWICE % "& 1", scratch, ints(32))
    assert scratch.written is not None
    assert scratch.written.reshape(32, 4).all(axis=1).tolist() == [False, True] * 16
    source = _TWICE % "% 2 == 0"
    assert seen(launched(source, scratch, ints(32))) == set()


def test_every_byte_of_a_wide_load_counts() -> None:
    assert seen(launched(_WIDE % "8", _unwritten(_zeros(48)), _zeros(32))) == set()
    source = _WIDE % "9"
    found = seen(launched(source, _unwritten(_zeros(48)), _zeros(32)))
    assert found == planted(source, UNINITIALISED_GLOBAL)
