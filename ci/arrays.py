"""What an array of the caller's must be to serve as an operand, and how it becomes one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ci.errors import UsageError
from kernels.dtypes import DTYPES
from kernels.operands import GUARD_ELEMENTS, Matrix
from kernels.spec import Layout, Operand, Problem

_MOST = 2**31 - 1
"""Kernels take extents as int."""

Array = Any
"""A NumPy or CuPy array: they answer the same questions."""


def on_gpu(array: Array) -> bool:
    """Return whether an array is CuPy's."""
    return type(array).__module__.partition(".")[0] == "cupy"


def sizes(problem: Problem, given: Mapping[str, Array]) -> dict[str, int]:
    """Return the extent of every axis, from the shapes of the arrays.

    Raises:
        UsageError: A number of axes, an extent or an element type is not as declared.
    """
    size: dict[str, int] = {}
    told_by: dict[str, str] = {}
    for operand in problem.operands:
        if operand.name not in given:
            continue
        array = given[operand.name]
        _require_dtype(operand, array)
        if array.ndim != len(operand.axes):
            axes = ", ".join(operand.axes)
            msg = f"{operand.name} has {array.ndim} axes, expected {len(operand.axes)}: [{axes}]"
            raise UsageError(f"{msg} (reshape it)")
        for axis, extent in zip(operand.axes, array.shape, strict=True):
            if not 1 <= extent <= _MOST:
                raise UsageError(f"{operand.name}: {axis} = {extent}, expected 1 to {_MOST}")
            if size.setdefault(axis, extent) != extent:
                expected = f"expected {size[axis]} as {told_by[axis]} has"
                raise UsageError(f"{operand.name}: {axis} = {extent}, {expected}")
            told_by.setdefault(axis, operand.name)
    missing = [axis for axis in problem.axes if axis not in size]
    if missing:
        raise UsageError(f"no array tells the extent of {missing[0]} (pass one that has it)")
    for operand in problem.operands:
        if operand.name in given and given[operand.name].shape != operand.extents(size):
            shape = tuple(given[operand.name].shape)
            msg = f"{operand.name} has shape {shape}, expected {operand.extents(size)}"
            raise UsageError(f"{msg} = [{', '.join(operand.axes)}]")
    return {axis: size[axis] for axis in problem.axes}


def _require_dtype(operand: Operand, array: Array) -> None:
    # NumPy has no bfloat16: its bits are taken, or another library's type of that name.
    got = str(array.dtype)
    accepted = {operand.dtype, str(DTYPES[operand.dtype].storage)}
    if got not in accepted:
        expected = " or ".join(sorted(accepted))
        msg = f"{operand.name} is {got}, expected {expected}"
        raise UsageError(f"{msg} (nothing is converted silently: use .astype)")


def described(problem: Problem, operand: Operand, array: Array) -> Matrix:
    """Return an array's layout, leading dimension and misalignment as a matrix without memory.

    Raises:
        UsageError: Kernels cannot walk through it, or its address is not aligned enough.
    """
    itemsize = int(array.dtype.itemsize)
    layout, pitch = _walk(problem, operand, array, itemsize)
    address = int(array.data.ptr if on_gpu(array) else array.ctypes.data)
    needed = operand.alignment * itemsize
    if address % needed:
        msg = f"{operand.name} begins {address % needed} bytes past a multiple of {needed}"
        raise UsageError(f"{msg}, which its kernels need (copy it: .copy())")
    *outer, columns = array.shape
    return Matrix(
        name=operand.name,
        shape=(math.prod(outer), columns),
        layout=layout,
        leading_dimension=pitch,
        misalignment=address % 256 // itemsize,
        storage=np.empty(2 * GUARD_ELEMENTS, dtype=DTYPES[operand.dtype].storage),
        dtype=operand.dtype,
    )


def _walk(problem: Problem, operand: Operand, array: Array, itemsize: int) -> tuple[Layout, int]:
    """Return which axis of an array is contiguous, and the elements between its lines."""
    contiguous = array.flags.c_contiguous
    if array.ndim != 2 or not problem.has_leading_dimension(operand):  # noqa: PLR2004
        if not contiguous:
            raise _unwalkable(operand, array, "contiguous, the last axis fastest")
        return Layout.ROW, int(array.shape[-1])
    rows, columns = array.shape
    down, across = (int(stride) for stride in array.strides)
    # The stride of an axis of one element says nothing.
    if (across == itemsize or columns == 1) and _steps(down, itemsize, columns, lines=rows):
        return Layout.ROW, max(down // itemsize, columns) if rows > 1 else columns
    by_column = Layout.COLUMN in operand.layouts and (down == itemsize or rows == 1)
    if by_column and _steps(across, itemsize, rows, lines=columns):
        return Layout.COLUMN, max(across // itemsize, rows) if columns > 1 else rows
    layouts = " or ".join(f"{layout.value}-major" for layout in operand.layouts)
    raise _unwalkable(operand, array, f"{layouts}, one axis without steps, the other forward")


def _steps(stride: int, itemsize: int, extent: int, *, lines: int) -> bool:
    """Return whether lines of ``extent`` elements lie one after the other at this stride."""
    return lines == 1 or (stride % itemsize == 0 and stride >= extent * itemsize)


def _unwalkable(operand: Operand, array: Array, expected: str) -> UsageError:
    msg = f"{operand.name} has strides {tuple(array.strides)} bytes for shape {tuple(array.shape)}"
    return UsageError(f"{msg}, expected {expected} (numpy.ascontiguousarray makes such a copy)")
