"""Shared accesses that leave their array for another one, and twins that stay inside."""

from __future__ import annotations

import numpy as np
import pytest

from ci.simulator import Report
from ci.simulator.arrays import name_of
from tests.simulator.planted import HEAD, ints, launched, planted, seen

_READ, _WRITE = "out-of-bounds read", "out-of-bounds write"


def _kernel(body: str, before: str = "") -> str:
    """Return a kernel whose statements stand on lines of their own."""
    head = f"{before}\n{HEAD}k(int* out, const int* in, int n) {{\n  const int t = threadIdx.x;"
    return f"{head}\n{body}\n}}\n"


def _run(source: str, n: int = 0, dynamic_shared_bytes: int = 0) -> Report:
    given = np.arange(256, dtype=np.int32)
    return launched(
        source, ints(256), given, np.int32(n), dynamic_shared_bytes=dynamic_shared_bytes
    )


_ROWS = """
  __shared__ int As[4][%d];
  __shared__ int Bs[32];
  Bs[t] = -in[t];
  __syncthreads();
  for (int row = 0; row < 4; ++row) As[row][t + row] = in[t]; // FOUND
  __syncthreads();
  out[t] = As[2][t + 2] + Bs[31 - t];
"""
_BEFORE = """
  __shared__ int As[32];
  __shared__ int Bs[32];
  As[t] = in[t];
  Bs[t] = in[t + 32];
  __syncthreads();
  out[t] = As[31 - t] + Bs[t %s n]; // FOUND
"""
_PAST = """
  __shared__ int As[32];
  __shared__ int Bs[32];
  As[t] = in[t];
  Bs[t] = in[t + 32];
  __syncthreads();
  out[t] = Bs[31 - t] + As[%d]; // FOUND
"""
_ATOMIC = """
  __shared__ int As[32];
  __shared__ int Bs[32];
  As[t] = Bs[t] = 0;
  __syncthreads();
  atomicAdd(&As[in[t] %s], 1); // FOUND
  __syncthreads();
  out[t] = As[t] + Bs[31 - t];
"""
_WIDE = """
  __shared__ __align__(16) int As[%d];
  __shared__ __align__(16) int Bs[128];
  for (int i = t; i < 128; i += 32) Bs[i] = in[i];
  __syncthreads();
  reinterpret_cast<int4*>(As)[t] = make_int4(t, t, t, n); // FOUND
  __syncthreads();
  out[t] = As[t] + Bs[31 - t];
"""
_COPY = """
  __shared__ __align__(16) int As[32];
  __shared__ __align__(16) int Bs[32];
  Bs[t] = in[t];
  const unsigned to = __cvta_generic_to_shared(&As[t %s]);
  asm volatile("cp.async.ca.shared.global [%%0], [%%1], 4;" ::"r"(to), "l"(in + t)); // FOUND
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  out[t] = As[t] + Bs[31 - t];
"""


@pytest.mark.parametrize(
    ("body", "faulty", "right", "kind", "n", "example"),
    [
        (_ROWS, 33, 35, _WRITE, 0, "byte 528 of As (528 bytes of shared memory)"),
        (_BEFORE, "-", "+", _READ, 1, "byte -4 of Bs (128 bytes of shared memory)"),
        (_PAST, 32, 31, _READ, 0, "byte 128 of As (128 bytes of shared memory)"),
        (_ATOMIC, "+ 1", "+ 0", _WRITE, 0, "byte 128 of As (128 bytes of shared memory)"),
        (_WIDE, 126, 128, _WRITE, 0, "byte 496 of As (504 bytes of shared memory)"),
        (_COPY, "+ 1", "^ 1", _WRITE, 0, "byte 128 of As (128 bytes of shared memory)"),
    ],
    ids=["rows", "before", "past", "atomic", "wide", "copy"],
)
def test_an_access_that_leaves_its_array_is_found(
    body: str, faulty: object, right: object, kind: str, n: int, example: str
) -> None:
    source = _kernel(body % faulty)
    report = _run(source, n)
    assert planted(source, kind) <= seen(report)
    assert not report.stopped
    assert next(h.example for h in report.hazards if h.kind == kind).startswith(example)
    twin = _run(_kernel(body % right), 0)
    assert seen(twin) == set()


