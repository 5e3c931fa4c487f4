"""The values that instructions see: the edges of each type, and random ones between them."""

from __future__ import annotations

import itertools

import numpy as np

from scripts.golden.model import BLOCK, Bits, InputSet, unsigned

_WORDS = (
    0, 1, 2, 3, 31, 32, 33, 63, 64, 255, 256, 0x7F, 0x80, 0x7FFF, 0x8000,
    0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF,
)  # fmt: skip
_LONG_WORDS = (
    1 << 32, (1 << 32) + 1, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 1,
    0xFFFFFFFF00000000, 0xFFFFFFFF80000000, (1 << 64) - 2, (1 << 64) - 1,
)  # fmt: skip
_FLOATS = (0.0, 1.0, 0.5, 1.5, 2.5, 3.141592653589793, 2.0**31, 2.0**63, np.inf)
_MORE_FLOATS = (3.5, 0.1, 100.75, 127.5, 255.5, 32767.5, 65504.0, 65520.0, 2.0**32, 2.0**64)
"""Seen by instructions with one operand only: pairs of all would fill the file."""
_RANDOM = 8
"""Random values behind the edges of a type."""


def _float_edges(kind: str, *, alone: bool) -> list[int]:
    """Return bit patterns of a float type: numbers, both ends of each range, NaNs."""
    mantissa, dtype = {"f16": (10, "f2"), "bf16": (7, "f4"), "f32": (23, "f4"), "f64": (52, "f8")}[
        kind
    ]
    width = 8 * unsigned(kind).itemsize
    exponent = (1 << width - 1) - (1 << mantissa)
    ends = [1, (1 << mantissa) - 1, 1 << mantissa, exponent - 1]
    nans = [exponent | 1 << mantissa - 1, exponent | 1]
    with np.errstate(over="ignore"):
        numbers = np.array((*_FLOATS, *(_MORE_FLOATS if alone else ()))).astype(dtype)
    patterns = numbers.view(f"u{numbers.itemsize}").tolist()
    if kind == "bf16":
        patterns = [pattern >> 16 for pattern in patterns]
    positive = [*dict.fromkeys([*patterns, *ends]), *nans]
    sign = 1 << width - 1
    return positive + [sign | pattern for pattern in positive if alone or pattern not in nans]


def edges(kind: str, rng: np.random.Generator, *, alone: bool) -> Bits:
    """Return the values of a kind that are easy to get wrong, and a few random ones.

    Args:
        kind: A kind of ``WIDTHS``; ``positions`` and ``small`` are i32 with few values.
        rng: Source of the random ones.
        alone: Whether the value is an instruction's only operand.
    """
    if kind == "positions":
        return np.array([0, 1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 200, 255, 256, 300], np.uint32)
    if kind == "angles":
        return np.asarray(np.linspace(-3.1415, 3.1415, 200, dtype=np.float32).view(np.uint32))
    if kind in ("f16x2", "bf16x2"):
        low = edges(kind[:-2], rng, alone=alone).astype(np.uint32)
        return np.asarray(low | np.roll(low, 5) << np.uint32(16))
    dtype = unsigned(kind)
    if kind[0] == "i":
        words = (*_WORDS, *_LONG_WORDS) if kind == "i64" else _WORDS
        listed = list(dict.fromkeys(word & (1 << 8 * dtype.itemsize) - 1 for word in words))
        random = rng.integers(0, 1 << 8 * dtype.itemsize, _RANDOM, dtype)
    else:
        listed = _float_edges("f32" if kind == "tf32" else kind, alone=alone)
        random = _normals(kind, _RANDOM, rng)
    return np.concatenate([np.array(listed, dtype), random])


def _normals(kind: str, count: int, rng: np.random.Generator) -> Bits:
    """Return bit patterns of normal random numbers of many magnitudes."""
    numbers = rng.standard_normal(count) * 2.0 ** rng.integers(-6, 7, count)
    if kind == "bf16":
        return np.asarray(numbers.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype("u2")
    narrow = {"f16": "f2", "f32": "f4", "tf32": "f4", "f64": "f8"}[kind]
    return np.asarray(numbers.astype(narrow).view(unsigned(kind)))


_HELD_AS = {"positions": "i32", "angles": "f32"}


def edge_set(kinds: tuple[str, ...], *, seed: int) -> InputSet:
    """Return all pairs of edges of the first two kinds; further columns are drawn from theirs.

    Args:
        kinds: Kind of each column.
        seed: Of the random values.
    """
    rng = np.random.default_rng(seed)
    pools = [edges(kind, rng, alone=len(kinds) == 1) for kind in kinds]
    if len(pools) == 1:
        extra = _spread(kinds[0], rng)
        columns = [np.r_[pools[0], extra]]
    else:
        pairs = list(itertools.product(range(len(pools[0])), range(len(pools[1]))))
        first, second = np.array(pairs).T
        columns = [pools[0][first], pools[1][second]]
        columns += [rng.choice(pool, len(pairs)) for pool in pools[2:]]
    return InputSet(
        kinds=tuple(_HELD_AS.get(kind, kind) for kind in kinds),
        columns=tuple(padded(column) for column in columns),
    )


def _spread(kind: str, rng: np.random.Generator) -> Bits:
    """Return random bit patterns for an instruction with one operand."""
    dtype = unsigned(_HELD_AS.get(kind, kind))
    if kind in _HELD_AS:
        return np.zeros(0, dtype)
    if kind[0] == "i":
        return rng.integers(0, 1 << 8 * dtype.itemsize, 40, dtype)
    if kind.endswith("x2"):
        return rng.integers(0, 1 << 32, 40, dtype)
    random = rng.integers(0, 1 << 8 * dtype.itemsize, 40, dtype)
    return np.concatenate([_normals(kind, 60, rng), random])


def padded(column: Bits) -> Bits:
    """Return rows repeated from the first on until whole blocks are full."""
    rows = -(-len(column) // BLOCK) * BLOCK
    return np.asarray(np.resize(column, (rows, *column.shape[1:])))


def tie_set(*, seed: int) -> InputSet:
    """Return f32 operands whose a*b + c lies within an f64 rounding of halfway between two f32."""
    rng = np.random.default_rng(seed)
    count = 512
    scale = rng.integers(-20, 21, count)
    step = 2.0**-23
    # c has an odd or even last place; the product is half of it, a hair more or less, or just it.
    c = (1 + step * rng.integers(0, 1 << 20, count)) * 2.0**scale
    hair = np.array([0, 1, 2, 3, 5])[rng.integers(0, 5, count)] * step
    a = 1 + hair
    b = (1 - hair) * 2.0**-24 * 2.0**scale
    b[::3] = 2.0**-24 * 2.0 ** scale[::3]
    signs = rng.choice([-1.0, 1.0], (2, count))
    columns = (a * signs[0], b * signs[1], c)
    return InputSet(
        kinds=("f32",) * 3,
        columns=tuple(column.astype(np.float32).view(np.uint32) for column in columns),
    )
