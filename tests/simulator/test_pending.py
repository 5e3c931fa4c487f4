"""Asynchronous copies: pipelines that wait for them as they must, and kernels that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci.simulator import Buffer, Report
from ci.simulator.sink import (
    READ_AFTER_WRITE,
    READ_EARLY,
    WRITE_AFTER_WRITE,
)
from tests.simulator.planted import HEAD, ints, launched, planted, seen
from tests.simulator.ptx_text import entry, launch

_COPY = """\
__device__ __forceinline__ void copy(void* to, const void* from) {
  const unsigned at = __cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}
__device__ __forceinline__ void wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
"""
_PIPELINE = """\
  __shared__ int tile[STAGES][64];
  const int t = threadIdx.x;
  const int* from = in + blockIdx.x * TILES * 64 + t;
  for (int s = 0; s < STAGES - 1; ++s) {
    COPY(s);
    commit();
  }
  int sum = 0;
  for (int i = 0; i < TILES; ++i) {
    wait<WAIT>();
    __syncthreads();
    const int next = i + STAGES - 1;
    if (next < TILES) {
      COPY(next);
      COMMIT_IF
    }
    COMMIT
    sum += tile[i % STAGES][t ^ 33]; // FOUND
  }
  out[blockIdx.x * 64 + t] = sum;
}
"""


def _pipeline(stages: int, wait: int, *, always_commits: bool = True, width: str = "int") -> str:
    """Return a kernel that sums nine tiles, each one written by one warp and read by another."""
    text = _COPY + HEAD + "k(const int* in, int* out) {\n" + _PIPELINE
    here = ("", "commit();") if always_commits else ("commit();", "")
    text = text.replace("COMMIT_IF", here[0]).replace("COMMIT\n", here[1] + "\n")
    for name, value in (("STAGES", stages), ("TILES", 9), ("WAIT", wait)):
        text = text.replace(name, str(value))
    for at in ("s", "next"):
        put = f"copy(&tile[{at} % {stages}][t], from + {at} * 64)"
        text = text.replace(f"COPY({at})", put)
    return text.replace("__shared__ int", f"__shared__ {width}")


def _summed(source: str) -> tuple[Report, bool]:
    """Return the report of a pipeline on three blocks, and whether its sums are right."""
    data = np.random.default_rng(2).integers(1, 99, (3, 9, 64), dtype=np.int32)
    out = ints(3 * 64)
    report = launched(source, data.reshape(-1).copy(), out, grid=3, block=64)
    expected = data.sum(axis=1)[:, np.arange(64) ^ 33]
    return report, bool((out.reshape(3, 64) == expected).all())


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_pipeline_that_waits_for_its_copies_is_right(stages: int) -> None:
    report, right = _summed(_pipeline(stages, stages - 2))
    assert seen(report) == set()
    assert right


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_pipeline_that_waits_for_one_group_too_few_reads_early(stages: int) -> None:
    faulty = _pipeline(stages, stages - 1)
    report, right = _summed(faulty)
    assert seen(report) == planted(faulty, READ_EARLY)
    assert not right


@pytest.mark.parametrize("stages", [3, 4])
def test_a_pipeline_that_stops_committing_reads_its_last_tiles_early(stages: int) -> None:
    faulty = _pipeline(stages, stages - 2, always_commits=False)
    report, right = _summed(faulty)
    assert seen(report) == planted(faulty, READ_EARLY)
    assert report.hazards[0].count == (stages - 2) * 3 * 64
    assert not right


def test_the_example_names_the_copy_and_both_threads() -> None:
    faulty = _pipeline(2, 1)
    (hazard,) = _summed(faulty)[0].hazards
    # The copy is inlined: its line is that of the instruction.
    assert hazard.example == (
        "byte 132 of shared memory, copied at line 3 by thread (33,0,0), which has not waited "
        "for it, read by thread (0,0,0) of block (0,0,0)"
    )


_EXCHANGE = (
    _COPY
    + HEAD
    + """k(const int* in, int* out) {
  __shared__ int s[128];
  const int t = threadIdx.x;
  s[t] = s[t + 64] = -1;
  __syncthreads();
  CODE
  out[t] = s[INDEX]; // FOUND
}
"""
)


def _exchange(code: str, index: str) -> str:
    """Return a kernel; ``OWN`` stands for the copy of a thread's own word."""
    code = code.replace("OWN", "copy(s + t, in + t)")
    return _EXCHANGE.replace("CODE", code).replace("INDEX", index)


