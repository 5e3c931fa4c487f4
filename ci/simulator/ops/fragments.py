"""How tensor-core instructions spread matrices over the registers of a warp.

A fragment is a list of tiles, which all spread over the 32 lanes alike: with lane = 4 g + t,
element e of a tile that begins at (row, column) lies at row + g, column + per * t + e, or with the
two directions exchanged.

Source: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions", draws the layout of mma and
leaves that of wmma open: ``_TILES`` is what NVRTC's machine code for sm_80 and sm_90 does;
``scripts/wmma_layout.py`` reads it off that code, and off a GPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import F2, F4, F8, I4, U4, U8, UnsupportedError
from ci.simulator.lanes import WARP

if TYPE_CHECKING:
    from ci.simulator.forms import Array

DType = np.dtype[Any]
Corner = tuple[int, int]

_SQUARE = ((0, 0), (8, 0), (0, 8), (8, 8))
_DOWN = ((0, 0), (8, 0), (16, 0), (24, 0))
_ACROSS = ((0, 0), (0, 8), (0, 16), (0, 24))
_TILES: dict[tuple[str, str, str], tuple[Corner, ...]] = {
    ("a", "half", "m16n16k16"): _SQUARE,
    ("a", "half", "m32n8k16"): (*_SQUARE, (16, 0), (24, 0), (16, 8), (24, 8)),
    ("a", "half", "m8n32k16"): ((0, 0), (0, 8)),
    ("b", "half", "m16n16k16"): _SQUARE,
    ("b", "half", "m32n8k16"): ((0, 0), (8, 0)),
    ("b", "half", "m8n32k16"): (
        (0, 0), (0, 8), (8, 0), (8, 8), (0, 16), (0, 24), (8, 16), (8, 24),
    ),
    ("a", "byte", "m16n16k16"): _DOWN[:2],
    ("a", "byte", "m32n8k16"): _DOWN,
    ("a", "byte", "m8n32k16"): _DOWN[:1],
    ("b", "byte", "m16n16k16"): _ACROSS[:2],
    ("b", "byte", "m32n8k16"): _ACROSS[:1],
    ("b", "byte", "m8n32k16"): _ACROSS,
    ("a", "tf32", "m16n16k8"): ((0, 0), (8, 0), (0, 4), (8, 4)),
    ("b", "tf32", "m16n16k8"): ((0, 0), (4, 0), (0, 8), (4, 8)),
    ("a", "f64", "m8n8k4"): ((0, 0),),
    ("b", "f64", "m8n8k4"): ((0, 0),),
    ("c", "any", "m16n16k16"): _SQUARE,
    ("c", "any", "m16n16k8"): _SQUARE,
    ("c", "any", "m32n8k16"): _DOWN,
    ("c", "any", "m8n32k16"): _ACROSS,
    ("c", "any", "m8n8k4"): ((0, 0),),
}  # fmt: skip
"""Operand, family of types, shape → where in the matrix its tiles begin, in register order."""

_TURNED = {("c", "m8n32k16")}
"""Accumulators whose lanes run down a column as those of b do, not along a row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """An element type."""

    family: str
    stored: DType
    """Raw bits of an element in memory."""
    value: DType
    """In what it is multiplied or added."""
    per: int
    """Elements of a tile that a lane holds, when it is an operand a or b."""


def _kind(family: str, stored: str, value: DType, per: int) -> Kind:
    return Kind(family=family, stored=np.dtype(stored), value=value, per=per)


