"""Named barriers, barriers of a part of a block, and arrivals."""

from __future__ import annotations

import numpy as np
import pytest

from ci.simulator import Buffer, Report, run
from tests.simulator.cuda_text import module_of
from tests.simulator.ptx_text import Array

HEAD = """
#define SYNC(id, count) asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(count) : "memory")
#define ARRIVE(id, count) asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(count) : "memory")
"""


def launched(body: str, threads: int, *arrays: Array, blocks: int = 2) -> Report:
    """Launch the kernel ``k(float* a, float* b)`` with this body."""
    source = HEAD + f'extern "C" __global__ void k(float* a, float* b) {{\n{body}\n}}'
    buffers = [Buffer(name=name, data=data) for name, data in zip("ab", arrays, strict=True)]
    return run(
        module_of(source), "k", grid=(blocks, 1, 1), block=(threads, 1, 1), arguments=buffers
    )


PIPELINE = """
  __shared__ float ring[2][64];
  int half = threadIdx.x / 64, lane = threadIdx.x % 64, base = blockIdx.x * 512;
  if (half == 0) {
    for (int n = 0; n < 8; n++) {
      if (n >= 2) SYNC(3 + n % 2, 128);
      ring[n % 2][lane] = a[base + 64 * n + lane];
      ARRIVE(1 + n % 2, 128);
    }
  } else {
    for (int n = 0; n < 8; n++) {
      SYNC(1 + n % 2, 128);
      b[base + 64 * n + 63 - lane] = ring[n % 2][63 - lane ^ 1] * 2;
      if (n < 6) ARRIVE(3 + n % 2, 128);
    }
  }
  __syncthreads();
"""


def test_producer_and_consumer_take_turns_through_a_ring() -> None:
    a, b = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    report = launched(PIPELINE, 128, a, b)
    assert not report.hazards
    np.testing.assert_array_equal(b, 2 * a.reshape(-1, 2)[:, ::-1].ravel())


def test_consumer_that_does_not_wait_races_with_the_producer() -> None:
    a, b = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    body = PIPELINE.replace("SYNC(1 + n % 2, 128);", "if (n > 9) SYNC(1, 128);")
    kinds = {hazard.kind for hazard in launched(body, 128, a, b).hazards}
    assert kinds & {"read-after-write race", "write-after-read race"}


def test_parts_of_a_block_meet_without_the_others() -> None:
    body = """
      __shared__ float s[128];
      int part = threadIdx.x / 64;
      s[threadIdx.x] = a[threadIdx.x];
      SYNC(1 + part, 64);
      float first = s[threadIdx.x ^ 63];
      if (part) SYNC(5, 64);
      b[blockIdx.x * 128 + threadIdx.x] = first;
    """
    a, b = np.arange(128, dtype=np.float32), np.zeros(256, np.float32)
    assert not launched(body, 128, a, b).hazards
    np.testing.assert_array_equal(b, np.tile(a[np.arange(128) ^ 63], 2))


def test_barrier_that_too_few_threads_reach_is_a_hazard_and_ends() -> None:
    body = """
      if (threadIdx.x < 32) SYNC(2, 64);
      b[threadIdx.x] = 1;
    """
    a, b = np.zeros(64, np.float32), np.zeros(64, np.float32)
    (hazard,) = launched(body, 64, a, b, blocks=1).hazards
    assert hazard.kind == "divergent barrier"
    assert hazard.line == 6
    assert "barrier 2 that 32 of 64 threads reach" in hazard.example
    assert b.all()


def test_block_barrier_beside_a_named_one_waits_for_all_that_live() -> None:
    body = """
      __shared__ float s[96];
      if (threadIdx.x >= 64) return;
      if (threadIdx.x < 32) SYNC(1, 32);
      s[threadIdx.x] = a[threadIdx.x];
      __syncthreads();
      b[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
    """
    a, b = np.arange(64, dtype=np.float32), np.zeros(128, np.float32)
    assert not launched(body, 96, a, b).hazards
    np.testing.assert_array_equal(b, np.tile(a[::-1], 2))


@pytest.mark.parametrize("number", [0, 3])
def test_reduction_counts_those_that_meet(number: int) -> None:
    body = """
      int odd = threadIdx.x % 2, count, all, any;
      if (threadIdx.x >= 64) {
        asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %3, 0;"
          "bar.red.popc.u32 %0, NUMBER, 64, p;"
          "bar.red.and.pred q, NUMBER, 64, p; selp.u32 %1, 1, 0, q;"
          "barrier.cta.red.or.pred q, NUMBER, 64, p; selp.u32 %2, 1, 0, q; }"
          : "=r"(count), "=r"(all), "=r"(any) : "r"(odd) : "memory");
        b[threadIdx.x] = count + 100 * all + 1000 * any;
      } else {
        b[threadIdx.x] = -1;
      }
    """
    a, b = np.zeros(1, np.float32), np.zeros(128, np.float32)
    assert not launched(body.replace("NUMBER", str(number)), 128, a, b, blocks=1).hazards
    np.testing.assert_array_equal(b, np.repeat([-1, 1032], 64))