@pytest.mark.parametrize(
    ("code", "index", "kinds"),
    [
        ("OWN; commit(); wait<0>();", "t", ()),
        ("OWN; wait_all();", "t", ()),
        ("OWN; wait<0>();", "t", (READ_EARLY,)),
        ("OWN; commit();", "t", (READ_EARLY,)),
        ("OWN; commit();", "t + 64", ()),
        ("OWN; commit(); wait<0>();", "t ^ 32", (READ_AFTER_WRITE,)),
        ("OWN; commit(); wait<0>(); __syncthreads();", "t ^ 32", ()),
        ("OWN; commit(); __syncthreads();", "t ^ 32", (READ_EARLY,)),
        ("OWN; commit(); commit(); wait<1>();", "t", ()),
    ],
)
def test_a_copy_has_arrived_when_its_thread_has_waited(
    code: str, index: str, kinds: tuple[str, ...]
) -> None:
    source = _exchange(code, index)
    report = launched(source, np.arange(64, dtype=np.int32), ints(64), grid=2, block=64)
    assert seen(report) == (planted(source, *kinds) if kinds else set())


@pytest.mark.parametrize(
    ("code", "early"),
    [
        # Groups and waits are each thread's own.
        ("if (t < 32) { OWN; commit(); wait<0>(); }", 0),
        ("if (t < 32) OWN; commit(); wait<0>();", 0),
        ("OWN; commit(); if (t < 32) wait<0>();", 32),
        ("OWN; if (t < 32) commit(); wait<0>();", 32),
        ("OWN; commit(); if (t & 1) commit(); wait<1>();", 32),
        ("if (t % 4) commit(); OWN; commit(); if (t % 4) commit(); wait<1>();", 16),
        ("OWN; if (t & 1) { commit(); wait<0>(); } else wait_all();", 0),
        (
            "OWN; if (t & 1) commit(); commit(); if (t & 3) wait<1>(); else wait_all();",
            16,
        ),
    ],
)
def test_each_thread_counts_its_own_groups(code: str, early: int) -> None:
    source = _exchange(code, "t")
    report = launched(source, np.arange(64, dtype=np.int32), ints(64), grid=2, block=64)
    assert seen(report) == (planted(source, READ_EARLY) if early else set())
    assert sum(hazard.count for hazard in report.hazards) == 2 * early


def test_threads_that_have_left_do_not_count_for_the_others() -> None:
    source = (
        _COPY
        + HEAD
        + """k(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  if (blockIdx.x == 1 && t < 32) return;
  copy(s + t, in + t);
  commit();
  copy(s + t + 64, in + t);
  commit();
  wait<1>();
  out[blockIdx.x * 64 + t] = s[t] + s[t + SECOND]; // FOUND
}
"""
    ).replace("s[64]", "s[128]")
    data = np.arange(64, dtype=np.int32)
    right, faulty = source.replace("SECOND", "0"), source.replace("SECOND", "64")
    assert seen(launched(right, data, ints(128), grid=2, block=64)) == set()
    report = launched(faulty, data, ints(128), grid=2, block=64)
    assert seen(report) == planted(faulty, READ_EARLY)
    assert report.hazards[0].count == 96


_MEETING = (
    _COPY
    + HEAD
    + """k(const int* in, int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  copy(s + t, in + t);
  commit();
  __syncthreads();
  CODE // FOUND
  wait_all();
  __syncthreads();
  out[t] = s[t];
}
"""
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("s[t] = 7;", WRITE_AFTER_WRITE),
        ("s[63 - t] = 7;", WRITE_AFTER_WRITE),
        ("atomicAdd(s + (t ^ 32), 1);", READ_EARLY),
        ("((char*)s)[t] = 1;", WRITE_AFTER_WRITE),
        ("out[t] = ((short*)s)[t];", READ_EARLY),
    ],
)
def test_what_meets_a_copy_under_way_is_found_once(code: str, kind: str) -> None:
    source = _MEETING.replace("CODE", code)
    report = launched(source, np.arange(64, dtype=np.int32), ints(64), block=64)
    assert seen(report) == planted(source, kind)
    assert "copied at line 3 by thread" in report.hazards[0].example


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [("t", "t", False), ("t", "63 - t", True), ("t / 2", "t / 2", False), ("0", "t * 0", False)],
)
def test_two_copies_to_one_place_must_copy_the_same(
    first: str, second: str, *, found: bool
) -> None:
    source = (
        _COPY
        + HEAD
        + f"""k(const int* in, int* out) {{
  __shared__ int s[64];
  const int t = threadIdx.x;
  copy(s + {first}, in + {first});
  commit();
  copy(s + {first}, in + {second});
  commit();
  wait<0>();
  __syncthreads();
  out[t] = s[t / 64];
}}
"""
    )
    report = launched(source, np.arange(64, dtype=np.int32), ints(64), block=64)
    assert seen(report) == ({(WRITE_AFTER_WRITE, 3)} if found else set())


