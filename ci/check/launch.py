"""How operands become the arguments of a launch: layout flags, parameters, column-major results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ci.check.errors import CheckError
from ci.devices.protocol import Argument, Buffer
from kernels.operands import Matrix
from kernels.spec import Access, CudaStage, Launch, Layout, Operand, Problem, Tile


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """Everything a device is told about one launch."""

    variant: str
    """Which instantiation, such as ``A=row,B=column``."""
    launch: Launch
    arguments: tuple[Argument, ...]


def output_of(problem: Problem) -> Operand:
    """Return the one operand the problem writes.

    Raises:
        CheckError: There is none, or more than one.
    """
    written = [operand for operand in problem.operands if operand.access is not Access.READ]
    if len(written) != 1:
        raise CheckError(f"{problem.name}: writes {len(written)} operands, expected one")
    return written[0]


def prepare(
    problem: Problem,
    stage: CudaStage,
    tile: Tile,
    *,
    matrices: Mapping[str, Matrix],
    size: Mapping[str, int],
    scalars: Mapping[str, float],
) -> Prepared:
    """Return the launch of a stage on operands in memory.

    Kernels write a row-major result. A column-major one is launched as its transpose: the same
    memory, read as row-major, is Cᵀ = Bᵀ·Aᵀ, so the entry gets B for its A with the other layout,
    A for its B likewise, and N for its M (``Problem.transposed``). Leading dimensions go along.

    Args:
        problem: The operation.
        stage: Its implementation.
        tile: Tile parameters of the built kernel.
        matrices: Operand → memory.
        size: Axis → extent.
        scalars: Scalar parameter → value.

    Raises:
        CheckError: The result's layout has no form the entry can be launched in, or a parameter
            has no meaning.
    """
    output = output_of(problem)
    exchanged = matrices[output.name].layout is not output.layouts[0]
    if exchanged and not problem.transposed:
        raise CheckError(
            f"{problem.name}: {output.name} is {matrices[output.name].layout.value}-major, but "
            "the problem declares no transposed form (Problem.transposed)"
        )
    theirs = exchanged_names(problem) if exchanged else {}
    flags = {
        operand.name: _layout(matrices[theirs.get(operand.name, operand.name)], flip=exchanged)
        for operand in problem.flagged_operands()
    }
    entry_size = {axis: size[theirs.get(axis, axis)] for axis in problem.axes}
    return Prepared(
        variant=",".join(f"{name}={layout.value}" for name, layout in flags.items()),
        launch=stage.launch(entry_size, tile),
        arguments=tuple(
            _argument(name, entry_size, matrices, theirs, scalars) for name in problem.parameters
        ),
    )


def exchanged_names(problem: Problem) -> dict[str, str]:
    """Return the entry's name → the problem's name in a launch of the transposed problem."""
    pairs = problem.transposed
    return {one: other for pair in pairs for one, other in (pair, pair[::-1])}


def _layout(matrix: Matrix, *, flip: bool) -> Layout:
    if not flip:
        return matrix.layout
    return Layout.ROW if matrix.layout is Layout.COLUMN else Layout.COLUMN


def _argument(
    parameter: str,
    entry_size: Mapping[str, int],
    matrices: Mapping[str, Matrix],
    theirs: Mapping[str, str],
    scalars: Mapping[str, float],
) -> Argument:
    """Return the argument of one parameter of the entry; see ``Problem.parameters``.

    Raises:
        CheckError: It is none of the kinds described there.
    """
    if parameter in entry_size:
        return np.int32(entry_size[parameter])
    if parameter in matrices:
        matrix = matrices[theirs.get(parameter, parameter)]
        data = matrix.buffer()
        return Buffer(
            name=parameter, data=data, misalignment_bytes=matrix.misalignment * data.itemsize
        )
    for name in matrices:
        if parameter == f"ld{name.lower()}":
            return np.int32(matrices[theirs.get(name, name)].leading_dimension)
    if parameter in scalars:
        return np.float32(scalars[parameter])
    raise CheckError(
        f"parameter {parameter} is no axis, operand or leading dimension of the problem, and its "
        f"reference knows the scalars {', '.join(scalars)} only (rename it, or add it there)"
    )
