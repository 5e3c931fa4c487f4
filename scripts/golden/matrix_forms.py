"""The forms of tensor-core instructions, with the fragments that they see."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scripts.golden.model import BLOCK, Bits, Form, InputSet, Rule

_WARP = 32
_WMMA_SHAPES = ("m16n16k16", "m32n8k16", "m8n32k16")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shape:
    """A product of one warp, by the number of 32-bit registers of its fragments."""

    name: str
    a: int
    b: int
    c: int
    element: str
    """Type of A and B as their registers hold it."""
    result: str
    """Kind of C and D."""
    depth: int


def _shapes() -> Iterator[_Shape]:
    for depth in (8, 16):
        for element, result in (("f16", "f32"), ("f16", "f16x2"), ("bf16", "f32")):
            number = result.removesuffix("x2")
            yield _Shape(
                name=f"m16n8k{depth}.row.col.{number}.{element}.{element}.{number}",
                a=depth // 4, b=depth // 8, c=4 if result == "f32" else 2,
                element=element, result=result, depth=depth,
            )  # fmt: skip
    for depth in (4, 8):
        yield _Shape(
            name=f"m16n8k{depth}.row.col.f32.tf32.tf32.f32", a=depth // 2, b=depth // 4, c=4,
            element="tf32", result="f32", depth=depth,
        )  # fmt: skip
    for rows, depth in ((8, 16), (16, 16), (16, 32)):
        for a, b in (("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8")):
            for satfinite in ("", ".satfinite"):
                yield _Shape(
                    name=f"m{rows}n8k{depth}.row.col{satfinite}.s32.{a}.{b}.s32",
                    a=rows * depth // 128, b=depth // 16, c=rows // 4,
                    element=a if a == b else "u8", result="i32", depth=depth,
                )  # fmt: skip


def matrix_forms() -> Iterator[Form]:
    """Give mma with small integers and random data, one non-zero element at a time, and wmma."""
    for shape in _shapes():
        contents = ["integers", "one"]
        contents += ["random"] if shape.result != "i32" else []
        for content in contents:
            rule = Rule.BITS if shape.result == "i32" else Rule.VALUE
            yield Form(
                name=f"mma.sync.aligned.{shape.name} ({content})",
                code=_multiply(shape),
                outputs=(shape.result,) * shape.c,
                inputs=_set_name(shape, content),
                rule=Rule.PRODUCT if content == "random" else rule,
                depth=shape.depth,
            )
    yield from _double_products()
    yield from _wmma()


def _registers(first: int, count: int) -> str:
    return "{" + ", ".join(f"%{number}" for number in range(first, first + count)) + "}"


def _multiply(shape: _Shape) -> str:
    a, b, c = shape.c, shape.c + shape.a, shape.c + shape.a + shape.b
    return (
        f"mma.sync.aligned.{shape.name} {_registers(0, shape.c)}, {_registers(a, shape.a)}, "
        f"{_registers(b, shape.b)}, {_registers(c, shape.c)};"
    )


def _set_name(shape: _Shape, content: str) -> str:
    return f"{content} {shape.element}*{shape.a}*{shape.b}+{shape.result}*{shape.c}"


def _double_products() -> Iterator[Form]:
    for content in ("integers", "random"):
        yield Form(
            name=f"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 ({content})",
            code="mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %5};",
            outputs=("f64", "f64"),
            inputs=f"{content} doubles",
            rule=Rule.VALUE if content == "integers" else Rule.PRODUCT,
            depth=4,
        )


def _wmma() -> Iterator[Form]:
    """Give which element of a matrix each lane of a fragment holds, and whole products."""
    for shape, space in itertools.product(_WMMA_SHAPES, ("shared", "global")):
        for side, order in itertools.product("ab", ("row", "col")):
            yield _fragment(f"wmma.load.{side}.sync.aligned.{order}.{shape}.{space}.f16", 8, space)
        for order in ("row", "col"):
            name = f"sync.aligned.{order}.{shape}.{space}"
            yield _fragment(f"wmma.load.c.{name}.f16", 4, space)
            yield _fragment(f"wmma.load.c.{name}.f32", 8, space)
            yield _stored(f"wmma.store.d.{name}.f32", 8, space)
            yield _stored(f"wmma.store.d.{name}.f16", 4, space)
    orders = [f"{a}.{b}" for a, b in itertools.product(("row", "col"), repeat=2)]
    contents = (("integers", Rule.VALUE), ("random", Rule.PRODUCT))
    for order, shape, kind, (content, rule) in itertools.product(
        orders, _WMMA_SHAPES, ("f32", "f16"), contents
    ):
        count = 8 if kind == "f32" else 4
        a, b, c, d = (
            _registers(n, k)
            for n, k in zip((count, count + 8, count + 16, 0), (8, 8, count, count), strict=True)
        )
        name = f"wmma.mma.sync.aligned.{order}.{shape}.{kind}.{kind}"
        held = "f32" if kind == "f32" else "f16x2"
        yield Form(
            name=f"{name} ({content})",
            code=f"{name} {d}, {a}, {b}, {c};",
            outputs=(held,) * count,
            inputs=f"{content} f16*8*8+{held}*{count}",
            rule=rule,
            depth=16,
        )


def _extent(name: str) -> str:
    """Return the stride of the matrix in shared memory that a load or store names."""
    shape = next(part for part in name.split(".") if part.startswith("m") and part[1].isdigit())
    m, n, k = (int(word) for word in shape[1:].replace("n", " ").replace("k", " ").split())
    rows, columns = {"a": (m, k), "b": (k, n)}.get(name.split(".")[2], (m, n))
    return str(columns if ".row." in name else rows)


def _base(number: int, space: str) -> str:
    """Return instructions that put the address of the warp's memory into ``a``."""
    if space == "shared":
        return f".reg .b32 a; sub.u32 a, %{number + 1}, %{number};"
    move = f"cvt.u64.u32 a, %{number}; sub.u64 a, %{number + 1}, a;"
    return f".reg .b64 a; {move}"


