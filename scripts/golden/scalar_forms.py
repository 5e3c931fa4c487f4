"""The forms of instructions that act on one thread's registers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from scripts.golden.model import WIDTHS, Form, Rule

_INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
_ANY_INTEGERS = ("u8", "s8", *_INTEGERS)
_FLOATS = ("f16", "bf16", "f32", "f64")
_BITS = ("b16", "b32", "b64")
_PAIRS = ("f16x2", "bf16x2")
_ROUNDINGS = ("rn", "rz", "rm", "rp")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def kind_of(type_: str) -> str:
    """Return the kind of a PTX type: ``u32``, ``s32`` and ``b32`` are ``i32``, 8 bits too."""
    if type_ in WIDTHS:
        return type_
    return f"i{max(int(type_[1:]), 32) if type_[1:] == '8' else type_[1:]}"


def plain(
    name: str, out: str, sources: Sequence[str], rule: Rule = Rule.BITS, **more: float
) -> Form:
    """Return a form ``name d, a, b…``.

    Args:
        name: The instruction.
        out: Kind of its result.
        sources: Kinds of its operands, or pools of values; all pairs of the first two are tried.
        rule: How results compare.
        more: ``ulps``, ``absolute``, and ``order``: which source comes first, second …, as digits.
    """
    order = [int(digit) for digit in str(more.get("order", ""))] or range(1, len(sources) + 1)
    operands = ", ".join(f"%{number}" for number in (0, *order))
    return Form(
        name=name,
        code=f"{name} {operands};",
        outputs=(out,),
        inputs=" ".join(sources),
        rule=rule,
        ulps=int(more.get("ulps", 0)),
        absolute=more.get("absolute", 0.0),
    )


def _predicate(name: str, sources: Sequence[str]) -> Form:
    """Return a form whose result is a predicate, given out as 0 or 1."""
    operands = ", ".join(f"%{number + 1}" for number in range(len(sources)))
    return Form(
        name=name,
        code=f"{{ .reg .pred p; {name} p, {operands}; selp.u32 %0, 1, 0, p; }}",
        outputs=("i32",),
        inputs=" ".join(sources),
        rule=Rule.BITS,
    )


def _dotted(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def integer_forms() -> Iterator[Form]:
    """Give integer arithmetic, comparison and selection."""
    for type_ in _INTEGERS:
        kind, pair = kind_of(type_), [kind_of(type_)] * 2
        names = ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"]
        for name in names:
            yield plain(f"{name}.{type_}", kind, pair)
        for name in ("mad.lo", "mad.hi", "sad"):
            yield plain(f"{name}.{type_}", kind, [*pair, kind])
        if kind != "i64":
            wide = f"i{2 * int(kind[1:])}"
            yield plain(f"mul.wide.{type_}", wide, pair)
            yield plain(f"mad.wide.{type_}", wide, [*pair, wide])
        if type_[0] == "s":
            yield plain(f"abs.{type_}", kind, [kind])
            yield plain(f"neg.{type_}", kind, [kind])
        yield from _integer_comparisons(type_)
    yield from _small_products()
    yield from _carries()


def _integer_comparisons(type_: str) -> Iterator[Form]:
    pair = [kind_of(type_)] * 2
    orders = ("lo", "ls", "hi", "hs") if type_[0] == "u" else ()
    for order in (*_COMPARISONS, *orders):
        yield _predicate(f"setp.{order}.{type_}", pair)
        yield plain(f"set.{order}.u32.{type_}", "i32", pair)
    yield from _choices(type_)


def _small_products() -> Iterator[Form]:
    """Give saturating sums, and products of parts of words."""
    for name in ("add.sat.s32", "sub.sat.s32"):
        yield plain(name, "i32", ["i32", "i32"])
    for part in ("u32.u32", "u32.s32", "s32.u32", "s32.s32"):
        yield plain(f"dp4a.{part}", "i32", ["i32"] * 3)
        for half in ("lo", "hi"):
            yield plain(f"dp2a.{half}.{part}", "i32", ["i32"] * 3)
    for name in ("mul24.lo", "mul24.hi"):
        for type_ in ("u32", "s32"):
            yield plain(f"{name}.{type_}", "i32", ["i32", "i32"])


def _carries() -> Iterator[Form]:
    """Give additions and subtractions that hand a carry on, two in a row."""
    for type_, (low, high) in itertools.product(
        ("u32", "s32", "u64"), (("add.cc", "addc"), ("sub.cc", "subc"))
    ):
        kind = kind_of(type_)
        yield Form(
            name=f"{low}.{type_} {high}.{type_}",
            code=f"{low}.{type_} %0, %2, %3; {high}.{type_} %1, %4, %5;",
            outputs=(kind, kind),
            inputs=" ".join([kind] * 4),
            rule=Rule.BITS,
        )


def _choices(type_: str) -> Iterator[Form]:
    kind = kind_of(type_)
    yield Form(
        name=f"selp.{type_}",
        code=f"{{ .reg .pred p; setp.lt.u32 p, %3, 32; selp.{type_} %0, %1, %2, p; }}",
        outputs=(kind,),
        inputs=f"{kind} {kind} positions",
        rule=Rule.BITS,
    )


def combined_forms() -> Iterator[Form]:
    """Give comparisons with a second result and a third operand, and logic of predicates."""
    for combine, type_ in itertools.product(("and", "or", "xor"), ("s32", "f32")):
        kind = kind_of(type_)
        yield Form(
            name=f"setp.lt.{combine}.{type_} p|q",
            code=f"{{ .reg .pred p, q, r; setp.lt.u32 r, %4, 32; "
            f"setp.lt.{combine}.{type_} p|q, %2, %3, r; "
            "selp.u32 %0, 1, 0, p; selp.u32 %1, 1, 0, q; }",
            outputs=("i32", "i32"),
            inputs=f"{kind} {kind} positions",
            rule=Rule.BITS,
        )
    for name in ("and.pred", "or.pred", "xor.pred"):
        yield Form(
            name=name,
            code=f"{{ .reg .pred p, q; setp.lt.s32 p, %1, 1; setp.gt.u32 q, %2, 64; "
            f"{name} p, p, q; selp.u32 %0, 1, 0, p; }}",
            outputs=("i32",),
            inputs="i32 i32",
            rule=Rule.BITS,
        )
    yield Form(
        name="not.pred",
        code="{ .reg .pred p; setp.lt.s32 p, %1, 1; not.pred p, p; selp.u32 %0, 1, 0, p; }",
        outputs=("i32",),
        inputs="i32",
        rule=Rule.BITS,
    )


def bit_forms() -> Iterator[Form]:
    """Give logic, shifts and bit fields."""
    for type_ in _BITS:
        kind = kind_of(type_)
        for name in ("and", "or", "xor"):
            yield plain(f"{name}.{type_}", kind, [kind, kind])
        for name in ("not", "cnot"):
            yield plain(f"{name}.{type_}", kind, [kind])
        yield plain(f"shl.{type_}", kind, [kind, "i32"])
        yield from _choices(type_)
    for type_ in ("u16", "s16", "u32", "s32", "u64", "s64", *_BITS):
        kind = kind_of(type_)
        yield plain(f"shr.{type_}", kind, [kind, "i32"])
    for type_ in ("b32", "b64"):
        kind = kind_of(type_)
        yield plain(f"popc.{type_}", "i32", [kind])
        yield plain(f"clz.{type_}", "i32", [kind])
        yield plain(f"brev.{type_}", kind, [kind])
        yield plain(f"bfi.{type_}", kind, ["positions", "positions", kind, kind], order=3412)
    for type_ in ("u32", "s32", "u64", "s64"):
        kind = kind_of(type_)
        yield plain(f"bfind.{type_}", "i32", [kind])
        yield plain(f"bfind.shiftamt.{type_}", "i32", [kind])
        yield plain(f"bfe.{type_}", kind, ["positions", "positions", kind], order=312)
    for side, mode in itertools.product("lr", ("wrap", "clamp")):
        yield plain(f"shf.{side}.{mode}.b32", "i32", ["i32", "positions", "i32"], order=132)
    for mode in ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        yield plain(_dotted("prmt.b32", mode), "i32", ["i32"] * 3)
    for table in (0x01, 0x1B, 0x3C, 0x80, 0x96, 0xB8, 0xCA, 0xE8, 0xFE):
        yield Form(
            name=f"lop3.b32 {table:#04x}",
            code=f"lop3.b32 %0, %1, %2, %3, {table:#x};",
            outputs=("i32",),
            inputs="i32 i32 i32",
            rule=Rule.BITS,
        )
    yield from _moves()


def _moves() -> Iterator[Form]:
    """Give plain moves, and ones that pack and unpack."""
    for type_ in (*_INTEGERS, *_BITS, "f32", "f64"):
        yield plain(f"mov.{type_}", kind_of(type_), [kind_of(type_)])
    yield Form(
        name="mov.b32 {b16, b16}",
        code="{ .reg .b16 x, y; mov.b32 {x, y}, %1; mov.b32 %0, {y, x}; }",
        outputs=("i32",), inputs="i32", rule=Rule.BITS,
    )  # fmt: skip
    yield Form(
        name="mov.b64 {b32, b32}",
        code="{ .reg .b32 x, y; mov.b64 {x, y}, %1; mov.b64 %0, {y, x}; }",
        outputs=("i64",), inputs="i64", rule=Rule.BITS,
    )  # fmt: skip
    yield Form(
        name="mov.b64 {b16, b16, b16, b16}",
        code="{ .reg .b16 x, y, z, w; mov.b64 {x, y, z, w}, %1; mov.b64 %0, {w, x, z, y}; }",
        outputs=("i64",), inputs="i64", rule=Rule.BITS,
    )  # fmt: skip


def float_forms() -> Iterator[Form]:
    """Give floating-point arithmetic that rounds correctly, and comparisons."""
    yield from _sums_and_products()
    for name, mode in itertools.product(("div", "rcp", "sqrt"), _ROUNDINGS):
        count = 2 if name == "div" else 1
        for type_ in ("f32", "ftz.f32", "f64"):
            kind = type_[-3:]
            yield plain(_dotted(name, mode, type_), kind, [kind] * count, Rule.VALUE)
    for type_ in (*_FLOATS, *_PAIRS):
        yield from _simple_floats(type_)
    for type_ in ("f32", "f64"):
        yield plain(f"copysign.{type_}", type_, [type_, type_])
        for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield _predicate(f"testp.{test}.{type_}", [type_])
        yield from _choices(type_)


def _sums_and_products() -> Iterator[Form]:
    for name in ("add", "sub", "mul", "fma"):
        count = 3 if name == "fma" else 2
        for mode, ftz, sat in itertools.product(("", *_ROUNDINGS), ("", "ftz"), ("", "sat")):
            full = _dotted(name, mode, ftz, sat, "f32")
            yield plain(full, "f32", ["f32"] * count, Rule.VALUE)
        for mode in ("", *_ROUNDINGS):
            yield plain(_dotted(name, mode, "f64"), "f64", ["f64"] * count, Rule.VALUE)
        for type_ in ("f16", "f16x2", "bf16", "bf16x2"):
            for more in ("", "rn", "rn.ftz", "rn.sat", "rn.relu", "ftz", "sat"):
                yield plain(_dotted(name, more, type_), type_, [type_] * count, Rule.VALUE)
    yield Form(
        name="fma.rn.f32 (ties)", code="fma.rn.f32 %0, %1, %2, %3;", outputs=("f32",),
        inputs="ties", rule=Rule.VALUE,
    )  # fmt: skip


def _simple_floats(type_: str) -> Iterator[Form]:
    """Give signs, extremes and comparisons of a type."""
    ftz = ("", "ftz") if type_ in ("f32", "f16", "f16x2") else ("",)
    for flush, name in itertools.product(ftz, ("abs", "neg")):
        yield plain(_dotted(name, flush, type_), type_, [type_], Rule.VALUE)
    for flush, name, mode in itertools.product(
        ftz, ("min", "max"), ("", "NaN", "xorsign.abs", "NaN.xorsign.abs")
    ):
        yield plain(_dotted(name, flush, mode, type_), type_, [type_] * 2, Rule.VALUE)
    if type_ in _PAIRS:
        return
    for flush, order in itertools.product(ftz, (*_COMPARISONS, *_UNORDERED)):
        yield _predicate(_dotted("setp", order, flush, type_), [type_, type_])
    for order in (*_COMPARISONS, "equ", "ltu"):
        yield plain(f"set.{order}.u32.{type_}", "i32", [type_, type_])
        yield plain(f"set.{order}.f32.{type_}", "f32", [type_, type_])


def approximate_forms() -> Iterator[Form]:
    """Give the functions that hardware approximates, with the errors that PTX documents.

    Source: PTX ISA, the accuracy notes of each instruction.
    """
    near = Rule.NEAR
    for ftz in ("", "ftz"):
        for name, ulps in (("rcp", 1), ("rsqrt", 2), ("sqrt", 2), ("ex2", 2)):
            yield plain(_dotted(name, "approx", ftz, "f32"), "f32", ["f32"], near, ulps=ulps)
        yield plain(
            _dotted("lg2.approx", ftz, "f32"), "f32", ["f32"], near, ulps=2, absolute=2.0**-22
        )
        for name in ("sin", "cos"):
            yield plain(
                _dotted(name, "approx", ftz, "f32"),
                "f32", ["angles"], near, ulps=0, absolute=2.0**-20.5,
            )  # fmt: skip
        for mode in ("approx", "full"):
            yield plain(_dotted("div", mode, ftz, "f32"), "f32", ["f32", "f32"], near, ulps=2)
    # A relative error of 2^-11 is 2^12 or 2^13 units in the last place.
    yield plain("tanh.approx.f32", "f32", ["f32"], near, ulps=1 << 13)
    for type_ in ("f16", "f16x2"):
        yield plain(f"ex2.approx.{type_}", type_, [type_], near, ulps=1)
        yield plain(f"tanh.approx.{type_}", type_, [type_], near, ulps=2)
    for type_ in ("bf16", "bf16x2"):
        yield plain(f"ex2.approx.ftz.{type_}", type_, [type_], near, ulps=1)
        yield plain(f"tanh.approx.{type_}", type_, [type_], near, ulps=1)
    for name in ("rcp", "rsqrt"):
        # 2^-20 relative; the low word of the result is zero.
        yield plain(f"{name}.approx.ftz.f64", "f64", ["f64"], near, ulps=1 << 33)


def conversion_forms() -> Iterator[Form]:
    """Give conversions between all types."""
    for source, result, sat in itertools.product(_ANY_INTEGERS, _ANY_INTEGERS, ("", "sat")):
        name = _dotted("cvt", sat, result, source)
        yield plain(name, kind_of(result), [kind_of(source)])
    for whole, result, source, flag in itertools.product(
        ("rni", "rzi", "rmi", "rpi"), _ANY_INTEGERS, _FLOATS, ("", "ftz", "sat")
    ):
        if flag != "ftz" or source == "f32":
            yield plain(_dotted("cvt", whole, flag, result, source), kind_of(result), [source])
    for mode, source, result in itertools.product(_ROUNDINGS, _ANY_INTEGERS, _FLOATS):
        yield plain(_dotted("cvt", mode, result, source), result, [kind_of(source)])
    yield from _float_conversions()
    yield from _small_conversions()


def _float_conversions() -> Iterator[Form]:
    for source, result in itertools.product(_FLOATS, _FLOATS):
        for mode, flag in itertools.product(
            ("", *_ROUNDINGS, "rni", "rzi", "rmi", "rpi"), ("", "ftz", "sat", "relu")
        ):
            if flag != "ftz" or "f32" in (source, result):
                yield plain(
                    _dotted("cvt", mode, flag, result, source), result, [source], Rule.VALUE
                )


def _small_conversions() -> Iterator[Form]:
    """Give conversions to pairs, tf32 and 8-bit floats."""
    for half, mode, flag in itertools.product(("f16", "bf16"), ("rn", "rz"), ("", "relu", "sat")):
        name = _dotted("cvt", mode, flag, f"{half}x2", "f32")
        yield plain(name, f"{half}x2", ["f32", "f32"], Rule.VALUE)
    for mode in ("rna", "rn", "rz", "rn.relu", "rz.relu", "rna.satfinite"):
        yield plain(f"cvt.{mode}.tf32.f32", "tf32", ["f32"], Rule.VALUE)
    for small in ("e4m3x2", "e5m2x2"):
        yield plain(f"cvt.rn.satfinite.{small}.f32", "i16", ["f32", "f32"])
        yield plain(f"cvt.rn.satfinite.{small}.f16x2", "i16", ["f16x2"])
        yield plain(f"cvt.rn.f16x2.{small}", "f16x2", ["i16"], Rule.VALUE)


def scalar_forms() -> Iterator[Form]:
    """Give every form of this file."""
    for part in (
        integer_forms, combined_forms, bit_forms, float_forms, approximate_forms, conversion_forms,
    ):  # fmt: skip
        yield from part()
