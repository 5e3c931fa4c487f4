"""Variables read before they are set: CUDA kernels with one, and right twins."""

from __future__ import annotations

import numpy as np
import pytest

from ci.simulator.sink import UNINITIALISED_LOCAL, UNINITIALISED_VARIABLE
from tests.simulator.planted import HEAD, ints, launched, planted, seen

_SUM = (
    HEAD
    + """k(int* out, const int* in, int n) {
  int sum%s;
  for (int i = 0; i < n; ++i) {
    sum += in[i]; // FOUND
  }
  %s
}
"""
)
_BRANCH = (
    HEAD
    + """k(int* out, const int* in, int n) {
  const int t = threadIdx.x;
  int value;
  if (t < n) value = in[t];
  __syncthreads();
  %s
}
"""
)
_WMMA = (
    """#include <mma.h>
using namespace nvcuda::wmma;
"""
    + HEAD
    + """k(float* out, const half* in, int n) {
  fragment<matrix_a, 16, 16, 16, half, row_major> a;
  fragment<matrix_b, 16, 16, 16, half, row_major> b;
  fragment<accumulator, 16, 16, 16, float> c;
  %s
  for (int i = 0; i < n; ++i) {
    load_matrix_sync(a, in, 16);
    load_matrix_sync(b, in, 16);
    mma_sync(c, a, b, c);
  }
  store_matrix_sync(out, c, 16, mem_row_major);
}
"""
)


def _arguments(source: str, n: int) -> set[tuple[str, int]]:
    return seen(launched(source, ints(32), np.arange(32, dtype=np.int32), np.int32(n)))


@pytest.mark.parametrize("n", [1, 3, 8])
@pytest.mark.parametrize(
    "use",
    [
        "out[threadIdx.x] = sum;",
        "if (sum > 3) out[threadIdx.x] = 1;",
        "out[threadIdx.x] = in[sum & 31];",
        "atomicAdd(out, sum);",
        "out[threadIdx.x] = __shfl_xor_sync(~0u, sum > 2 ? 1 : 0, 1); if (sum & 1) out[0] = 1;",
    ],
)
def test_a_sum_that_starts_from_nothing_is_found_where_it_is_read_first(use: str, n: int) -> None:
    source = _SUM % ("", use)
    assert _arguments(source, n) == planted(source, UNINITIALISED_VARIABLE)
    assert _arguments(_SUM % (" = 0", use), n) == set()


def test_a_sum_of_which_nothing_comes_does_no_harm() -> None:
    assert _arguments(_SUM % ("", "if (n > 8) out[threadIdx.x] = sum;"), 4) == set()


@pytest.mark.parametrize(
    ("use", "n", "found"),
    [
        ("out[t] = value; // FOUND", 32, False),
        ("out[t] = value; // FOUND", 31, True),
        ("if (t < n) out[t] = value; // FOUND", 16, False),
        ("if (t < n) out[t] = 2 * value + 1; // FOUND", 16, False),
        ("out[t] = t < n ? value + 1 : 0; // FOUND", 16, False),
        ("out[t] = t <= n ? value + 1 : 0; // FOUND", 16, True),
        ("if (t < n && value > 3) out[t] = 1; // FOUND", 16, False),
        ("atomicAdd(out, value); // FOUND", 16, True),
    ],
)
def test_a_value_that_one_branch_sets_may_matter_to_its_lanes_alone(
    use: str, n: int, *, found: bool
) -> None:
    source = _BRANCH % use
    assert _arguments(source, n) == (planted(source, UNINITIALISED_VARIABLE) if found else set())


def test_an_example_says_who_read_it_and_what_it_decided() -> None:
    source = _BRANCH % "value ^= t;\n  value *= 3;\n  out[t] = value;"
    report = launched(source, ints(32), np.arange(32, dtype=np.int32), np.int32(30))
    (hazard,) = report.hazards
    assert hazard.count == 2
    assert hazard.line == 6
    assert hazard.example == (
        "variable that holds no value, on which line 8 depends, read "
        "by thread (30,0,0) of block (0,0,0)"
    )


@pytest.mark.parametrize("n", [1, 2, 5])
def test_an_accumulator_of_a_matrix_product_must_be_filled(n: int) -> None:
    found = []
    for fill in ("", "fill_fragment(c, 0.f);"):
        halves = np.ones(256, np.float16)
        report = launched(_WMMA % fill, np.zeros(256, np.float32), halves, np.int32(n))
        found.append({hazard.kind for hazard in report.hazards})
    assert found == [{UNINITIALISED_VARIABLE}, set()]


def test_an_array_in_registers_needs_each_of_its_elements() -> None:
    source = (
        HEAD
        + """k(int* out, const int* in, int n) {
      int x[4];
      for (int i = 0; i < 4; ++i) if (i != n) x[i] = in[i];
      for (int i = 0; i < 4; ++i) out[i] = x[i]; // FOUND
    }"""
    )
    assert _arguments(source, 2) == planted(source, UNINITIALISED_VARIABLE)
    assert _arguments(source, 4) == set()


_RING = (
    HEAD
    + """k(int* out, const int* in, int n) {
  const int t = threadIdx.x;
  int ring[8];
  for (int i = %s; i < 8; ++i) ring[(i + n) %% 8] = in[i];
  out[t] = ring[(t + n) %% 8]; // FOUND
}
"""
)


@pytest.mark.parametrize("first", [0, 1, 7])
def test_an_array_of_a_thread_must_be_written_before_it_is_read(first: int) -> None:
    source = _RING % first
    report = launched(source, ints(32), np.arange(32, dtype=np.int32), np.int32(3))
    assert seen(report) == (planted(source, UNINITIALISED_LOCAL) if first else set())
    # Each of its 8 places is read by 4 of the 32 threads.
    assert sum(hazard.count for hazard in report.hazards) == 4 * first
    if first == 1:
        assert report.hazards[0].example.startswith(
            "byte 12 of local memory, which the thread has not written, read by thread (0,0,0)"
        )


def test_what_a_recursion_writes_stays_written_when_memory_grows() -> None:
    source = (
        HEAD
        + """k(int* out, const int* in, int n);
    __device__ __noinline__ int deep(const int* in, int n) {
      int own[4];
      for (int i = 0; i < 4; ++i) own[(i + n) & 3] = in[i] + n;
      const int below = n ? deep(in, n - 1) : 0;
      return below + own[n & 3] + own[(n + in[2]) & 3];
    }
    """
        + HEAD
        + "k(int* out, const int* in, int n) { out[threadIdx.x] = deep(in, n); }"
    )
    assert _arguments(source, 6) == set()