def _fragment(name: str, count: int, space: str) -> Form:
    return Form(
        name=name,
        code=f"{{ {_base(count, space)} {name} {_registers(0, count)}, [a], {_extent(name)}; }}",
        outputs=("i32",) * count,
        inputs="numbered f16" if name.endswith("f16") else "numbered f32",
        rule=Rule.BITS,
        spaces=(space,),
    )


def _stored(name: str, count: int, space: str) -> Form:
    """Return a form that stores registers of known values."""
    return Form(
        name=name,
        code=f"{{ {_base(count, space)} {name} [a], {_registers(0, count)}, {_extent(name)}; "
        "bar.warp.sync -1; }",
        outputs=(),
        inputs=f"registers {count}",
        rule=Rule.BITS,
        spaces=(space,),
    )


def matrix_sets() -> dict[str, InputSet]:
    """Return the input sets of this file's forms."""
    rng = np.random.default_rng(30)
    sets: dict[str, InputSet] = {}
    wmma = [
        _Shape(name="", a=8, b=8, c=count, element="f16", result=result, depth=16)
        for count, result in ((8, "f32"), (4, "f16x2"))
    ]
    for shape in (*_shapes(), *wmma):
        for content in ("integers", "one", "random"):
            name = _set_name(shape, content)
            wanted = content != "random" or shape.result != "i32"
            if name not in sets and wanted and (content != "one" or shape.name):
                sets[name] = _fragments(shape, content, rng)
    lane = np.arange(BLOCK, dtype=np.uint32) % _WARP
    for name, words, away in (("f16", 8, 32), ("f32", 16, 64)):
        # Numbers of the elements of a matrix of 512, in the memory of each warp.
        element = np.arange(512, dtype=np.uint16 if name == "f16" else np.uint32)
        cells = np.resize(element.view(np.uint32), (4, _WARP, words))[:, :, :words]
        sets[f"numbered {name}"] = InputSet(
            kinds=("i32",), columns=(lane * np.uint32(away),), cells=(cells.reshape(BLOCK, words),)
        )
    for count in (4, 8):
        registers = [lane * np.uint32(16) + np.uint32(number) for number in range(count)]
        sets[f"registers {count}"] = InputSet(
            kinds=("i32",) * (count + 1),
            columns=(*registers, lane * np.uint32(64)),
            cells=(np.zeros((BLOCK, 16), np.uint32),),
        )
    for content in ("integers", "random"):
        draw = rng.integers(-9, 10, (4, 256)) if content == "integers" else None
        doubles = rng.standard_normal((4, 256)) if draw is None else draw.astype(np.float64)
        sets[f"{content} doubles"] = InputSet(kinds=("f64",) * 4, columns=tuple(doubles.view("u8")))
    return sets


