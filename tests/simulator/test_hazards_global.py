"""Races on global memory: CUDA kernels that have one, and twins that have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ci.simulator import Report
from ci.simulator.pointers import written_parameters
from ci.simulator.sink import (
    GLOBAL_READ_AFTER_WRITE,
    GLOBAL_WRITE_AFTER_READ,
    GLOBAL_WRITE_AFTER_WRITE,
    WRITE_AFTER_WRITE,
)
from tests.simulator.cuda_text import module_of
from tests.simulator.planted import HEAD, ints, launched, planted, seen

_SUM = (
    HEAD
    + """k(const int* in, int* out) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (in[i] > 0) %s; // FOUND
}
"""
)
_STENCIL = (
    HEAD
    + """k(float* a, float* b) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  const float left = i ? a[i - 1] : 0.f;
  %s = left + 1.f; // FOUND
}
"""
)
_HALVES = (
    HEAD
    + """k(%s* out) {
  const int i = threadIdx.x * 2 + blockIdx.x;
  out[i] = i + 1;
}
"""
)
_REVERSED = (
    HEAD
    + """k(int* a, int* b) {
  const int t = threadIdx.x;
  a[t] = t;
  %s
  b[t] = a[%s]; // FOUND
}
"""
)
_LAST_BLOCK = (
    """__device__ unsigned counted(unsigned* count) {
  unsigned old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %%0, [%%1], 1;" : "=r"(old) : "l"(count));
  return old;
}
"""
    + HEAD
    + """k(int* parts, unsigned* count, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    %s parts[blockIdx.x] = blockIdx.x + 1;
    %s
    last = %s == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += parts[b]; // FOUND
    *out = sum;
  }
}
"""
)
_LOOK_BACK = (
    HEAD
    + """k(int* data, volatile int* flag, int* out) {
  const int b = blockIdx.x, t = threadIdx.x;
  data[b * 32 + t] = b;
  %s
  __syncthreads();
  if (t == 0) flag[b] = 1;
  if (b > 0) {
    if (t == 0) while (flag[b - 1] == 0) {}
    __syncthreads();
    out[b * 32 + t] = data[(b - 1) * 32 + t]; // FOUND
  }
}
"""
)
_FLAG = (
    HEAD
    + """k(int* found) {
  if ((threadIdx.x + blockIdx.x) %% 3) *found = %s; // FOUND
}
"""
)


def _run(source: str, *arguments: Any, **launch: int) -> Report:  # noqa: ANN401
    return launched(source, *arguments, **({"grid": 3, "block": 64} | launch))


def test_a_sum_of_blocks_needs_an_atomic() -> None:
    data = np.arange(-9, 183, dtype=np.int32)
    out = ints(1)
    assert seen(_run(_SUM % "atomicAdd(out, in[i])", data, out)) == set()
    assert out[0] == data[data > 0].sum()
    faulty = _SUM % "*out += in[i]"
    # All lanes read before one writes: one schedule is run, and no read comes behind a write.
    assert seen(_run(faulty, data, ints(1))) == planted(
        faulty, GLOBAL_WRITE_AFTER_READ, GLOBAL_WRITE_AFTER_WRITE
    )


def test_a_stencil_may_not_overwrite_what_a_neighbour_reads() -> None:
    floats = [np.zeros(192, np.float32) for _ in range(2)]
    assert seen(_run(_STENCIL % "b[i]", *floats)) == set()
    faulty = _STENCIL % "a[i]"
    report = _run(faulty, *floats)
    assert seen(report) == planted(faulty, GLOBAL_WRITE_AFTER_READ)
    # All but the last, which no one reads.
    assert report.hazards[0].count == 191
    assert report.hazards[0].example == (
        "byte 0 of p0, read at line 3 by thread (1,0,0), written by thread (0,0,0) of block (0,0,0)"
    )


@pytest.mark.parametrize("kind", ["unsigned char", "short", "int"])
def test_neighbouring_elements_of_two_blocks_are_no_race(kind: str) -> None:
    dtype = {"unsigned char": np.uint8, "short": np.int16, "int": np.int32}[kind]
    out = np.zeros(64, dtype)
    assert seen(_run(_HALVES % kind, out, grid=2, block=32)) == set()
    assert (out == np.arange(1, 65)).all()


@pytest.mark.parametrize(
    ("order", "index", "faulty"),
    [
        ("", "t", False),
        ("", "63 - t", True),
        ("__syncthreads();", "63 - t", False),
        ("__syncwarp();", "t ^ 1", False),
        ("__syncwarp();", "63 - t", True),
        ("__threadfence();", "t ^ 1", True),
    ],
)
def test_threads_of_a_block_need_a_barrier(order: str, index: str, *, faulty: bool) -> None:
    source = _REVERSED % (order, index)
    found = seen(_run(source, ints(64), ints(64), grid=1))
    assert found == (planted(source, GLOBAL_READ_AFTER_WRITE) if faulty else set())


@pytest.mark.parametrize(
    ("first", "fence", "counts", "faulty"),
    [
        ("", "__threadfence();", "atomicAdd(count, 1)", False),
        ("", "", "atomicAdd(count, 1)", True),
        ("", "__threadfence_block();", "atomicAdd(count, 1)", True),
        ("", "", "counted(count)", False),
        ("__threadfence();", "", "atomicAdd(count, 1)", True),
    ],
)
@pytest.mark.parametrize("threads", [32, 1024])
def test_the_last_block_may_read_what_the_others_released(
    first: str, fence: str, counts: str, *, faulty: bool, threads: int
) -> None:
    out = ints(1)
    source = _LAST_BLOCK % (first, fence, counts)
    # With 1024 threads a block, later blocks run in a slice of their own.
    report = _run(source, ints(40), np.zeros(1, np.uint32), out, grid=40, block=threads)
    assert out[0] == 40 * 41 // 2
    assert seen(report) == (planted(source, GLOBAL_READ_AFTER_WRITE) if faulty else set())


def test_a_flag_orders_blocks_only_behind_a_fence() -> None:
    out = ints(96)
    assert seen(_run(_LOOK_BACK % "__threadfence();", ints(96), ints(3), out, block=32)) == set()
    assert out.tolist() == [0] * 64 + [1] * 32
    faulty = _LOOK_BACK % ""
    found = seen(_run(faulty, ints(96), ints(3), ints(96), block=32))
    assert found == planted(faulty, GLOBAL_READ_AFTER_WRITE)


def test_storing_one_value_from_everywhere_does_no_harm() -> None:
    assert seen(_run(_FLAG % "1", ints(1))) == set()
    faulty = _FLAG % "threadIdx.x"
    assert seen(_run(faulty, ints(1))) == planted(faulty, GLOBAL_WRITE_AFTER_WRITE)


def test_only_what_a_kernel_may_write_is_watched() -> None:
    source = (
        HEAD
        + """k(const int* index, int* in, int** table, int* out, int n) {
      const int i = threadIdx.x;
      out[index[i] + n] = in[i];
    }"""
    )
    kernel = module_of(source).kernels["k"]
    assert written_parameters(kernel) == {"k_param_3", "k_param_4"}
    anywhere = source.replace("out[", "table[1][")
    assert len(written_parameters(module_of(anywhere).kernels["k"])) == 5


def test_vectors_of_unlike_elements_are_compared_bit_by_bit() -> None:
    source = (
        HEAD
        + """k(float4* out, float x) {
      float4 v = {0.f, x, __int_as_float(%s), 2.f};
      __shared__ float4 s[1];
      s[0] = v; // FOUND
      __syncthreads();
      out[0] = s[0].x == x ? s[0] : v; // FOUND
    }"""
    )
    out, x = np.zeros(4, np.float32), np.float32(3)
    assert seen(launched(source % "blockIdx.x", out, x, block=32)) == set()
    faulty = source % "threadIdx.x"
    found = seen(launched(faulty, out, x, block=32))
    lines = sorted(line for _, line in planted(faulty, ""))
    assert found == set(zip([WRITE_AFTER_WRITE, GLOBAL_WRITE_AFTER_WRITE], lines, strict=True))
