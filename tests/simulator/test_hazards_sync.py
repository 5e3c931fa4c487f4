"""Barriers and warp instructions that not all come to: CUDA kernels with one, and right twins."""

from __future__ import annotations

import pytest

from ci.simulator.ops.members import LEFT_OUT, MISSING
from ci.simulator.ops.sync import DIVERGENT
from ci.simulator.ops.warp import INACTIVE_LANE
from tests.simulator.planted import HEAD, ints, launched, planted, seen

_BARRIER = (
    HEAD
    + """k(int* out) {
  const int t = threadIdx.x;
  %s
  __syncthreads(); // FOUND
  %s
  out[t] = t;
}
"""
)
_WARP = (
    HEAD
    + """k(int* out) {
  const int t = threadIdx.x, lane = t %% 32;
  int v = t;
  if (%s) {
    v += %s; // FOUND
  }
  out[t] = v;
}
"""
)


@pytest.mark.parametrize(
    ("before", "after", "faulty"),
    [
        ("if (t < 64) {", "}", False),
        ("if (t < 40) {", "} __syncthreads();", True),
        ("if (t < 32) {", "} __syncthreads();", True),
        ("if (t < 40) {", "} out[t] = __ballot_sync(~0u, 1);", True),
        ("__shared__ int s[64]; s[t] = t; if (t < 40) {", "} if (s[63 - t] > 99) return;", True),
        ("if (t >= 40) return;", "", False),
        ("if (t >= 40) { out[t] = 1; return; }", "", False),
        ("if (t % 2) return;", "", False),
        ("for (int i = 0; i < (t < 32 ? 2 : 1); ++i)", "__syncthreads();", True),
    ],
)
def test_all_threads_that_are_left_must_come_to_a_barrier(
    before: str, after: str, *, faulty: bool
) -> None:
    source = _BARRIER % (before, after)
    found = seen(launched(source, ints(64), block=64))
    assert found == (planted(source, DIVERGENT) if faulty else set())


@pytest.mark.parametrize(
    ("condition", "instruction", "kinds"),
    [
        ("lane < 16", "__shfl_xor_sync(0xffffu, v, 1)", ()),
        ("lane < 16", "__shfl_xor_sync(~0u, v, 1)", (MISSING,)),
        ("lane < 16", "__shfl_xor_sync(~0u, v, 16)", (INACTIVE_LANE,)),
        ("lane < 16", "__shfl_down_sync(0xffffu, v, 1)", (INACTIVE_LANE,)),
        ("lane < 64", "__shfl_xor_sync(lane < 16 ? 0xffffu : 0xffff0000u, v, 1)", ()),
        ("lane < 64", "__shfl_xor_sync(lane < 16 ? 0xffffu : ~0xffffu, v, 16)", (INACTIVE_LANE,)),
        ("lane < 16", "__shfl_xor_sync(0xffu, v, 1)", (LEFT_OUT, INACTIVE_LANE)),
        ("lane < 16", "__ballot_sync(0xffffu, v > 3)", ()),
        ("lane < 16", "__ballot_sync(~0u, v > 3)", (MISSING,)),
        ("lane < 16", "__ballot_sync(0xfu, v > 3)", (LEFT_OUT,)),
        ("lane < 16", "__any_sync(~0u, v > 3)", (MISSING,)),
        ("lane < 16", "__match_any_sync(~0u, v)", (MISSING,)),
        ("lane < 16", "__match_any_sync(0xffffu, v)", ()),
        ("lane < 16", "__reduce_add_sync(~0u, v)", (MISSING,)),
        ("lane < 16", "__reduce_add_sync(__activemask(), v)", ()),
        ("t < 32", "__reduce_add_sync(~0u, v)", ()),
        ("lane < 16", "(__syncwarp(0xffffu), 1)", ()),
        ("lane < 16", "(__syncwarp(0xffu), 1)", (LEFT_OUT,)),
    ],
)
def test_a_member_mask_names_those_that_come(
    condition: str, instruction: str, kinds: tuple[str, ...]
) -> None:
    source = _WARP % (condition, instruction)
    found = seen(launched(source, ints(64), block=64))
    assert found == planted(source, *kinds)


def test_lanes_of_a_block_that_is_no_multiple_of_a_warp_are_not_missed() -> None:
    source = _WARP % ("t >= 0", "__reduce_add_sync(~0u, v)")
    assert seen(launched(source, ints(40), block=40)) == set()


def test_a_warp_barrier_may_be_met_from_both_branches() -> None:
    source = (
        HEAD
        + """k(int* out) {
      if (threadIdx.x < 16) { __syncwarp(); out[threadIdx.x] = 1; }
      else { out[threadIdx.x] = 2; __syncwarp(); }
    }"""
    )
    assert seen(launched(source, ints(32))) == set()


def test_an_example_says_who_is_missing() -> None:
    source = _WARP % ("t == 3", "__ballot_sync(~0u, v > 3)")
    (hazard,) = launched(source, ints(32)).hazards
    assert hazard.count == 1
    assert hazard.example == (
        "instruction that waits for lane 0, which is elsewhere, "
        "executed by thread (3,0,0) of block (0,0,0)"
    )
