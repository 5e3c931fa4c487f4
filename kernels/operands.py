"""Operands in host memory: layout, leading dimension, guard bands and poison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kernels import dtypes
from kernels.dtypes import DTYPES
from kernels.errors import DeclarationError
from kernels.spec import Layout

Floats = NDArray[np.float32]
Elements = NDArray[np.generic]
Element = TypeVar("Element", bound=np.generic)

POISON_BITS = DTYPES["float32"].poison
"""Bits of a float32 that nobody wrote."""

GUARD_ELEMENTS = 64
"""Elements before and after an operand that nobody may touch."""

_LARGEST_INTEGER = 4
"""Integer contents keep every partial sum of up to 2**19 terms below 2**24, so exact."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """A matrix in memory of its own, with poison wherever it has no element.

    Memory holds a guard band, the elements from the first to the last (with the slack of the
    leading dimension between rows or columns), and another guard band.
    """

    name: str
    """Operand name."""
    shape: tuple[int, int]
    """Rows and columns."""
    layout: Layout
    leading_dimension: int
    """Elements between the starts of two rows (row-major) or columns (column-major)."""
    misalignment: int
    """Elements by which the address of the first element misses what an allocator gives."""
    storage: Elements
    """[guard, buffer, guard], one-dimensional, as ``dtype`` is kept."""
    dtype: str = "float32"
    """Element type, one of ``kernels.dtypes.DTYPES``."""

    def buffer(self) -> Elements:
        """Return the view a kernel may touch, from the first to the last element."""
        return self.storage[GUARD_ELEMENTS:-GUARD_ELEMENTS]

    def logical(self) -> Elements:
        """Return the matrix as a [rows, columns] view of its memory, as ``dtype`` is kept."""
        return read_as(self.buffer(), self.shape, self.layout, self.leading_dimension)

    def is_unwritten(self) -> bool:
        """Return whether the buffer is poison from end to end."""
        dtype = dtypes.DTYPES[self.dtype]
        bits = self.buffer().view(f"u{dtype.storage.itemsize}")
        return bits.size > 0 and bool(bits[0] == dtype.poison and (bits == dtype.poison).all())

    def numbers(self) -> Floats:
        """Return the matrix's elements as numbers, [rows, columns]: a copy, unless float32."""
        values: Floats = dtypes.numbers(self.logical(), self.dtype)  # type: ignore[assignment]
        return values

    def fill(self, values: Elements) -> None:
        """Copy numbers ([rows, columns]) into the matrix, rounded to its type."""
        self.logical()[...] = dtypes.stored(values, self.dtype)

    def first_damage(self, before: Elements, *, may_write: bool) -> str:
        """Return which element changed that must not, in words; empty if none did.

        Args:
            before: A copy of ``storage`` as it was before the launch.
            may_write: Whether the matrix itself may change; its guard bands and slack never may.
        """
        changed = dtypes.bits(self.storage) != dtypes.bits(before)
        if may_write:
            band = changed[GUARD_ELEMENTS:-GUARD_ELEMENTS]
            read_as(band, self.shape, self.layout, self.leading_dimension)[...] = False
        if not changed.any():
            return ""
        first = int(np.argmax(changed))
        value = dtypes.numbers(self.storage[first : first + 1], self.dtype)[0]
        return f"{self._place(first - GUARD_ELEMENTS)} was overwritten with {value!s}"

    def _place(self, index: int) -> str:
        """Return in words where element ``index`` of the buffer lies."""
        owned = self.storage.size - 2 * GUARD_ELEMENTS
        if index < 0:
            return f"the guard band, {-index} before the first element of {self.name},"
        if index >= owned:
            return f"the guard band, {index - owned + 1} past the last element of {self.name},"
        line, position = divmod(index, self.leading_dimension)
        row, column = (line, position) if self.layout is Layout.ROW else (position, line)
        if row < self.shape[0] and column < self.shape[1]:
            return f"{self.name}[{row}, {column}]"
        word = "row" if self.layout is Layout.ROW else "column"
        extent = self.shape[1] if self.layout is Layout.ROW else self.shape[0]
        return f"the slack of {self.name}, {position - extent + 1} past the end of {word} {line},"


def allocate(
    name: str,
    shape: tuple[int, int],
    layout: Layout,
    *,
    leading_dimension: int | None = None,
    misalignment: int = 0,
    dtype: str = "float32",
) -> Matrix:
    """Return a matrix whose memory, elements and all, is poison.

    Args:
        name: Operand name.
        shape: Rows and columns, each at least 1.
        layout: Which axis is contiguous.
        leading_dimension: Elements; None: the contiguous extent, so no slack.
        misalignment: Elements by which the device is to misalign the first element.
        dtype: Element type, one of ``kernels.dtypes.DTYPES``.

    Raises:
        DeclarationError: The leading dimension is below the contiguous extent.
    """
    rows, columns = shape
    lines, extent = (rows, columns) if layout is Layout.ROW else (columns, rows)
    if leading_dimension is None:
        leading_dimension = extent
    if leading_dimension < extent:
        raise DeclarationError(
            f"{name}: leading dimension {leading_dimension} is below the extent {extent} of a "
            f"{layout.value}-major {rows} x {columns} matrix; expected at least {extent}"
        )
    owned = (lines - 1) * leading_dimension + extent
    kept = DTYPES[dtype]
    storage = np.empty(2 * GUARD_ELEMENTS + owned, dtype=kept.storage)
    dtypes.bits(storage)[...] = kept.poison
    return Matrix(
        name=name,
        shape=shape,
        layout=layout,
        leading_dimension=leading_dimension,
        misalignment=misalignment,
        storage=storage,
        dtype=dtype,
    )


def read_as(
    buffer: NDArray[Element], shape: tuple[int, int], layout: Layout, leading_dimension: int
) -> NDArray[Element]:
    """Return a writable [rows, columns] view of one-dimensional memory."""
    size = buffer.itemsize
    strides = (leading_dimension * size, size)
    if layout is Layout.COLUMN:
        strides = (size, leading_dimension * size)
    return np.ndarray(shape, dtype=buffer.dtype, buffer=buffer, strides=strides)


def is_poison(values: Elements, dtype: str = "float32") -> NDArray[np.bool_]:
    """Return which numbers are the poison of their element type, bit for bit."""
    poison = DTYPES[dtype].poison << (16 if dtype == "bfloat16" else 0)
    same: NDArray[np.bool_] = np.ascontiguousarray(values).view(np.uint32) == poison
    return same


def normal(shape: tuple[int, int], seed: tuple[int, ...]) -> Floats:
    """Return zero-mean N(0, 1) contents, float32, the same for the same seed."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def integers(shape: tuple[int, int], seed: tuple[int, ...]) -> Floats:
    """Return small integers as float32, whose products sum exactly in any order.

    None is 0, which would hide what it is multiplied with.

    Source: the exact mode of CUTLASS's unit tests uses the same idea.
    """
    generator = np.random.default_rng(seed)
    magnitudes = generator.integers(1, _LARGEST_INTEGER, shape, endpoint=True)
    signs = generator.integers(0, 1, shape, endpoint=True) * 2 - 1
    return (magnitudes * signs).astype(np.float32)
