"""A product in any layouts reaches BLAS, which knows column-major only, as the right product."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.devices.cublas import Product, column_major
from kernels.operands import Floats, Matrix, allocate, integers, read_as
from kernels.spec import Layout

SHAPES = {"A": ("M", "K"), "B": ("K", "N"), "C": ("M", "N")}


def blas(product: Product, matrices: dict[str, Matrix]) -> None:
    """Do what the manual of cublasSgemm says, on memory alone."""
    first, second = product.factors
    lda, ldb, ldc = product.leading_dimensions
    a = _factor(_memory(matrices[first]), product.transposes[0], product.m, product.k, lda)
    b = _factor(_memory(matrices[second]), product.transposes[1], product.k, product.n, ldb)
    c = read_as(matrices["C"].buffer(), (product.m, product.n), Layout.COLUMN, ldc)
    c[...] = a @ b


def _memory(matrix: Matrix) -> Floats:
    return matrix.buffer().view(np.float32)


def _factor(memory: Floats, transposed: bool, rows: int, columns: int, ld: int) -> Floats:  # noqa: FBT001
    shape = (columns, rows) if transposed else (rows, columns)
    held = read_as(memory, shape, Layout.COLUMN, ld)
    return held.T if transposed else held


@given(
    extents=st.tuples(*[st.integers(1, 9)] * 3),
    layouts=st.tuples(*[st.sampled_from(Layout)] * 3),
    slack=st.tuples(*[st.integers(0, 3)] * 3),
)
def test_every_layout_and_leading_dimension_gives_the_product(
    extents: tuple[int, int, int],
    layouts: tuple[Layout, Layout, Layout],
    slack: tuple[int, int, int],
) -> None:
    size = dict(zip("MNK", extents, strict=True))
    matrices = {}
    for index, (name, axes) in enumerate(SHAPES.items()):
        rows, columns = (size[axis] for axis in axes)
        extent = columns if layouts[index] is Layout.ROW else rows
        matrices[name] = allocate(
            name, (rows, columns), layouts[index], leading_dimension=extent + slack[index]
        )
        if name != "C":
            matrices[name].fill(integers((rows, columns), (index,)))
    before = matrices["C"].storage.copy()
    product = column_major(
        size,
        {name: matrix.layout for name, matrix in matrices.items()},
        {name: matrix.leading_dimension for name, matrix in matrices.items()},
    )
    blas(product, matrices)
    want = matrices["A"].numbers() @ matrices["B"].numbers()
    assert np.array_equal(matrices["C"].logical(), want)
    assert not matrices["C"].first_damage(before, may_write=True)


@pytest.mark.parametrize("layouts", list(itertools.product(Layout, repeat=3)))
def test_a_leading_dimension_is_never_below_the_rows_blas_sees(
    layouts: tuple[Layout, Layout, Layout],
) -> None:
    size = {"M": 5, "N": 7, "K": 3}
    by_name = dict(zip("ABC", layouts, strict=True))
    ld = {
        name: size[axes[1] if by_name[name] is Layout.ROW else axes[0]]
        for name, axes in SHAPES.items()
    }
    product = column_major(size, by_name, ld)
    lda, ldb, ldc = product.leading_dimensions
    assert lda == (product.k if product.transposes[0] else product.m)
    assert ldb == (product.n if product.transposes[1] else product.k)
    assert ldc == product.m
