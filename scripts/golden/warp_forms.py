"""The forms of instructions between lanes and to memory, with the values that they see."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from scripts.golden.model import BLOCK, Bits, Form, InputSet, Rule

_WARP = 32
_SEGMENTS = (1, 2, 4, 8, 16, 32)
_HALF = 0.5


def warp_forms() -> Iterator[Form]:
    """Give shuffles, votes, matches and reductions over a warp."""
    for mode in ("up", "down", "bfly", "idx"):
        yield Form(
            name=f"shfl.sync.{mode}.b32",
            code=f"{{ .reg .pred p; shfl.sync.{mode}.b32 %0|p, %2, %3, %4, -1; "
            "selp.u32 %1, 1, 0, p; }",
            outputs=("i32", "i32"),
            inputs="shuffle up" if mode == "up" else "shuffle",
            rule=Rule.BITS,
        )
    for mode in ("all", "any", "uni"):
        yield _guarded(f"vote.sync.{mode}.pred", "r, p, %2; selp.u32 %0, 1, 0, r", "mov.u32 %0, 7;")
    yield _guarded("vote.sync.ballot.b32", "%0, p, %2", "mov.u32 %0, 7;")
    for type_ in ("u32", "s32"):
        for name in ("add", "min", "max"):
            yield _guarded(f"redux.sync.{name}.{type_}", "%0, %1, %2", "mov.u32 %0, 7;")
    for name in ("and", "or", "xor"):
        yield _guarded(f"redux.sync.{name}.b32", "%0, %1, %2", "mov.u32 %0, 7;")
    for type_ in ("b32", "b64"):
        extend = "cvt.u64.u32 w, %1;" if type_ == "b64" else "mov.b32 v, %1;"
        value = "w" if type_ == "b64" else "v"
        for mode, inputs in itertools.product(("any", "all"), ("votes", "alike")):
            target = "%0" if mode == "any" else "%0|r"
            yield _guarded(
                f"match.{mode}.sync.{type_}",
                f"{target}, {value}, %2",
                f"mov.u32 %0, 7; {extend}",
                inputs,
            )


def _guarded(name: str, operands: str, before: str, inputs: str = "votes") -> Form:
    """Return a form that only the lanes of a mask execute, as they say in its member mask."""
    first, _, rest = operands.partition(";")
    then = f"@q {rest};" if rest else ""
    return Form(
        name=name if inputs == "votes" else f"{name} ({inputs})",
        code="{ .reg .pred p, q, r; .reg .b32 v; .reg .b64 w; setp.ne.u32 p, %1, 0; "
        f"setp.ne.u32 q, %3, 0; {before} @q {name} {first}; {then} }}",
        outputs=("i32",),
        inputs=inputs,
        rule=Rule.BITS,
    )


def memory_forms() -> Iterator[Form]:
    """Give loads and stores of every width, atomics, copies and loads of matrices."""
    for space in ("global", "shared"):
        yield from _loads(space)
        for type_ in ("u8", "u16", "b16", "u32", "f32", "b32"):
            yield _memory(f"st.{space}.{type_}", "[%1], %0", space, (), "i32")
        for type_ in ("u32", "f32", "b32"):
            yield _memory(f"st.{space}.v2.{type_}", "[%1], {%0, %0}", space, (), "i32")
            yield _memory(f"st.{space}.v4.{type_}", "[%1], {%0, %0, %0, %0}", space, (), "i32")
        for type_ in ("u64", "f64", "b64"):
            yield _memory(f"st.{space}.{type_}", "[%1], %0", space, (), "i64")
            yield _memory(f"st.{space}.v2.{type_}", "[%1], {%0, %0}", space, (), "i64")
        yield from _atomics(space)
    yield from _copies()


def _loads(space: str) -> Iterator[Form]:
    """Give loads of one to four values, also through the read-only cache."""
    vias = ((space, space), ("global.nc", "read-only")) if space == "global" else ((space, space),)
    for via, where in vias:
        for type_ in ("u8", "s8", "u16", "s16", "u32", "s32", "f32", "b32"):
            yield _memory(f"ld.{via}.{type_}", "%0, [%1]", where, ("i32",))
        for type_ in ("u64", "s64", "f64", "b64"):
            yield _memory(f"ld.{via}.{type_}", "%0, [%1]", where, ("i64",))
            yield _memory(f"ld.{via}.v2.{type_}", "{%0, %1}, [%2]", where, ("i64",) * 2)
        for type_, count in itertools.product(("u8", "u16", "u32", "f32", "b32"), (2, 4)):
            items = ", ".join(f"%{n}" for n in range(count))
            operands = f"{{{items}}}, [%{count}]"
            yield _memory(f"ld.{via}.v{count}.{type_}", operands, where, ("i32",) * count)


def _memory(
    name: str, operands: str, space: str, outputs: tuple[str, ...], source: str = ""
) -> Form:
    return Form(
        name=name,
        code=f"{name} {operands};",
        outputs=outputs,
        inputs=f"cells {source or 'read'}",
        rule=Rule.BITS,
        spaces=(space,),
    )


def _atomics(space: str) -> Iterator[Form]:
    """Give atomics, each lane on a cell of its own."""
    names = [f"{name}.{type_}" for name in ("min", "max") for type_ in ("u32", "s32")]
    names += ["add.u32", "add.s32", "inc.u32", "dec.u32", "exch.b32", "add.f32"]
    names += [f"{name}.b32" for name in ("and", "or", "xor")]
    long = ["add.u64", "exch.b64", "add.f64", "min.u64", "max.u64", "min.s64", "max.s64"]
    long += [f"{name}.b64" for name in ("and", "or", "xor")]
    pairs = ["add.noftz.f16x2", "add.noftz.bf16x2"]
    for name in (*names, *long, *pairs):
        kind = "i64" if name.endswith("64") else "i32"
        kind = name.rpartition(".")[2] if name[-3:] in ("f32", "f64", "6x2") else kind
        for opcode in ("atom", "red"):
            if opcode == "red" and name.startswith("exch"):
                continue
            returns = opcode == "atom"
            yield Form(
                name=f"{opcode}.{space}.{name}",
                code=f"{opcode}.{space}.{name} " + ("%0, [%2], %1;" if returns else "[%1], %0;"),
                outputs=(kind,) if returns else (),
                inputs=f"cells {kind}",
                rule=Rule.BITS if kind[0] == "i" else Rule.VALUE,
                spaces=(space,),
            )
    for type_, kind in (("b32", "i32"), ("b64", "i64")):
        yield Form(
            name=f"atom.{space}.cas.{type_}",
            code=f"atom.{space}.cas.{type_} %0, [%3], %1, %2;",
            outputs=(kind,),
            inputs=f"cells swap {kind}",
            rule=Rule.BITS,
            spaces=(space,),
        )


def _copies() -> Iterator[Form]:
    """Give asynchronous copies, also of fewer bytes than they write, and ldmatrix."""
    for cache, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        for less in ("", ", n"):
            name = f"cp.async.{cache}.shared.global {size}{' n' if less else ''}"
            yield Form(
                name=name,
                code=f"{{ .reg .b32 n; min.u32 n, %0, {size}; "
                f"cp.async.{cache}.shared.global [%1], [%2], {size}{less}; cp.async.wait_all; }}",
                outputs=(),
                inputs="copies",
                rule=Rule.BITS,
                spaces=("shared", "global"),
            )
    for count, trans in itertools.product((1, 2, 4), ("", ".trans")):
        items = ", ".join(f"%{n}" for n in range(count))
        yield Form(
            name=f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16",
            code=f"{{ .reg .b32 a; add.u32 a, %{count + 1}, %{count}; "
            f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{items}}}, [a]; }}",
            outputs=("i32",) * count,
            inputs="matrices",
            rule=Rule.BITS,
            spaces=("shared",),
        )


def warp_sets() -> dict[str, InputSet]:
    """Return the input sets of this file's forms."""
    rng = np.random.default_rng(20)
    sets = {"shuffle": _shuffles(31), "shuffle up": _shuffles(0), "matrices": _matrices(rng)}
    words = 64 * _WARP
    sparse = rng.random((64, 1)) < np.array([0.5, 0.95, 0.05, 0.3] * 16)[:, None]
    predicate = np.where(rng.random((64, _WARP)) < 0.4 + 0.3 * sparse, rng.integers(0, 5), 0)
    value = np.where(
        rng.random((64, _WARP)) < _HALF, predicate, rng.integers(0, 1 << 32, (64, _WARP))
    )
    active = rng.random((64, _WARP)) < np.linspace(0.1, 1.2, 64)[:, None]
    active[:, 5] = True
    member = (active.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(axis=1)
    masks = np.repeat(member, _WARP).astype(np.uint32)
    chosen = active.reshape(words).astype(np.uint32)
    few = rng.integers(0, 3, (64, _WARP))
    few[::2] = 1
    for name, column in (("votes", value), ("alike", few)):
        sets[name] = InputSet(
            kinds=("i32",) * 3,
            columns=(column.reshape(words).astype(np.uint32), masks, chosen),
        )
    return sets | _cells(rng)


def _shuffles(clamp: int) -> InputSet:
    """Return a value, a distance or lane, and clamp with segment mask: all widths and offsets."""
    rows = [(b, (_WARP - width) << 8 | clamp) for width in _SEGMENTS for b in range(_WARP)]
    # One row in which every lane asks for a lane of its own.
    b, c = (np.repeat(np.array(column, np.uint32), _WARP) for column in zip(*rows, strict=True))
    own = np.tile(np.arange(_WARP, dtype=np.uint32) * 7 + 5, 4)
    b, c = np.r_[b, own], np.r_[c, np.full(4 * _WARP, clamp, np.uint32)]
    value = np.arange(len(b), dtype=np.uint32) * 3 + 100
    return InputSet(kinds=("i32",) * 3, columns=(value, b, c))


def _matrices(rng: np.random.Generator) -> InputSet:
    """Return numbered 16-bit elements, 16 bytes a lane, and how far each lane's row is away."""
    warps = 8
    rows = np.stack([np.arange(_WARP), *(rng.permutation(_WARP) for _ in range(warps - 1))])
    away = (rows - np.arange(_WARP)) * 16
    cells = np.arange(warps * _WARP * 8, dtype=np.uint16).reshape(-1, 8).view(np.uint32)
    return InputSet(
        kinds=("i32",), columns=(away.reshape(-1).astype(np.int32).view(np.uint32),), cells=(cells,)
    )


def _cells(rng: np.random.Generator) -> dict[str, InputSet]:
    """Return memory cells, and the operand that meets them."""
    edges = np.array([0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 7, 0x80], np.uint64)
    random = rng.integers(0, 1 << 64, (BLOCK, 4), np.uint64)
    near = np.where(rng.random((BLOCK, 4)) < _HALF, rng.choice(edges, (BLOCK, 4)), random)
    long, words = near, near.astype(np.uint32)
    halves = rng.standard_normal((BLOCK, 4)).astype(np.float32)
    floats: dict[str, Bits] = {
        "f32": halves.view(np.uint32),
        "f64": halves.astype(np.float64).view(np.uint64),
        "f16x2": halves.astype(np.float16).view(np.uint16).astype(np.uint32) * np.uint32(0x10001),
        "bf16x2": (halves.view(np.uint32) >> np.uint32(16)) * np.uint32(0x10001),
    }
    read = {
        "cells read": InputSet(kinds=(), columns=(), cells=(random.view(np.uint32)[:, :4].copy(),))
    }
    pools: dict[str, Bits] = {"i32": words, "i64": long, **floats}
    for kind, all_ in pools.items():
        operand, cell = all_[:, 0].copy(), np.roll(all_, 3, axis=0)
        # Four words of cell, so that vectors fit.
        read[f"cells {kind}"] = InputSet(kinds=(kind,), columns=(operand,), cells=(cell.copy(),))
    for kind, all_ in (("i32", words), ("i64", long)):
        expected = np.where(np.arange(BLOCK) % 2, all_[:, 0], all_[:, 1])
        read[f"cells swap {kind}"] = InputSet(
            kinds=(kind, kind), columns=(expected, all_[:, 2].copy()), cells=(all_.copy(),)
        )
    read["copies"] = InputSet(
        kinds=("i32",),
        columns=(np.arange(BLOCK, dtype=np.uint32) % 5 * 4,),
        cells=(
            np.zeros((BLOCK, 4), np.uint32) + np.uint32(0xABABABAB),
            random.view(np.uint32)[:, :4].copy(),
        ),
    )
    return read