def test_only_the_lanes_beyond_are_counted_and_the_others_go_on() -> None:
    source = _kernel(_BEFORE % "-")
    out = ints(32)
    given = np.arange(64, dtype=np.int32)
    report = launched(source, out, given, np.int32(2))
    assert [(h.kind, h.count) for h in report.hazards] == [(_READ, 2)]
    assert out.tolist() == [31 - t + 32 + t - 2 for t in range(32)]


@pytest.mark.parametrize(
    "body",
    [
        """
  int* p = n & 1 ? As : Bs;
  out[t] = p[t + 8];
""",
        """
  int* p = As;
  int* q = Bs;
  for (int i = 0; i < n; ++i) { int* r = p; p = q; q = r; out[t] += p[t]; }
  out[t + 96] = q[t];
""",
        """
  for (const int* p = As + 32 - n; p >= As; p -= n) out[t] += p[t % n];
  out[t + 96] = Bs[t];
""",
        """
  if (t < 16) out[t] = Cs[t];
  out[t + 96] = Bs[t] + As[t];
""",
        """
  out[t] = look(As, t) + look(Bs, t);
""",
    ],
    ids=["chosen", "swapped", "counted down", "idle lanes", "called"],
)
@pytest.mark.parametrize("n", [1, 2])
def test_what_may_be_right_is_no_finding(body: str, n: int) -> None:
    start = """
  __shared__ int Cs[16];
  __shared__ int Ds[32];
  __shared__ int As[32];
  __shared__ int Bs[32];
  __shared__ int Es[32];
  if (t < 16) Cs[t] = in[t];
  As[t] = in[t];
  Bs[t] = Ds[t] = Es[t] = in[t + 32];
  __syncthreads();
  out[t + 128] = Ds[31 - t] + Es[31 - t];
"""
    function = "__device__ __noinline__ int look(const int* p, int i) { return p[i]; }"
    assert seen(_run(_kernel(start + body, before=function), n)) == set()


_DYNAMIC = """
  extern __shared__ int pool[];
  __shared__ int As[32];
  int* first = pool;
  int* second = pool + 32;
  As[t] = in[t];
  first[t] = in[t];
  second[t] = in[t + 32];
  __syncthreads();
  out[t] = As[31 - t] + first[t + n]; // FOUND
"""


def test_dynamic_shared_memory_is_one_array() -> None:
    source = _kernel(_DYNAMIC)
    assert seen(_run(source, 32, dynamic_shared_bytes=256)) == set()
    report = _run(source, -1, dynamic_shared_bytes=256)
    assert seen(report) == planted(source, _READ)
    assert report.hazards[0].example.startswith("byte -4 of pool (256 bytes of shared memory)")


def test_arrays_of_one_struct_are_one_array() -> None:
    body = """
  __shared__ struct { int first[32]; int second[32]; } both;
  __shared__ int As[32];
  both.first[t] = in[t];
  both.second[t] = in[t + 32];
  As[t] = in[t];
  __syncthreads();
  out[t] = both.first[t + n] + As[31 - t];
"""
    assert seen(_run(_kernel(body), 32)) == set()


def test_beyond_all_shared_memory_the_launch_stops_and_the_array_is_named() -> None:
    source = _kernel(_PAST % 5000)
    report = _run(source)
    assert report.stopped
    assert seen(report) == planted(source, _READ)
    assert report.hazards[0].example.startswith("byte 20000 of As (128 bytes of shared memory)")


def test_with_one_array_the_message_speaks_of_shared_memory() -> None:
    source = _kernel(
        "__shared__ int As[32];\nAs[t] = in[t];\n__syncthreads();\nout[t] = As[t + n];"
    )
    (hazard,) = _run(source, 1).hazards
    assert hazard.example.startswith("byte 128 of shared memory (128 bytes)")


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZZ1kPiPKiiE2As", "As"),
        ("_ZZ28attention_scores_shared_tileILi32EEviiiifiPKfS1_S1_PfE2Qs", "Qs"),
        ("_ZZ1kPiE6E2tile_0", "E2tile"),
        ("_ZZ1kPiE4tile__12_", "tile"),
        ("_ZN2ns4tileE", "_ZN2ns4tileE"),
        ("tile", "tile"),
        ("E2As", "E2As"),
    ],
)
def test_names_are_those_of_the_source(symbol: str, name: str) -> None:
    assert name_of(symbol) == name
