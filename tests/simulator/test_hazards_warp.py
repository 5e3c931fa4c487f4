"""Races between the lanes of one warp: CUDA kernels that have one, and twins that have none."""

from __future__ import annotations

import numpy as np
import pytest

from ci.simulator.sink import READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE
from tests.simulator.planted import HEAD, ints, launched, planted, seen

_NEIGHBOUR = (
    HEAD
    + """k(int* out) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  s[t] = t;
  %s
  out[t] = s[31 - t]; // FOUND
}
"""
)
_TREE = (
    HEAD
    + """k(int* out) {
  %s __shared__ int s[32];
  const int t = threadIdx.x;
  s[t] = t;
  %s
  for (int k = 16; k; k /= 2) {
    int v = 0;
    if (t < k) v = s[t + k];
    %s
    if (t < k) s[t] += v;
    %s
  }
  out[t] = s[0];
}
"""
)
_REUSE = (
    HEAD
    + """k(int* out) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  s[t] = t;
  __syncwarp();
  const int v = s[31 - t];
  %s
  s[t] = v + 1; // FOUND
  __syncwarp();
  out[t] = s[t];
}
"""
)
_BRANCHES = (
    HEAD
    + """k(int* out) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  if (t < 16) {
    s[t] = t * 3;
    %s
  } else {
    %s
    out[t] = s[t - 16]; // FOUND
  }
}
"""
)
_SAME_WORD = (
    HEAD
    + """k(int* out, int n) {
  __shared__ int s[2];
  const int t = threadIdx.x;
  if (t < n) s[0] = %s; // FOUND
  __syncwarp();
  out[t] = s[0];
}
"""
)
_COUNTER = (
    HEAD
    + """k(int* out) {
  __shared__ int s[1];
  if (threadIdx.x == 0) s[0] = 0;
  __syncwarp();
  if (threadIdx.x < 8) atomicAdd(&s[0], 1);
  %s
  if (threadIdx.x == 9) out[0] = s[0]; // FOUND
}
"""
)


@pytest.mark.parametrize(
    "order",
    [
        "__syncwarp();",
        "__syncthreads();",
        "out[t] = __shfl_xor_sync(~0u, t, 1);",
        "out[t] = __ballot_sync(~0u, t < 3);",
        "out[t] = __reduce_add_sync(~0u, t);",
        "out[t] = __match_any_sync(~0u, t);",
        'asm volatile("barrier.sync 0;" ::: "memory");',
    ],
)
def test_what_a_warp_executes_together_orders_its_lanes(order: str) -> None:
    assert seen(launched(_NEIGHBOUR % order, ints(32))) == set()


@pytest.mark.parametrize("order", ["", "__threadfence_block();", "__syncwarp(0xffff);"])
def test_nothing_else_orders_them(order: str) -> None:
    source = _NEIGHBOUR.replace("out[t] =", "if (t < 31) out[t] =") % (
        f"if (t < 16) {order}" if "0xffff" in order else order
    )
    assert seen(launched(source, ints(32))) == planted(source, READ_AFTER_WRITE)


def test_both_sides_of_a_race_are_named() -> None:
    (hazard,) = launched(_NEIGHBOUR % "", ints(32)).hazards
    assert hazard.count == 32
    assert hazard.example == (
        "byte 124 of shared memory, written at line 4 by thread (31,0,0) of the same warp, "
        "read by thread (0,0,0) of block (0,0,0)"
    )


def test_a_tree_within_a_warp_needs_its_warp_barriers() -> None:
    right = _TREE % ("", *["__syncwarp();"] * 3)
    assert seen(launched(right, ints(32))) == set()
    for volatile in ("", "volatile"):
        kinds = {kind for kind, _ in seen(launched(_TREE % (volatile, "", "", ""), ints(32)))}
        assert READ_AFTER_WRITE in kinds


def test_a_word_may_be_overwritten_once_the_warp_has_read_it() -> None:
    assert seen(launched(_REUSE % "__syncwarp();", ints(32))) == set()
    faulty = _REUSE % ""
    assert seen(launched(faulty, ints(32))) == planted(faulty, WRITE_AFTER_READ)


def test_branches_of_a_warp_are_not_ordered_by_their_place_in_the_code() -> None:
    assert seen(launched(_BRANCHES % (("__syncwarp();",) * 2), ints(32))) == set()
    faulty = _BRANCHES % ("", "")
    assert seen(launched(faulty, ints(32))) == planted(faulty, READ_AFTER_WRITE)


def test_lanes_of_one_store_race_only_with_different_values() -> None:
    assert seen(launched(_SAME_WORD % "7", ints(32), np.int32(9))) == set()
    faulty = _SAME_WORD % "t"
    assert seen(launched(faulty, ints(32), np.int32(1))) == set()
    assert seen(launched(faulty, ints(32), np.int32(9))) == planted(faulty, WRITE_AFTER_WRITE)


def test_an_atomic_is_ordered_against_a_plain_read_as_a_store_is() -> None:
    assert seen(launched(_COUNTER % "__syncwarp();", ints(1))) == set()
    faulty = _COUNTER % ""
    assert seen(launched(faulty, ints(1))) == planted(faulty, READ_AFTER_WRITE)
