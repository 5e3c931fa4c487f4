"""Carries from one instruction to the next, 128-bit integers, and 24-bit products."""

from __future__ import annotations

import numpy as np
import pytest

from ci.simulator import Buffer, run
from tests.simulator.cuda_text import module_of
from tests.simulator.ptx_text import lanewise

EDGES = [0, 1, 2, 0x7F, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 0x12345678]
A, B, C = (
    np.array(each, np.uint32)
    for each in zip(*[(a, b, c) for a in EDGES for b in EDGES for c in EDGES[::3]], strict=True)
)
MASK = (1 << 64) - 1

WIDE = """
typedef unsigned __int128 U;
extern "C" __global__ void wide(U *out, const U *a, const U *b) {
    int i = threadIdx.x;
    out[4 * i] = a[i] + b[i];
    out[4 * i + 1] = a[i] - b[i];
    out[4 * i + 2] = a[i] * b[i];
    out[4 * i + 3] = a[i] / (b[i] | 1);
}
"""


def _joined(low: np.ndarray, high: np.ndarray) -> list[int]:
    return [int(x) | int(y) << 32 for x, y in zip(low, high, strict=True)]


@pytest.mark.parametrize(("name", "sign"), [("add", 1), ("sub", -1)])
def test_chains_of_sums_and_differences_are_those_of_wide_integers(name: str, sign: int) -> None:
    # (B:A) and (A:C) as 64-bit numbers, and the carry out of the upper half.
    code = f"{name}.cc.u32 %o0, %i0, %i2; {name}c.cc.u32 %o1, %i1, %i0; {name}c.u32 %o2, 0, 0;"
    low, high, out = lanewise(code, [A, B, C], ["u4", "u4", "u4"])
    whole = [x + sign * y for x, y in zip(_joined(A, B), _joined(C, A), strict=True)]
    assert _joined(low, high) == [each & MASK for each in whole]
    assert out.tolist() == [(each >> 64) & 0xFFFFFFFF for each in whole]


def test_sixty_four_bit_chains_carry_as_well() -> None:
    x, y = np.array([2**64 - 1, 5, 2**63], np.uint64), np.array([1, 6, 2**63], np.uint64)
    low, high = lanewise("add.cc.s64 %o0, %i0, %i1; addc.s64 %o1, 0, 0;", [x, y], ["u8", "u8"])
    assert low.tolist() == [0, 11, 0]
    assert high.tolist() == [1, 0, 1]


@pytest.mark.parametrize("kind", ["u", "s"])
def test_products_are_added_with_carry(kind: str) -> None:
    code = f"mad.lo.cc.{kind}32 %o0, %i0, %i1, %i2; madc.hi.{kind}32 %o1, %i0, %i1, 7;"
    low, high = lanewise(code, [A, B, C], ["u4", "u4"])
    view = np.int32 if kind == "s" else np.uint32
    factors = [(int(x), int(y)) for x, y in zip(A.view(view), B.view(view), strict=True)]
    want = [x * y + int(c) + (7 << 32) for (x, y), c in zip(factors, C, strict=True)]
    assert _joined(low, high) == [each & MASK for each in want]


@pytest.mark.parametrize("kind", ["u", "s"])
def test_products_of_24_bits(kind: str) -> None:
    code = (
        f"mul24.lo.{kind}32 %o0, %i0, %i1; mul24.hi.{kind}32 %o1, %i0, %i1;"
        f"mad24.lo.{kind}32 %o2, %i0, %i1, %i2;"
    )
    low, high, both = lanewise(code, [A, B, C], ["u4", "u4", "u4"])
    x, y = (v.astype(np.int64) & 0xFFFFFF for v in (A, B))
    if kind == "s":
        x, y = (v - ((v >> 23) << 24) for v in (x, y))
    np.testing.assert_array_equal(low, (x * y).astype(np.uint32))
    np.testing.assert_array_equal(high, (x * y >> 16).astype(np.uint32))
    np.testing.assert_array_equal(both, (x * y + C).astype(np.uint32))


def test_integers_of_128_bits() -> None:
    rng = np.random.default_rng(5)
    words = rng.integers(0, 2**64, (2, 32, 2), np.uint64)
    words[1, ::2, 1] = 0
    words[0, 0] = words[1, 1] = MASK
    out = np.zeros(256, np.uint64)
    arrays = {"out": out, "a": words[0].reshape(-1).copy(), "b": words[1].reshape(-1).copy()}
    buffers = [Buffer(name=name, data=data) for name, data in arrays.items()]
    run(module_of(WIDE), "wide", grid=(1, 1, 1), block=(32, 1, 1), arguments=buffers)
    got = [int(x) | int(y) << 64 for x, y in out.reshape(-1, 2)]
    a, b = ([int(x) | int(y) << 64 for x, y in each] for each in words)
    want = [v for x, y in zip(a, b, strict=True) for v in (x + y, x - y, x * y, x // (y | 1))]
    assert got == [each & ((1 << 128) - 1) for each in want]