def _fragments(shape: _Shape, content: str, rng: np.random.Generator) -> InputSet:
    """Return registers of A, B and C."""
    threads = {"integers": 8, "random": 16, "one": 0}[content] * _WARP
    ab = shape.a + shape.b
    if content == "one":
        a, b = _one_at_a_time(shape, rng)
        threads = a.shape[1]
        c = np.zeros((shape.c, threads), np.uint32)
    else:
        both = _numbers(shape.element, (ab, threads), rng, whole=content == "integers")
        a, b = both[: shape.a], both[shape.a :]
        kind = {"i32": "s32", "f16x2": "f16"}.get(shape.result, shape.result)
        c = _numbers(kind, (shape.c, threads), rng, whole=content == "integers")
    kind = {"f16": "f16x2", "bf16": "bf16x2", "tf32": "tf32"}.get(shape.element, "i32")
    return InputSet(
        kinds=(kind,) * ab + (shape.result,) * shape.c, columns=tuple(np.concatenate([a, b, c]))
    )


def _one_at_a_time(shape: _Shape, rng: np.random.Generator) -> tuple[Bits, Bits]:
    """Return A with one element set in each warp and B full, then B so and A full."""
    per = {"f16": 2, "bf16": 2, "tf32": 1}.get(shape.element, 4)
    one = {"f16": 0x3C00, "bf16": 0x3F80, "tf32": 0x3F800000}.get(shape.element, 1)
    parts: list[tuple[Bits, Bits]] = []
    for count, other in ((shape.a, shape.b), (shape.b, shape.a)):
        slots = _WARP * count * per
        warps = -(-slots // 4) * 4
        single = np.zeros((count, warps, _WARP), np.uint32)
        slot = np.arange(slots)
        lane, register, element = slot % _WARP, slot // _WARP % count, slot // (_WARP * count)
        single[register, slot, lane] = (one << (32 // per * element)).astype(np.uint32)
        full = _numbers(shape.element, (other, 1, _WARP), rng, whole=True)
        parts.append((single, np.repeat(full, warps, axis=1)))
    (a1, b1), (b2, a2) = parts
    return (
        np.concatenate([a1, a2], axis=1).reshape(shape.a, -1),
        np.concatenate([b1, b2], axis=1).reshape(shape.b, -1),
    )


def _numbers(kind: str, shape: tuple[int, ...], rng: np.random.Generator, *, whole: bool) -> Bits:
    """Return registers full of numbers of a type: small integers, or random."""
    if kind in ("s8", "u8"):
        return rng.integers(0, 1 << 32, shape, np.uint32)
    if kind == "s32":
        return rng.integers(-(10**6), 10**6, shape).astype(np.int32).view(np.uint32)
    per = 2 if kind in ("f16", "bf16") else 1
    full = (*shape[:-1], shape[-1] * per)
    numbers = rng.integers(-8, 9, full) if whole else rng.standard_normal(full)
    if kind == "f16":
        return numbers.astype(np.float16).view(np.uint32)
    single = numbers.astype(np.float32).view(np.uint32)
    if kind == "bf16":
        return (single >> np.uint32(16)).astype(np.uint16).view(np.uint32)
    return single
