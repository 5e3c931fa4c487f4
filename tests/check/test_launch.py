"""Arguments of a launch: types, leading dimensions, and column-major results as transposes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from ci.check.errors import CheckError
from ci.check.launch import prepare
from ci.devices.protocol import Buffer, StepLaunch
from kernels.operands import allocate
from kernels.spec import Access, Layout
from tests.check.numpy_gemm import PROBLEM, STAGE

SIZE = {"M": 20, "N": 9, "K": 5}
ROW, COLUMN = Layout.ROW, Layout.COLUMN
MATRICES = {
    "A": allocate("A", (20, 5), ROW, leading_dimension=7),
    "B": allocate("B", (5, 9), COLUMN, leading_dimension=6),
    "C": allocate("C", (20, 9), ROW, leading_dimension=10, misalignment=1),
}


def prepared(c_layout: Layout = ROW) -> StepLaunch:
    c = allocate("C", (20, 9), c_layout, leading_dimension=21, misalignment=1)
    (step,) = prepare(
        PROBLEM,
        STAGE,
        STAGE.tile,
        matrices=MATRICES | {"C": c},
        size=SIZE,
        scalars={"alpha": 2.0, "beta": 0.5},
    )
    return step


def named(launch: StepLaunch) -> Mapping[str, object]:
    return dict(zip(PROBLEM.parameters, launch.arguments, strict=True))


def test_scalars_have_exactly_the_parameters_types() -> None:
    arguments = named(prepared())
    assert isinstance(arguments["M"], np.int32)
    assert isinstance(arguments["lda"], np.int32)
    assert isinstance(arguments["alpha"], np.float32)
    assert [arguments[name] for name in ("M", "N", "K", "lda", "ldb", "ldc")] == [
        20, 9, 5, 7, 6, 21,
    ]  # fmt: skip


def test_a_buffer_is_the_operands_memory_with_its_misalignment_in_bytes() -> None:
    c = named(prepared())["C"]
    assert isinstance(c, Buffer)
    assert (c.name, c.misalignment_bytes, c.data.size) == ("C", 4, 19 * 21 + 9)


def test_a_row_major_result_is_launched_as_it_is() -> None:
    launch = prepared()
    assert launch.variant == "A=row,B=column"
    assert launch.launch.grid == (2, 2, 1)


def test_a_column_major_result_is_launched_as_its_transpose() -> None:
    launch = prepared(COLUMN)
    arguments = named(launch)
    assert launch.variant == "A=row,B=column"
    assert launch.launch.grid == (3, 1, 1)
    assert [arguments[name] for name in ("M", "N", "K", "lda", "ldb", "ldc")] == [
        9, 20, 5, 6, 7, 21,
    ]  # fmt: skip
    a, b = arguments["A"], arguments["B"]
    assert isinstance(a, Buffer)
    assert isinstance(b, Buffer)
    assert np.shares_memory(a.data, MATRICES["B"].storage)
    assert np.shares_memory(b.data, MATRICES["A"].storage)


def test_a_column_major_result_without_a_transposed_form_is_refused() -> None:
    c = allocate("C", (20, 9), COLUMN)
    with pytest.raises(CheckError, match="C is column-major, but the problem declares no transp"):
        prepare(
            replace(PROBLEM, transposed=()),
            STAGE,
            STAGE.tile,
            matrices=MATRICES | {"C": c},
            size=SIZE,
            scalars={"alpha": 2.0, "beta": 0.5},
        )


def test_a_parameter_without_a_meaning_is_refused() -> None:
    with pytest.raises(CheckError, match="parameter beta is no axis, operand or leading dim"):
        prepare(PROBLEM, STAGE, STAGE.tile, matrices=MATRICES, size=SIZE, scalars={"alpha": 2.0})


def test_a_problem_that_writes_two_operands_is_refused() -> None:
    a, b, c = PROBLEM.operands
    problem = replace(PROBLEM, operands=(replace(a, access=Access.WRITE), b, c))
    with pytest.raises(CheckError, match="writes 2 operands, expected one"):
        prepare(problem, STAGE, STAGE.tile, matrices=MATRICES, size=SIZE, scalars={})
