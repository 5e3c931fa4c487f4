"""What one golden vector is: an instruction form, what it reads, and how its results compare."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[Any]
"""Bit patterns, unsigned: (n,) u2, u4 or u8, or (n, words) u4 or u8 for a memory cell."""

WIDTHS = {
    "i16": 2, "f16": 2, "bf16": 2,
    "i32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4,
    "i64": 8, "f64": 8,
}  # fmt: skip
"""Kind of a value → bytes. Kinds say how results compare; registers hold untyped bits."""
BLOCK = 128
"""Threads of a block; the length of every input is a multiple of it."""


class Rule(StrEnum):
    """How the simulator's result must agree with the GPU's."""

    BITS = "bits"
    """Every bit."""
    VALUE = "value"
    """Every bit, except that a NaN is a NaN: PTX promises nothing about payloads."""
    NEAR = "near"
    """Within ``Form.ulps`` units in the last place, or ``Form.absolute``."""
    PRODUCT = "product"
    """A tensor-core product of random data: the error bound of its inner length."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """One form of an instruction, and the block of assembly that runs it once per thread."""

    name: str
    """The instruction as PTX writes it, with a word in brackets where one name has several."""
    code: str
    """Assembly; ``%0`` … are the outputs, then the inputs, then an address per memory cell."""
    outputs: tuple[str, ...]
    """Kind of each output."""
    inputs: str
    """Name of its input set."""
    rule: Rule
    ulps: int = 0
    absolute: float = 0.0
    depth: int = 0
    """Inner length of a product."""
    spaces: tuple[str, ...] = ()
    """``global``, ``shared`` or ``read-only`` (global memory that the kernel does not write) for
    each memory cell; a cell is read back as another output."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class InputSet:
    """Values that forms share, one row a thread."""

    kinds: tuple[str, ...]
    """Kind of each register input."""
    columns: tuple[Bits, ...]
    """(n,) each, one per kind."""
    cells: tuple[Bits, ...] = ()
    """(n, words) u4 or u8: first contents of the memory cells, in the order of ``spaces``."""

    def __post_init__(self) -> None:
        """Refuse a set that no launch could use."""
        lengths = {len(column) for column in (*self.columns, *self.cells)}
        if len(lengths) != 1 or lengths.pop() % BLOCK:
            raise ValueError(f"expected equal lengths that are multiples of {BLOCK}")

    @property
    def threads(self) -> int:
        """Return how many threads there are, one a row."""
        return len((*self.columns, *self.cells)[0])


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where recorded results come from."""

    gpu: str
    driver: str
    nvrtc: str
    date: str
    architecture: str
    """Of the machine code, ``sm_90``."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Recording:
    """Forms with their inputs and what a device made of them."""

    origin: Origin
    forms: tuple[Form, ...]
    sets: dict[str, InputSet]
    results: dict[str, tuple[Bits, ...]]
    """Form → (n,) per output, then (n, words) per memory cell."""
    refused: tuple[tuple[str, str], ...]
    """Form and the assembler's words, for forms that it does not take."""


def unsigned(kind: str) -> np.dtype[Any]:
    """Return the type of the bits of a kind."""
    return np.dtype(f"u{WIDTHS[kind]}")
