"""How operands become the launches of a stage: flags, parameters, column-major results."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ci.check.errors import CheckError
from ci.devices.protocol import Argument, Buffer, StepLaunch
from kernels.build import step_variant
from kernels.operands import Matrix
from kernels.spec import Access, CudaStage, Layout, Operand, Problem, Tile


def output_of(problem: Problem) -> Operand:
    """Return the one operand the problem writes.

    Raises:
        CheckError: There is none, or more than one.
    """
    results = (Access.UPDATE, Access.WRITE)
    written = [operand for operand in problem.operands if operand.access in results]
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
) -> tuple[StepLaunch, ...]:
    """Return the launches of a stage on operands in memory, one a kernel.

    Kernels write a row-major result. A column-major one is launched as its transpose: the same
    memory, read as row-major, is Cᵀ = Bᵀ·Aᵀ, so the entry gets B for its A with the other layout,
    A for its B likewise, and N for its M (``Problem.transposed``). Leading dimensions go along.

    Args:
        problem: The operation.
        stage: Its implementation.
        tile: Tile parameters of the built kernels.
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
    label = ",".join(f"{name}={layout.value}" for name, layout in flags.items())
    entry_size = {axis: size[theirs.get(axis, axis)] for axis in problem.axes}
    known = _arguments(problem, entry_size, matrices, theirs, scalars)
    return tuple(
        StepLaunch(
            variant=step_variant(label, number, step),
            launch=step.launch(entry_size, tile),
            arguments=tuple(_argument(name, known, scalars) for name in step.parameters),
        )
        for number, step in enumerate(stage.steps(problem))
    )


def exchanged_names(problem: Problem) -> dict[str, str]:
    """Return the entry's name → the problem's name in a launch of the transposed problem."""
    pairs = problem.transposed
    return {one: other for pair in pairs for one, other in (pair, pair[::-1])}


def _layout(matrix: Matrix, *, flip: bool) -> Layout:
    if not flip:
        return matrix.layout
    return Layout.ROW if matrix.layout is Layout.COLUMN else Layout.COLUMN


def _arguments(
    problem: Problem,
    entry_size: Mapping[str, int],
    matrices: Mapping[str, Matrix],
    theirs: Mapping[str, str],
    scalars: Mapping[str, float],
) -> dict[str, Argument]:
    """Return the argument of every name a kernel may have; see ``Problem.parameters``."""
    known: dict[str, Argument] = {axis: np.int32(extent) for axis, extent in entry_size.items()}
    for operand in problem.operands:
        matrix = matrices[theirs.get(operand.name, operand.name)]
        data = matrix.buffer()
        known[operand.name] = Buffer(
            name=operand.name,
            data=data,
            misalignment_bytes=matrix.misalignment * data.itemsize,
            scratch=operand.access is Access.SCRATCH,
            initialised=not matrix.is_unwritten(),
        )
        known[f"ld{operand.name.lower()}"] = np.int32(matrix.leading_dimension)
    for name, value in scalars.items():
        known[name] = np.int32(value) if isinstance(value, int) else np.float32(value)
    return known


def _argument(name: str, known: Mapping[str, Argument], scalars: Mapping[str, float]) -> Argument:
    """Return the argument of one parameter of an entry.

    Raises:
        CheckError: It is none of the kinds described at ``Problem.parameters``.
    """
    if name in known:
        return known[name]
    raise CheckError(
        f"parameter {name} is no axis, operand or leading dimension of the problem, and its "
        f"reference knows the scalars {', '.join(scalars)} only (rename it, or add it there)"
    )