FACTORS = {
    "f16": _kind("half", "u2", F4, 2),
    "bf16": _kind("half", "u2", F4, 2),
    "s8": _kind("byte", "u1", I4, 4),
    "u8": _kind("byte", "u1", I4, 4),
    "tf32": _kind("tf32", "u4", F4, 1),
    "f64": _kind("f64", "u8", F8, 1),
}
"""Element types of the operands a and b."""
SUMS = {
    "f16": _kind("any", "u2", F2, 2),
    "f32": _kind("any", "u4", F4, 2),
    "s32": _kind("any", "u4", I4, 2),
    "f64": _kind("any", "u8", F8, 2),
}
"""Element types of accumulators."""
_COPIES = {"f16": 8}
"""Registers of an operand a or b that has fewer tiles: the tiles repeat."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fragment:
    """How a matrix lies in the registers of a warp."""

    rows: int
    columns: int
    tiles: tuple[Corner, ...]
    per: int
    """Elements of a tile that a lane holds."""
    along_rows: bool
    """Whether a lane's elements lie side by side in a row."""
    stored: DType
    registers: int
    """Of a lane, each as wide as a word of ``words``."""

    @property
    def words(self) -> DType:
        """Return the raw type of a register."""
        return U8 if self.stored == U8 else U4

    def places(self) -> Array:
        """Return which element of the matrix each lane holds, (32, elements), row by row."""
        lane, element = np.arange(WARP)[:, None], np.arange(self.per)
        across, along = lane // 4 + 0 * element, lane % 4 * self.per + element
        down, right = (across, along) if self.along_rows else (along, across)
        tiles = [(r + down) * self.columns + c + right for r, c in self.tiles]
        held = self.registers * self.words.itemsize // self.stored.itemsize
        return np.tile(np.concatenate(tiles, axis=1), held // (len(tiles) * self.per))


@cache
def fragment(use: str, kind: str, shape: str) -> Fragment:
    """Return the layout of an operand.

    Args:
        use: ``a``, ``b``, or ``c`` for accumulators.
        kind: PTX type of its elements.
        shape: Such as ``m16n16k16``.

    Raises:
        UnsupportedError: There is none that is emulated.
    """
    kinds = SUMS if use == "c" else FACTORS
    if kind not in kinds or (use, kinds[kind].family, shape) not in _TILES:
        raise UnsupportedError(f"{use} {kind} {shape}")
    element = kinds[kind]
    tiles = _TILES[use, element.family, shape]
    m, n, k = _extents(shape)
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[use]
    held = len(tiles) * element.per * element.stored.itemsize // (8 if kind == "f64" else 4)
    return Fragment(
        rows=rows,
        columns=columns,
        tiles=tiles,
        per=element.per,
        along_rows=(use != "b") != ((use, shape) in _TURNED),
        stored=element.stored,
        registers=held if use == "c" else _COPIES.get(kind, held),
    )


@cache
def mma_fragment(use: str, kind: str, rows: int, depth: int) -> Fragment:
    """Return the layout of an operand of mma.sync, whose products have eight columns.

    Args:
        use: ``a``, ``b`` or ``c``.
        kind: PTX type of its elements.
        rows: 8 or 16.
        depth: Inner length.
    """
    element = (SUMS if use == "c" else FACTORS)[kind]
    down, along = range(0, rows, 8), range(0, depth, 4 * element.per)
    tiles = {
        "a": [(r, k) for k in along for r in down],
        "b": [(k, 0) for k in along],
        "c": [(r, 0) for r in down],
    }[use]
    word = 8 if kind == "f64" else 4
    extents = {"a": (rows, depth), "b": (depth, 8), "c": (rows, 8)}[use]
    return Fragment(
        rows=extents[0],
        columns=extents[1],
        tiles=tuple(tiles),
        per=element.per,
        along_rows=use != "b",
        stored=element.stored,
        registers=len(tiles) * element.per * element.stored.itemsize // word,
    )


def _extents(shape: str) -> tuple[int, int, int]:
    found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", shape)
    if not found:
        raise UnsupportedError(shape)
    return int(found[1]), int(found[2]), int(found[3])


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossing:
    """How a fragment crosses memory in one of the two orders of its matrix."""

    fragment: Fragment
    row_major: bool

    @property
    def straight(self) -> bool:
        """Whether a lane's elements of a tile lie side by side in memory."""
        return self.fragment.along_rows == self.row_major

    @property
    def exchanged(self) -> bool:
        """Whether lanes exchange what they read by the word."""
        return not self.straight and self.fragment.stored.itemsize == 2

    @property
    def whole(self) -> bool:
        """Whether a lane reads its elements of a tile with one access."""
        return self.straight or self.exchanged

    def index(self, corner: Corner, element: int, stride: Array) -> Array:
        """Return the element of memory that each lane of a warp (32) accesses first."""
        lane = np.arange(WARP)
        line, start = corner if self.row_major else corner[::-1]
        across, along = lane // 4, lane % 4 * self.fragment.per + element
        if self.whole:
            return np.asarray((line + across) * stride + start + along)
        return np.asarray((line + along) * stride + start + across)
