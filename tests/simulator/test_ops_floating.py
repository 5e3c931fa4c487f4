"""Floating-point instructions and conversions, at the values where they are easy to get wrong."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from tests.simulator.ptx_text import lanewise

F4 = np.float32
EDGES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, 1.1754942e-38, 1.1754944e-38]
EDGES += [3.4028235e38, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, 2.0**64, 0.5, 1.5, 2.5, -2.5, 3.7]
PAIRS = np.array(list(itertools.product(EDGES, EDGES)), F4)
A, B = PAIRS[:, 0].copy(), PAIRS[:, 1].copy()


def quiet(function, *values):  # noqa: ANN001, ANN002, ANN201
    with np.errstate(all="ignore"):
        return function(*values)


@pytest.mark.parametrize(
    ("opcode", "function"),
    [
        ("add.f32", np.add),
        ("sub.f32", np.subtract),
        ("mul.rn.f32", np.multiply),
        ("div.rn.f32", np.divide),
    ],
)
def test_arithmetic_is_correctly_rounded(opcode: str, function: np.ufunc) -> None:
    (got,) = lanewise(f"{opcode} %o0, %i0, %i1;", [A, B], ["f4"])
    np.testing.assert_array_equal(got, quiet(function, A, B))


def test_fused_multiply_add_rounds_once() -> None:
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(500).astype(F4) for _ in range(2))
    # What is left is the rounding error of the product, which two roundings would lose.
    c = -(a * b)
    (got,) = lanewise("fma.rn.f32 %o0, %i0, %i1, %i2;", [a, b, c], ["f4"])
    want = [
        Fraction(x) * Fraction(y) + Fraction(z)
        for x, y, z in zip(*map(np.ndarray.tolist, (a, b, c)), strict=True)
    ]
    np.testing.assert_array_equal(got, np.array([float(w) for w in want], F4))
    assert np.count_nonzero(got) > 400


@pytest.mark.parametrize("opcode", ["fma.rn.f32", "fma.rn.sat.f32"])
def test_fused_multiply_add_near_a_tie_is_not_rounded_twice(opcode: str) -> None:
    step = 2.0**-23
    # The product is half a unit of c's last place, or less than an f64 can tell below it.
    hair = np.array([0, step, 2 * step, 3 * step])
    a, b = (1 + hair).astype(F4), (2.0**-26 * (1 - hair)).astype(F4)
    c = np.full(4, (1 + step) / 4, F4)
    (got,) = lanewise(f"{opcode} %o0, %i0, %i1, %i2;", [a, b, c], ["f4"])
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    want = [nearest_f32(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in rows]
    assert len({float(x) for x in want}) == 2
    np.testing.assert_array_equal(got, np.array(want, F4))


def nearest_f32(value: Fraction) -> np.float32:
    """Return the f32 nearest to a number, the even one of two."""
    start = F4(float(value))
    near = [start, np.nextafter(start, F4(np.inf)), np.nextafter(start, F4(-np.inf))]
    return min(near, key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(np.uint32)) & 1))


@pytest.mark.parametrize("sign", [1, -1])
def test_fused_multiply_add_of_bfloats_is_rounded_once(sign: int) -> None:
    # The square is halfway between two bf16; an f32 would lose what the addend says about it.
    values = np.array([1 + 2.0**-4, 1 + 2.0**-4, sign * 2.0**-100], F4)
    words = (values.view(np.uint32) >> 16) * np.uint32(0x10001)
    inputs = [np.full(4, word, np.uint32) for word in words]
    (got,) = lanewise("fma.rn.bf16x2 %o0, %i0, %i1, %i2;", inputs, ["u4"])
    assert set(got.tolist()) == {0x3F913F91 if sign > 0 else 0x3F903F90}


def test_fused_multiply_add_of_doubles_is_rounded_once_at_every_size() -> None:
    rng = np.random.default_rng(10)
    scale = 2.0 ** rng.integers(-540, 500, (2, 400))
    a, b = rng.standard_normal((2, 400)) * scale
    c = -(a * b) * rng.choice([1.0, 2.0**-53, 2.0**53, 0.75, -1.0], 400)
    # The sum is a tie but for the rounding error of the product's rounding error.
    a[0], b[0], c[0] = 2.0**-53 * (1 + 2.0**-52), 1 - 2.0**-53, 1.0
    (got,) = lanewise("fma.rn.f64 %o0, %i0, %i1, %i2;", [a, b, c], ["f8"])
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    want = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in rows]
    np.testing.assert_array_equal(got, want)


def test_fused_multiply_add_of_doubles_keeps_the_whole_product() -> None:
    rng = np.random.default_rng(8)
    a, b = (rng.standard_normal(200) for _ in range(2))
    c = -(a * b)
    (got,) = lanewise("fma.rn.f64 %o0, %i0, %i1, %i2;", [a, b, c], ["f8"])
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    want = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in rows]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", ["rm", "rp", "rz"])
def test_directed_rounding_is_the_nearest_value_on_its_side(mode: str) -> None:
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal(300).astype(F4) for _ in range(2))
    (got,) = lanewise(f"mul.{mode}.f32 %o0, %i0, %i1;", [a, b], ["f4"])
    exact = a.astype(float) * b
    # Which way the result lies from the exact product: -1 below, 1 above.
    sides = {"rm": -np.ones(300), "rp": np.ones(300), "rz": -np.sign(exact)}
    side = sides[mode]
    beyond = np.nextafter(got, (-side * np.inf).astype(F4)).astype(float)
    assert (side * (got - exact) >= 0).all()
    assert (side * (beyond - exact) < 0).all()


def test_ordered_comparisons_are_false_on_nan_and_unordered_ones_true() -> None:
    names = ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu"]
    nan = np.isnan(A) | np.isnan(B)
    plain = {"eq": A == B, "ne": A != B, "lt": A < B, "le": A <= B, "gt": A > B, "ge": A >= B}
    for name in [*names, "num", "nan"]:
        (got,) = lanewise(
            f"setp.{name}.f32 %p1, %i0, %i1; selp.u32 %o0, 1, 0, %p1;", [A, B], ["u4"]
        )
        if name in ("num", "nan"):
            want = nan if name == "nan" else ~nan
        elif name.endswith("u"):
            want = plain[name[:-1]] | nan
        else:
            want = plain[name] & ~nan
        np.testing.assert_array_equal(got, want, err_msg=name)


def test_minimum_is_the_operand_that_is_not_nan() -> None:
    low, high, loud = lanewise(
        "min.f32 %o0, %i0, %i1; max.f32 %o1, %i0, %i1; max.NaN.f32 %o2, %i0, %i1;",
        [A, B],
        ["f4"] * 3,
    )
    np.testing.assert_array_equal(low, np.fmin(A, B))
    np.testing.assert_array_equal(high, np.fmax(A, B))
    np.testing.assert_array_equal(np.isnan(loud), np.isnan(A) | np.isnan(B))
    zero, minus = np.array([0.0], F4), np.array([-0.0], F4)
    (least,) = lanewise("min.f32 %o0, %i0, %i1;", [zero, minus], ["f4"])
    assert np.signbit(least).all()


def test_signs_move_without_touching_the_rest() -> None:
    payload = np.array([0x7F800001, 0xFFC12345, 0x00000000, 0x3F800000], np.uint32).view(F4)
    one = np.full(4, -1.0, F4)
    positive, flipped, copied = lanewise(
        "abs.f32 %o0, %i0; neg.f32 %o1, %i0; copysign.f32 %o2, %i1, %i0;",
        [payload, one],
        ["f4"] * 3,
    )
    bits = payload.view(np.uint32)
    np.testing.assert_array_equal(positive.view(np.uint32), bits & 0x7FFFFFFF)
    np.testing.assert_array_equal(flipped.view(np.uint32), bits ^ 0x80000000)
    np.testing.assert_array_equal(copied[2:], [-0.0, -1.0])


@pytest.mark.parametrize(
    ("opcode", "function"),
    [
        ("ex2.approx", np.exp2),
        ("lg2.approx", np.log2),
        ("sin.approx", np.sin),
        ("cos.approx", np.cos),
        ("tanh.approx", np.tanh),
        ("sqrt.rn", np.sqrt),
        ("rsqrt.approx", lambda x: 1 / np.sqrt(x)),
        ("rcp.rn", lambda x: 1 / x),
    ],
)
def test_functions_are_close_to_the_exact_ones(opcode: str, function) -> None:  # noqa: ANN001
    x = np.linspace(0.01, 20, 500, dtype=F4)
    (got,) = lanewise(f"{opcode}.f32 %o0, %i0;", [x], ["f4"])
    np.testing.assert_allclose(got, function(x.astype(float)), rtol=2e-7, atol=2e-7)


def test_subnormals_are_flushed_only_where_asked() -> None:
    tiny = np.array([1e-40, -1e-40, 1e-30], F4)
    kept, flushed = lanewise(
        "add.f32 %o0, %i0, 0f00000000; add.ftz.f32 %o1, %i0, 0f00000000;", [tiny], ["f4", "f4"]
    )
    np.testing.assert_array_equal(kept, tiny)
    np.testing.assert_array_equal(flushed, np.array([0, 0, 1e-30], F4))


def test_saturation_turns_nan_into_zero() -> None:
    (got,) = lanewise("cvt.sat.f32.f32 %o0, %i0;", [A], ["f4"])
    np.testing.assert_array_equal(got, np.where(np.isnan(A), 0, np.clip(A, 0, 1)))


@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
def test_float_to_integer_saturates_and_nan_is_zero_or_the_top_bit(kind: str, mode: str) -> None:
    bits = int(kind[1:])
    # As an H200 does it: PTX says 0 for all.
    nan = 0 if bits < 64 else 1 << 63
    (got,) = lanewise(f"cvt.{mode}.{kind}.f32 %o0, %i0;", [A], [f"u{bits // 8}"])
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind[0] == "s" else (0, 2**bits - 1)
    whole = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode]

    def convert(x: float) -> int:
        if np.isnan(x):
            return nan
        return low if x < low else high if x > high else max(low, min(high, int(whole(x))))

    want = np.array([convert(x) & 2**bits - 1 for x in A.astype(float).tolist()], got.dtype)
    np.testing.assert_array_equal(got, want)


def test_largest_doubles_saturate_64_bit_integers() -> None:
    x = np.array([2.0**63, 2.0**63 - 1024, 2.0**64, -(2.0**63), np.nan])
    signed, unsigned = lanewise(
        "cvt.rzi.s64.f64 %o0, %i0; cvt.rzi.u64.f64 %o1, %i0;", [x], ["i8", "u8"]
    )
    assert signed.tolist() == [2**63 - 1, 2**63 - 1024, 2**63 - 1, -(2**63), -(2**63)]
    assert unsigned.tolist() == [2**63, 2**63 - 1024, 2**64 - 1, 0, 2**63]


def test_narrow_signed_values_are_extended_by_their_sign() -> None:
    x = np.array([0x7F, 0x80, 0xFF, 0x1234, 0x8000, 0xFFFF8001], np.uint32)
    byte, half, wide, zero = lanewise(
        "cvt.s32.s8 %o0, %i0; cvt.s32.s16 %o1, %i0; cvt.s64.s32 %o2, %i0; cvt.u64.u32 %o3, %i0;",
        [x],
        ["i4", "i4", "i8", "u8"],
    )
    np.testing.assert_array_equal(byte, x.astype(np.int8))
    np.testing.assert_array_equal(half, x.astype(np.int16))
    np.testing.assert_array_equal(wide, x.astype(np.int32))
    np.testing.assert_array_equal(zero, x)


def test_integer_conversion_saturates_where_asked() -> None:
    x = np.array([-300, -1, 5, 300, 2**31 - 1, -(2**31)], np.int32)
    code = "cvt.sat.s8.s32 %o0, %i0; cvt.sat.u8.s32 %o1, %i0;"
    signed, unsigned = lanewise(code, [x], ["i4", "i4"])
    np.testing.assert_array_equal(signed, np.clip(x, -128, 127))
    np.testing.assert_array_equal(unsigned, np.clip(x, 0, 255))


def test_packed_conversion_puts_the_first_operand_on_top() -> None:
    (got,) = lanewise("cvt.rn.f16x2.f32 %o0, %i0, %i1;", [A, B], ["u4"])
    halves = got.view(np.float16).reshape(-1, 2)
    np.testing.assert_array_equal(halves[:, 0], quiet(B.astype, np.float16))
    np.testing.assert_array_equal(halves[:, 1], quiet(A.astype, np.float16))


def test_bfloat16_rounds_to_nearest_even_and_has_one_nan() -> None:
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x7F800001, 0x7F7FFFFF], np.uint32)
    (got,) = lanewise("cvt.rn.bf16.f32 %h1, %i0; cvt.u32.u16 %o0, %h1;", [bits.view(F4)], ["u4"])
    assert got.tolist() == [0x3F80, 0x3F82, 0x3F81, 0x7FFF, 0x7F80]


def test_half_pairs_are_computed_side_by_side() -> None:
    rng = np.random.default_rng(3)
    a, b, c = (rng.standard_normal(64).astype(np.float16) for _ in range(3))
    words = [x.view(np.uint32) for x in (a, b, c)]
    total, fused, negative = lanewise(
        "add.f16x2 %o0, %i0, %i1; fma.rn.f16x2 %o1, %i0, %i1, %i2; neg.f16x2 %o2, %i0;",
        words,
        ["u4"] * 3,
    )
    np.testing.assert_array_equal(total.view(np.float16), a + b)
    exact = a.astype(float) * b + c
    np.testing.assert_array_equal(fused.view(np.float16), exact.astype(np.float16))
    np.testing.assert_array_equal(negative.view(np.float16), -a)


def test_bfloat_pairs_are_rounded_from_single_precision() -> None:
    x = np.array([1.0, 2.5, -3.0, 1e10], F4)
    word = (x.view(np.uint32) >> 16) * np.uint32(0x10001)
    (got,) = lanewise("fma.rn.bf16x2 %o0, %i0, %i0, %i0;", [word], ["u4"])
    single = (x * x + x).view(np.uint32)
    rounded = (single + np.uint32(0x7FFF) + (single >> 16 & 1)) >> 16
    np.testing.assert_array_equal(got, rounded * np.uint32(0x10001))


def test_tensor_float_rounds_ties_away() -> None:
    bits = np.array([0x3F801000, 0x3F800FFF, 0xBF801000, 0x7F800000], np.uint32)
    (got,) = lanewise("cvt.rna.tf32.f32 %o0, %i0;", [bits.view(F4)], ["u4"])
    assert got.tolist() == [0x3F802000, 0x3F800000, 0xBF802000, 0x7F800000]


def test_bits_survive_a_move_between_register_kinds() -> None:
    bits = np.array([0x7F800001, 0xFFFFFFFF, 0x00000001, 0x80000000], np.uint32)
    code = "mov.b32 %f5, %i0; mov.b32 %o0, %f5; mov.b32 {%h1, %h2}, %i0; mov.b32 %o1, {%h2, %h1};"
    code += "mov.b64 %rd20, {%i0, %o1}; mov.b64 {%r20, %o2}, %rd20;"
    same, swapped, upper = lanewise(code, [bits], ["u4"] * 3)
    np.testing.assert_array_equal(same, bits)
    np.testing.assert_array_equal(swapped, bits << 16 | bits >> 16)
    np.testing.assert_array_equal(upper, swapped)
