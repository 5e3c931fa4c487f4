"""Integer intrinsics, rare bit instructions, special registers and clocks."""

from __future__ import annotations

import numpy as np

from ci.simulator import Buffer, run
from tests.simulator.cuda_calls import Expressions
from tests.simulator.cuda_text import module_of
from tests.simulator.ptx_text import Array, lanewise

RNG = np.random.default_rng(8)
_EDGES = np.array([0, 1, 2, 31, 32, 33, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32)


def words(count: int = 246) -> Array:
    return np.asarray(np.r_[_EDGES, RNG.integers(0, 1 << 32, count, np.uint64).astype(np.uint32)])


def parts(x: Array, kind: str) -> Array:
    """Return words as (n, parts) numbers, wide enough to add."""
    return np.ascontiguousarray(x)[:, None].view(kind).astype(np.int64)


def packed(values: Array, kind: str) -> Array:
    return np.ascontiguousarray(values.astype(kind)).view(np.uint32)[:, 0]


def test_packed_integer_intrinsics_act_on_each_part() -> None:
    x, y = words(), RNG.permutation(words())
    bytes_, signed, halves = (tuple(parts(v, kind) for v in (x, y)) for kind in ("u1", "i1", "u2"))
    expected = {
        "__vadd4(x, y)": packed(bytes_[0] + bytes_[1], "u1"),
        "__vsub4(x, y)": packed(bytes_[0] - bytes_[1], "u1"),
        "__vaddss4(x, y)": packed(np.clip(signed[0] + signed[1], -128, 127), "i1"),
        "__vaddus2(x, y)": packed(np.minimum(halves[0] + halves[1], 65535), "u2"),
        "__vavgu2(x, y)": packed((halves[0] + halves[1] + 1) >> 1, "u2"),
        "__vmaxs4(x, y)": packed(np.maximum(*signed), "i1"),
        "__vminu2(x, y)": packed(np.minimum(*halves), "u2"),
        "__vcmpgts4(x, y)": packed(np.where(signed[0] > signed[1], 255, 0), "u1"),
        "__vseteq4(x, y)": packed(bytes_[0] == bytes_[1], "u1"),
        "__vabsdiffu4(x, y)": packed(np.abs(bytes_[0] - bytes_[1]), "u1"),
        "__vabsdiffs4(x, y)": packed(np.abs(signed[0] - signed[1]), "u1"),
        "__vsadu4(x, y)": np.abs(bytes_[0] - bytes_[1]).sum(axis=1).astype(np.uint32),
        "__byte_perm(x, y, 0x6240)": packed(
            np.stack([bytes_[0][:, 0], bytes_[1][:, 0], bytes_[0][:, 2], bytes_[1][:, 2]], 1), "u1"
        ),
    }
    texts = {f"k{n}": text for n, text in enumerate(expected)}
    calls = Expressions.of(texts, "unsigned", "unsigned")
    for name, text in texts.items():
        np.testing.assert_array_equal(calls(name, x, y, y, "u4"), expected[text], err_msg=text)


def test_products_of_halves_and_bytes_are_added_up() -> None:
    x, y, z = words().view(np.int32), RNG.permutation(words()).view(np.int32), words().view("i4")
    a, b = parts(x, "i2"), parts(y, "i1")
    calls = Expressions.of(
        {"low": "__dp2a_lo(x, y, z)", "high": "__dp2a_hi(x, y, z)", "four": "__dp4a(x, y, z)"},
        "int",
        "int",
    )
    want = {
        "low": (a * b[:, :2]).sum(axis=1),
        "high": (a * b[:, 2:]).sum(axis=1),
        "four": (parts(x, "i1") * b).sum(axis=1),
    }
    for name, total in want.items():
        got = calls(name, x, y, z, "i4")
        np.testing.assert_array_equal(got, (total + z).astype(np.int32), err_msg=name)


def nth_set(word: int, base: int, offset: int) -> int:
    """Return the bit that fns finds, by counting one by one."""
    if offset == 0:
        return base if base < 32 and word >> base & 1 else 0xFFFFFFFF
    step = 1 if offset > 0 else -1
    left, at = abs(offset), base
    while 0 <= at < 32:
        left -= word >> at & 1
        if left == 0:
            return at
        at += step
    return 0xFFFFFFFF


def test_nth_set_bit_is_found_in_both_directions() -> None:
    word = words()
    base = RNG.integers(0, 32, len(word)).astype(np.uint32)
    offset = RNG.integers(-9, 10, len(word)).astype(np.int32)
    (got,) = lanewise("fns.b32 %o0, %i0, %i1, %i2;", [word, base, offset], ["u4"])
    triples = zip(word.tolist(), base.tolist(), offset.tolist(), strict=True)
    np.testing.assert_array_equal(got, [nth_set(*triple) for triple in triples])


def test_masks_and_extended_fields_follow_their_widths() -> None:
    value, at, size = words(), RNG.permutation(words()) % 40, RNG.permutation(words()) % 40
    code = """
    bmsk.clamp.b32 %o0, %i1, %i2; bmsk.wrap.b32 %o1, %i1, %i2;
    szext.clamp.u32 %o2, %i0, %i2; szext.wrap.s32 %o3, %i0, %i2;
    """
    got = lanewise(code, [value, at.astype("u4"), size.astype("u4")], ["u4"] * 4)
    for n, (v, p, w) in enumerate(zip(value.tolist(), at.tolist(), size.tolist(), strict=True)):
        clamped, wrapped = ((1 << min(w, 32)) - 1), ((1 << w % 32) - 1)
        assert got[0][n] == clamped << min(p, 32) & 0xFFFFFFFF
        assert got[1][n] == wrapped << p % 32 & 0xFFFFFFFF
        assert got[2][n] == v & clamped
        field = v & wrapped
        negative = w % 32 and field >> (w % 32 - 1) & 1
        assert got[3][n] == (field - (1 << w % 32) if negative else field) & 0xFFFFFFFF


def test_clocks_go_on_so_that_waiting_ends() -> None:
    source = """
    extern "C" __global__ void k(long long* out) {
      long long start = clock64(), now = start; int looks = 0; unsigned int lane;
      while ((now = clock64()) - start < 20000) looks++;
      asm volatile("mov.u32 %0, %%smid;" : "=r"(lane));
      asm volatile("{ .reg.b16 a,b; mov.b32 {a,b}, %0; }" :: "r"(lane));
      out[threadIdx.x] = looks > 0 && lane == 0 && clock() > 0 ? now - start : -1;
    }
    """
    out = np.zeros(32, np.int64)
    buffers = [Buffer(name="out", data=out)]
    run(module_of(source), "k", grid=(1, 1, 1), block=(32, 1, 1), arguments=buffers)
    assert (out >= 20000).all()


def test_lowest_active_lane_is_elected() -> None:
    code = """
    and.b32 %r20, %i0, 31; setp.lt.u32 %p1, %r20, 5; mov.b32 %o0, 99; mov.b32 %o1, 7;
    @%p1 bra OUT; elect.sync %o0|%p2, 0xFFFFFFE0; selp.u32 %o1, 1, 0, %p2; OUT:
    """
    lanes = np.arange(64, dtype=np.uint32)
    leader, leads = lanewise(code, [lanes], ["u4", "u4"])
    np.testing.assert_array_equal(leader, np.where(lanes % 32 < 5, 99, 5))
    np.testing.assert_array_equal(leads, np.where(lanes % 32 < 5, 7, lanes % 32 == 5))


def test_atomics_on_halves_add_up() -> None:
    source = """
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    extern "C" __global__ void k(__half* h, __half2* h2, __nv_bfloat16* b, __nv_bfloat162* b2,
                                 unsigned short* s, unsigned* old) {
      int i = threadIdx.x;
      atomicAdd(h + i % 2, __float2half(1.f));
      old[i] = __half_as_ushort(__low2half(atomicAdd(h2, __floats2half2_rn(1.f, 2.f))));
      atomicAdd(b + i % 2, __float2bfloat16(1.f));
      atomicAdd(b2, __floats2bfloat162_rn(1.f, 2.f));
      atomicCAS(s + i, (unsigned short)(i % 2), (unsigned short)(i + 100));
    }
    """
    h, h2 = np.zeros(2, np.float16), np.zeros(2, np.float16)
    b, b2 = np.zeros(2, np.uint16), np.zeros(2, np.uint16)
    s, old = np.zeros(64, np.uint16), np.zeros(64, np.uint32)
    arrays: dict[str, Array] = {"h": h, "h2": h2, "b": b, "b2": b2, "s": s, "old": old}
    report = run(
        module_of(source),
        "k",
        grid=(1, 1, 1),
        block=(64, 1, 1),
        arguments=[Buffer(name=name, data=array) for name, array in arrays.items()],
    )
    # NVRTC's loop for bfloat16 begins with a plain load, which other threads' updates race with.
    assert {hazard.line for hazard in report.hazards} <= {9, 10}
    np.testing.assert_array_equal(h, [32, 32])
    np.testing.assert_array_equal(h2, [64, 128])
    # The upper half of an f32 is the bfloat16 of the same number.
    np.testing.assert_array_equal(b, np.array([32, 32], "f4").view("u4") >> 16)
    np.testing.assert_array_equal(b2, np.array([64, 128], "f4").view("u4") >> 16)
    np.testing.assert_array_equal(s, np.where(np.arange(64) % 2, 0, np.arange(64) + 100))
    np.testing.assert_array_equal(np.sort(old.astype("u2").view("f2")), np.arange(64))
