"""Loops of compare-and-swaps, as CUDA writes the atomics that a GPU lacks: no races in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from ci.simulator import Report
from ci.simulator.retries import first_looks
from ci.simulator.sink import (
    GLOBAL_READ_AFTER_WRITE,
    GLOBAL_WRITE_AFTER_READ,
    GLOBAL_WRITE_AFTER_WRITE,
    READ_AFTER_WRITE,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
)
from tests.simulator.cuda_text import module_of
from tests.simulator.planted import HEAD, launched, planted, seen

_ADD = """\
__device__ double add(double* to, double by) {
  unsigned long long* at = (unsigned long long*)to;
  unsigned long long old = *at, seen;
  do {
    seen = old;
    old = atomicCAS(at, seen, __double_as_longlong(by + __longlong_as_double(seen)));
  } while (old != seen);
  return __longlong_as_double(old);
}
"""
_LARGEST = """\
__device__ float largest(float* of, float value) {
  float old = *of;
  while (old < value) {
    const int seen = __float_as_int(old);
    old = __int_as_float(atomicCAS((int*)of, seen, __float_as_int(value)));
    if (__float_as_int(old) == seen) break;
  }
  return old;
}
"""
_BYTE = """\
__device__ void count(unsigned char* in) {
  unsigned* word = (unsigned*)((size_t)in & ~(size_t)3);
  const int shift = ((size_t)in & 3) * 8;
  unsigned old = *word, seen;
  do {
    seen = old;
    const unsigned next = (seen >> shift) + 1 & 255;
    old = atomicCAS(word, seen, seen & ~(255u << shift) | next << shift);
  } while (old != seen);
}
"""
_HALVES = "#include <cuda_bf16.h>\n"


@dataclass(frozen=True, kw_only=True)
class _Idiom:
    name: str
    head: str
    kind: str
    """Of the words that are updated."""
    update: str
    """One of word ``AT`` of ``a``."""
    make: str = ""
    """Makes such a word of a float."""


_IDIOMS = [
    _Idiom(name="double", head=_ADD, kind="double", update="add(a + AT, 1.0)"),
    _Idiom(
        name="bfloat16",
        head=_HALVES,
        kind="__nv_bfloat16",
        update="atomicAdd(a + AT, __float2bfloat16(1.f))",
        make="__float2bfloat16",
    ),
    _Idiom(
        name="pair",
        head=_HALVES,
        kind="__nv_bfloat162",
        update="atomicAdd(a + AT, __float2bfloat162_rn(1.f))",
        make="__float2bfloat162_rn",
    ),
    _Idiom(name="largest", head=_LARGEST, kind="float", update="largest(a + AT, 1.f + t % 7)"),
    _Idiom(name="byte", head=_BYTE, kind="unsigned char", update="count(a + AT)"),
]
_GLOBAL = "KIND* a, float* out) {\n  const int t = blockIdx.x * 64 + threadIdx.x;\n"
_SHARED = (
    "KIND* in, float* out) {\n  __shared__ __align__(16) KIND a[16];\n"
    "  const int t = threadIdx.x;\n  if (t < 16) a[t] = MAKE(0.f);\n  __syncthreads();\n"
)


def _source(idiom: _Idiom, space: str, body: str, at: str = "t % 2") -> str:
    names = {"KIND": idiom.kind, "UPDATE": idiom.update, "MAKE": idiom.make, "AT": at}
    text = "".join(f"#define {name} {value}\n" for name, value in names.items()) + idiom.head
    return text + HEAD + "k(" + (_GLOBAL if space == "global" else _SHARED) + body + "}\n"


def _run(source: str) -> Report:
    return launched(source, np.zeros(32, np.float32), np.zeros(192, np.float32), grid=3, block=64)


@pytest.mark.parametrize("idiom", _IDIOMS, ids=lambda idiom: idiom.name)
@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("at", ["t % 2", "t % 4 + 1"])
def test_an_update_by_compare_and_swap_is_no_race(idiom: _Idiom, space: str, at: str) -> None:
    source = _source(idiom, space, "  UPDATE;\n  UPDATE;\n", at)
    assert seen(_run(source)) == set()
    assert len(first_looks(module_of(source).kernels["k"])) == 2


@pytest.mark.parametrize("space", ["global", "shared"])
def test_a_plain_read_of_what_is_swapped_is_a_race(space: str) -> None:
    body = "  UPDATE;\n  out[blockIdx.x * 64 + threadIdx.x] = a[t % 2]; // FOUND\n"
    source = _source(_IDIOMS[0], space, body)
    kind = GLOBAL_READ_AFTER_WRITE if space == "global" else READ_AFTER_WRITE
    assert seen(_run(source)) == planted(source, kind)


@pytest.mark.parametrize("space", ["global", "shared"])
def test_a_plain_store_to_what_is_swapped_is_a_race(space: str) -> None:
    body = "  UPDATE;\n  if (t == 40) a[0] = 1.0; // FOUND\n"
    source = _source(_IDIOMS[0], space, body)
    after = planted(
        source, *(
            (GLOBAL_WRITE_AFTER_READ, GLOBAL_WRITE_AFTER_WRITE)
            if space == "global" else (WRITE_AFTER_WRITE,)
        )
    )  # fmt: skip
    assert seen(_run(source)) == after
    early = _source(_IDIOMS[0], space, "  if (t == 40) a[0] = 1.0;\n  UPDATE;\n")
    found = seen(_run(early))
    # The load, and the swap behind it.
    assert {kind.split("-")[0].removeprefix("global ") for kind, _ in found} == {"read", "write"}


_LOCK = (
    HEAD
    + """k(int* in, int* out) {
  __shared__ int s[2];
  int* a = ARRAY;
  const int t = threadIdx.x;
  if (t < 2) s[t] = 0;
  __syncthreads();
  BODY // FOUND
}
"""
)


@pytest.mark.parametrize(
    ("array", "kind"),
    [("in", GLOBAL_WRITE_AFTER_READ), ("s", WRITE_AFTER_READ)],
)
@pytest.mark.parametrize(
    "body",
    [
        # What is compared is another value, or one of another array.
        "if (a[0] == 0) out[t] = atomicCAS(a, 0, t);",
        "const int old = a[0]; out[t] = atomicAdd(a, 1) + old;",
        "const int old = a[0]; atomicCAS(out, old, t); atomicAdd(a, 1);",
        "const int old = a[0]; atomicCAS(a, old + 1, t);",
    ],
)
def test_a_plain_load_that_no_swap_repeats_is_a_race(array: str, body: str, kind: str) -> None:
    source = _LOCK.replace("ARRAY", array).replace("BODY", body)
    report = launched(source, np.zeros(2, np.int32), np.zeros(64, np.int32), block=64)
    assert (kind, source[: source.index("// FOUND")].count("\n") + 1) in seen(report)
    assert first_looks(module_of(source).kernels["k"]) == frozenset()