def test_lanes_of_one_copy_may_not_bring_different_words_to_one_place() -> None:
    code = "copy(s + t / 2, in + t); commit(); wait_all(); __syncthreads();"
    source = _exchange(code, "t / 2")
    report = launched(source, np.arange(64, dtype=np.int32), ints(64), block=64)
    assert seen(report) == {(WRITE_AFTER_WRITE, 3)}
    # Of two lanes the one whose word is lost.
    assert report.hazards[0].count == 32


def test_what_has_arrived_needs_a_barrier_before_others_read_it() -> None:
    early = _pipeline(3, 1)
    late = early.replace("wait<1>();\n    __syncthreads();", "__syncthreads();\n    wait<1>();")
    assert late != early
    assert seen(_summed(late)[0]) == planted(late, READ_AFTER_WRITE)


@pytest.mark.parametrize("wait", [0, 1])
def test_copies_of_the_cuda_headers_are_the_same(wait: int) -> None:
    source = (
        "#include <cuda_pipeline.h>\n"
        + HEAD
        + f"""k(const int4* in, int4* out) {{
  __shared__ int4 s[32];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(s + t, in + t, 16);
  __pipeline_commit();
  __pipeline_wait_prior({wait});
  out[t] = s[t]; // FOUND
}}
"""
    )
    data: np.ndarray[Any, Any] = np.arange(128, dtype=np.int32)
    report = launched(source, data, ints(128))
    assert seen(report) == (planted(source, READ_EARLY) if wait else set())


_ACTIONS = st.sampled_from(["copy", "copy", "commit", "commit", "0", "1", "2", "all"])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(_ACTIONS, st.integers(0, 2**32 - 1)), min_size=1, max_size=12))
def test_random_lanes_get_what_each_of_them_has_waited_for(steps: list[tuple[str, int]]) -> None:
    code = [
        ".shared .align 4 .b8 buf[1536];",
        "ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1]; mov.u32 %r0, %tid.x;",
        "mov.u32 %r1, buf; mad.lo.u32 %r1, %r0, 4, %r1;",
        "mad.wide.u32 %rd0, %r0, 4, %rd0; mad.wide.u32 %rd1, %r0, 4, %rd1;",
    ]
    # Of each lane: the groups it has committed, and those of its copies that are on their way.
    committed, flying = [0] * 32, [dict[int, int]() for _ in range(32)]
    for slot, (action, mask) in enumerate(steps):
        code.append(f"mov.u32 %r2, {mask}; shr.u32 %r2, %r2, %r0; and.b32 %r2, %r2, 1;")
        code.append("setp.ne.u32 %p1, %r2, 0;")
        code.append("@%p1 cp.async." + {
            "copy": f"ca.shared.global [%r1+{128 * slot}], [%rd0], 4;",
            "commit": "commit_group;",
            "all": "wait_all;",
        }.get(action, f"wait_group {action};"))  # fmt: skip
        for lane in (lane for lane in range(32) if mask >> lane & 1):
            if action == "copy":
                flying[lane][slot] = committed[lane]
            elif action == "commit":
                committed[lane] += 1
            else:
                done = committed[lane] - int(action) if action != "all" else len(steps)
                flying[lane] = {s: g for s, g in flying[lane].items() if g >= done}
    copies = [slot for slot, (action, _) in enumerate(steps) if action == "copy"]
    code += [
        f"ld.shared.u32 %r3, [%r1+{128 * slot}]; st.global.u32 [%rd1], %r3;" for slot in copies
    ]
    source, result = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    buffers = Buffer(name="source", data=source), Buffer(name="result", data=result)
    report = launch(entry("\n".join(code), ".param .u64 p0, .param .u64 p1"), *buffers)
    counts = {hazard.kind: hazard.count for hazard in report.hazards}
    assert counts.get(READ_EARLY, 0) == sum(len(each) for each in flying)
    for lane in range(32) if copies else ():
        arrived = copies[-1] not in flying[lane] and steps[copies[-1]][1] >> lane & 1
        assert result[lane] == (lane if arrived else 0xFFFFFFFF)
