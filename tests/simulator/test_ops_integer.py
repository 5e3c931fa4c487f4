"""Integer and bit instructions against Python's own arithmetic."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.simulator.ptx_text import lanewise

EDGES = [0, 1, 2, 3, 31, 32, 33, 63, 64, 255, 256, 0x7F, 0x80, 0x8000]
EDGES += [0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 0x12345678, 0xDEADBEEF]
PAIRS = np.array(list(itertools.product(EDGES, EDGES)), np.uint32)
A, B = PAIRS[:, 0].copy(), PAIRS[:, 1].copy()
MASK = 0xFFFFFFFF


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def expect(function, *columns):  # noqa: ANN001, ANN002, ANN201
    """Return a function of Python integers over columns, wrapped to 32 bits."""
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return np.array([function(*row) & MASK for row in rows], np.uint32)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY = {
    "add.s32": lambda a, b: a + b,
    "sub.s32": lambda a, b: a - b,
    "mul.lo.s32": lambda a, b: a * b,
    "mul.hi.u32": lambda a, b: a * b >> 32,
    "mul.hi.s32": lambda a, b: signed(a) * signed(b) >> 32,
    "min.s32": lambda a, b: min(signed(a), signed(b)),
    "max.u32": max,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "shl.b32": lambda a, b: a << b if b < 32 else 0,
    "shr.u32": lambda a, b: a >> b if b < 32 else 0,
    "shr.s32": lambda a, b: signed(a) >> min(b, 31),
    "add.sat.s32": lambda a, b: max(-(2**31), min(2**31 - 1, signed(a) + signed(b))),
}


@pytest.mark.parametrize("opcode", BINARY)
def test_binary_instruction_equals_python(opcode: str) -> None:
    (got,) = lanewise(f"{opcode} %o0, %i0, %i1;", [A, B], ["u4"])
    np.testing.assert_array_equal(got, expect(BINARY[opcode], A, B))


@pytest.mark.parametrize("count", [0, 1, 31, 32, 40, 255])
def test_shift_by_a_literal_beyond_the_width_leaves_zero_or_the_sign(count: int) -> None:
    code = f"shl.b32 %o0, %i0, {count}; shr.s32 %o1, %i0, {count};"
    left, right = lanewise(code, [A], ["u4", "u4"])
    np.testing.assert_array_equal(left, expect(lambda a: a << count if count < 32 else 0, A))
    np.testing.assert_array_equal(right, expect(lambda a: signed(a) >> min(count, 31), A))


def test_division_truncates_and_the_remainder_has_the_sign_of_the_dividend() -> None:
    a, b = A[B != 0], B[B != 0]
    quotient, rest = lanewise("div.s32 %o0, %i0, %i1; rem.s32 %o1, %i0, %i1;", [a, b], ["u4", "u4"])
    want = expect(lambda x, y: truncated(signed(x), signed(y)), a, b)
    np.testing.assert_array_equal(quotient, want)
    want = expect(lambda x, y: signed(x) - signed(y) * truncated(signed(x), signed(y)), a, b)
    np.testing.assert_array_equal(rest, want)
    (unsigned,) = lanewise("div.u32 %o0, %i0, %i1;", [a, b], ["u4"])
    np.testing.assert_array_equal(unsigned, a // b)


def test_division_by_zero_ends_without_a_crash() -> None:
    zero = np.zeros_like(A)
    lanewise("div.s32 %o0, %i0, %i1; rem.u32 %o0, %i0, %i1;", [A, zero], ["u4"])


def test_wide_products_and_64_bit_arithmetic_are_exact() -> None:
    code = "mul.wide.s32 %o0, %i0, %i1; mad.wide.u32 %o1, %i0, %i1, %o0;"
    product, total = lanewise(code, [A, B], ["u8", "u8"])
    want = A.view(np.int32).astype(np.int64) * B.view(np.int32)
    np.testing.assert_array_equal(product, want.view(np.uint64))
    np.testing.assert_array_equal(total, A.astype(np.uint64) * B + want.view(np.uint64))


@pytest.mark.parametrize("kind", ["s64", "u64"])
def test_upper_half_of_a_64_bit_product_equals_python(kind: str) -> None:
    edges = [0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 0x123456789ABCDEF0]
    pairs = np.array(list(itertools.product(edges, edges)), np.uint64)
    (got,) = lanewise(f"mul.hi.{kind} %o0, %i0, %i1;", [pairs[:, 0], pairs[:, 1]], ["u8"])
    value = (lambda x: signed(x, 64)) if kind == "s64" else int
    want = [value(a) * value(b) >> 64 & 2**64 - 1 for a, b in pairs.tolist()]
    np.testing.assert_array_equal(got, np.array(want, np.uint64))


@pytest.mark.parametrize("mode", ["l.wrap", "l.clamp", "r.wrap", "r.clamp"])
def test_funnel_shift_equals_a_shift_of_the_pair(mode: str) -> None:
    count = np.resize(np.array([0, 1, 5, 31, 32, 33, 64, 255], np.uint32), A.shape)
    (got,) = lanewise(f"shf.{mode}.b32 %o0, %i0, %i1, %i2;", [A, B, count], ["u4"])

    def funnel(low: int, high: int, n: int) -> int:
        n = n & 31 if "wrap" in mode else min(n, 32)
        pair = high << 32 | low
        return (pair << n >> 32) if mode[0] == "l" else pair >> n

    np.testing.assert_array_equal(got, expect(funnel, A, B, count))


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_bit_field_extract_fills_with_the_sign_of_the_field(kind: str) -> None:
    start = np.resize(np.array([0, 1, 8, 24, 31, 32, 200, 256], np.uint32), A.shape)
    length = np.resize(np.array([0, 1, 8, 9, 31, 32, 33, 255, 256], np.uint32), A.shape)
    (got,) = lanewise(f"bfe.{kind} %o0, %i0, %i1, %i2;", [A, start, length], ["u4"])

    def extract(a: int, pos: int, size: int) -> int:
        pos, size = pos & 255, size & 255
        sign = a >> min(pos + size - 1, 31) & 1 if kind == "s32" and size else 0
        bits = [a >> pos + i & 1 if i < size and pos + i < 32 else sign for i in range(32)]
        return sum(bit << i for i, bit in enumerate(bits))

    np.testing.assert_array_equal(got, expect(extract, A, start, length))


def test_bit_field_insert_leaves_the_other_bits_alone() -> None:
    start = np.resize(np.array([0, 1, 8, 24, 31, 32, 200], np.uint32), A.shape)
    length = np.resize(np.array([0, 1, 8, 9, 31, 32, 33, 255, 4], np.uint32), A.shape)
    (got,) = lanewise("bfi.b32 %o0, %i0, %i1, %i2, %i3;", [A, B, start, length], ["u4"])

    def insert(a: int, b: int, pos: int, size: int) -> int:
        for i in range(size):
            if pos + i < 32:
                b = b & ~(1 << pos + i) | (a >> i & 1) << pos + i
        return b

    np.testing.assert_array_equal(got, expect(insert, A, B, start, length))
    wide = [x.astype(np.uint64) << 20 for x in (A, B)]
    (got,) = lanewise("bfi.b64 %o0, %i0, %i1, 32, 32;", wide, ["u8"])
    np.testing.assert_array_equal(got, wide[0] << 32 | wide[1] & 0xFFFFFFFF)


def test_permute_replicates_signs() -> None:
    selector = np.resize(np.array([0x3210, 0x7654, 0x0123, 0x8F9C, 0xFFFF], np.uint32), A.shape)
    (got,) = lanewise("prmt.b32 %o0, %i0, %i1, %i2;", [A, B, selector], ["u4"])

    def permute(a: int, b: int, s: int) -> int:
        pair = (b << 32 | a).to_bytes(8, "little")
        picked = [(pair[s >> 4 * i & 7], s >> 4 * i & 8) for i in range(4)]
        return sum((255 * (x >> 7) if sign else x) << 8 * i for i, (x, sign) in enumerate(picked))

    np.testing.assert_array_equal(got, expect(permute, A, B, selector))


def test_bit_counts_equal_python() -> None:
    code = "popc.b32 %o0, %i0; clz.b32 %o1, %i0; brev.b32 %o2, %i0; bfind.u32 %o3, %i0;"
    code += "bfind.s32 %o4, %i0; not.b32 %o5, %i0; cnot.b32 %o6, %i0;"
    got = lanewise(code, [A], ["u4"] * 7)
    wants = [
        int.bit_count,
        lambda a: 32 - a.bit_length(),
        lambda a: int(f"{a:032b}"[::-1], 2),
        lambda a: a.bit_length() - 1,
        lambda a: (a if a < 2**31 else ~a & MASK).bit_length() - 1,
        lambda a: ~a,
        lambda a: int(a == 0),
    ]
    for result, want in zip(got, wants, strict=True):
        np.testing.assert_array_equal(result, expect(want, A))


def test_64_bit_counts_have_32_bit_results() -> None:
    wide = A.astype(np.uint64) << 13 | B
    ones, zeros = lanewise("popc.b64 %o0, %i0; clz.b64 %o1, %i0;", [wide], ["u4", "u4"])
    np.testing.assert_array_equal(ones, [x.bit_count() for x in wide.tolist()])
    np.testing.assert_array_equal(zeros, [64 - x.bit_length() for x in wide.tolist()])


@pytest.mark.parametrize("table", [0x00, 0x80, 0x96, 0xCA, 0xE8, 0xFE, 0xFF])
def test_logical_lookup_follows_its_truth_table(table: int) -> None:
    c = A ^ np.uint32(0x0F0F00FF)
    (got,) = lanewise(f"lop3.b32 %o0, %i0, %i1, %i2, {table};", [A, B, c], ["u4"])

    def look_up(a: int, b: int, x: int) -> int:
        rows = ((a >> i & 1) << 2 | (b >> i & 1) << 1 | x >> i & 1 for i in range(32))
        return sum((table >> row & 1) << i for i, row in enumerate(rows))

    np.testing.assert_array_equal(got, expect(look_up, A, B, c))


@pytest.mark.parametrize("kinds", ["s32.s32", "u32.u32", "s32.u32", "u32.s32"])
def test_dot_product_of_bytes_keeps_each_operands_sign(kinds: str) -> None:
    (got,) = lanewise(f"dp4a.{kinds} %o0, %i0, %i1, %i0;", [A, B], ["u4"])
    first, second = ("i1" if kind == "s32" else "u1" for kind in kinds.split("."))
    x = A.view(first).astype(np.int64).reshape(-1, 4)
    y = B.view(second).astype(np.int64).reshape(-1, 4)
    np.testing.assert_array_equal(got, ((x * y).sum(1) + A).astype(np.uint32))


def test_comparison_uses_the_sign_and_predicates_combine() -> None:
    code = "setp.lt.s32 %p1, %i0, %i1; setp.lt.u32 %p2, %i0, %i1; setp.hi.u32 %p3|%p4, %i0, %i1;"
    code += "setp.ne.and.s32 %p5, %i0, 0, !%p1; selp.u32 %o0, 1, 0, %p1; selp.u32 %o1, 1, 0, %p2;"
    code += "selp.u32 %o2, 1, 0, %p3; selp.u32 %o3, 1, 0, %p4; selp.u32 %o4, 1, 0, %p5;"
    less, below, above, not_above, combined = lanewise(code, [A, B], ["u4"] * 5)
    want = A.view(np.int32) < B.view(np.int32)
    np.testing.assert_array_equal(less, want)
    np.testing.assert_array_equal(below, A < B)
    np.testing.assert_array_equal(above, A > B)
    np.testing.assert_array_equal(not_above, A <= B)
    np.testing.assert_array_equal(combined, (A != 0) & ~want)


def test_literal_true_moves_into_a_predicate() -> None:
    code = "mov.pred %p1, 1; mov.pred %p2, 0; selp.u32 %o0, 5, 7, %p1; selp.u32 %o1, 5, 7, %p2;"
    yes, no = lanewise(code, [A], ["u4", "u4"])
    assert (yes == 5).all()
    assert (no == 7).all()
