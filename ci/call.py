"""A Python call of any stage on NumPy or CuPy arrays, with the launcher's checks before it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import kernels
from ci.arrays import Array, described, on_gpu, sizes
from ci.check.launch import output_of, prepare
from ci.check.references import trusted_reference
from ci.devices.driver import native
from ci.devices.errors import DeviceError, NoGpuError
from ci.devices.opening import open_cuda, usable_gpu
from ci.devices.protocol import Device
from ci.devices.simulator import SimulatorDevice
from ci.errors import UsageError
from ci.verbs.context import cache_folder
from kernels.build import BuiltStage, build_stage
from kernels.dtypes import DTYPES
from kernels.operands import Matrix, allocate
from kernels.spec import Access, CudaStage, Ladder, Operand, Problem, Suite
from kernels.suite import load_suite

DEVICES = ("auto", "cuda", "simulator")


class CallFailedError(DeviceError):
    """The kernel did something wrong on the way: the findings are in the message."""


def call(name: str, *arrays: Array, device: str = "auto", **named: Any) -> Array:  # noqa: ANN401
    """Return the result of a stage on the caller's arrays.

    ``call("sgemm/09_warp_tile", A, B, alpha=2.0)`` returns ``2 A B``, as a NumPy array if A and B
    are, as a CuPy array if they are CuPy's. Arrays come in the order the ladder declares its
    operands, those that are only read; they and all others can be given by name too. An operand
    that is read and written, such as C, may be left out where the operation does not read it; it
    is never changed, the result is a new array. bfloat16 is passed as its bits (uint16).

    Args:
        name: Ladder and stage, as ``flopwatch list`` prints them.
        arrays: NumPy or CuPy arrays, all of one kind, with exactly the declared element types.
            Rows may lie apart where the ladder has a leading dimension, and a matrix may be
            column-major where it has the choice.
        device: ``cuda``; ``simulator``, which takes NumPy arrays only, finds hazards and takes
            seconds for 10**8 operations; or ``auto``: the GPU if there is one.
        named: Operands by name, and scalars such as alpha; those not given have their usual value.

    Raises:
        UsageError: There is no such stage, or an input is one it cannot take; nothing was launched.
        NoGpuError: The GPU was asked for and is not there.
        CallFailedError: The simulator found a hazard.
        DeviceError: The launch failed.
    """
    if device not in DEVICES:
        raise UsageError(f"device {device!r}, expected one of {', '.join(DEVICES)}")
    suite, ladder, stage = _stage(name)
    problem = ladder.problem
    given, scalars = _sorted_out(problem, arrays, named)
    kinds = {on_gpu(array) for array in given.values()}
    if len(kinds) > 1:
        raise UsageError("NumPy and CuPy arrays together, expected one kind (cupy.asarray moves)")
    size = sizes(problem, given)
    refusal = stage.domain(size)
    if refusal is not None:
        raise UsageError(f"{name}: {refusal}")
    matrices = {
        operand.name: described(problem, operand, given[operand.name])
        for operand in problem.operands
        if operand.name in given
    }
    if kinds == {True}:
        if device == "simulator":
            raise UsageError("CuPy arrays on the simulator, expected NumPy arrays (.get() copies)")
        return _in_place(_Call(suite, ladder, stage, size, scalars), given, matrices)
    return _copied(_Call(suite, ladder, stage, size, scalars), given, matrices, device)


class _Call:
    """A stage with sizes and scalars, ready to be given memory."""

    def __init__(
        self,
        suite: Suite,
        ladder: Ladder,
        stage: CudaStage,
        size: Mapping[str, int],
        scalars: Mapping[str, float],
    ) -> None:
        self.suite = suite
        self.ladder = ladder
        self.problem = ladder.problem
        self.stage = stage
        self.size = size
        self.scalars = scalars

    def built(self, device: Device) -> BuiltStage:
        """Return the stage compiled for a device."""
        architectures: tuple[str, ...] = ()
        if device.name == "cuda":
            own = native(usable_gpu().capability, self.stage.architectures)
            architectures = (own,) if own else ()
        return build_stage(
            self.suite, self.ladder, self.stage, architectures=architectures, cache=cache_folder()
        )


def _stage(name: str) -> tuple[Suite, Ladder, CudaStage]:
    suite = _suite()
    known = {f"{ladder.name}/{each.name}": (ladder, each) for ladder in suite.ladders
             for each in ladder.stages}  # fmt: skip
    ladder, stage = known.get(name, (None, None))
    if ladder is None or not isinstance(stage, CudaStage):
        expected = ", ".join(known)
        raise UsageError(f"there is no stage {name!r}, expected one of {expected}")
    return suite, ladder, stage


@cache
def _suite() -> Suite:
    return load_suite(Path(kernels.__file__).parent)


def _sorted_out(
    problem: Problem, arrays: tuple[Array, ...], named: Mapping[str, Any]
) -> tuple[dict[str, Array], dict[str, float]]:
    """Return the operands and the scalars of a call by name."""
    reference = trusted_reference(problem.reference)
    read = [operand.name for operand in problem.operands if operand.access is Access.READ]
    if len(arrays) > len(read):
        msg = f"{len(arrays)} arrays, expected at most {len(read)}: {', '.join(read)}"
        raise UsageError(msg)
    given: dict[str, Array] = dict(zip(read, arrays, strict=False))
    scalars = {name: levels[0] for name, levels in reference.scalars.items()}
    inputs = {o.name for o in problem.operands if o.access in (Access.READ, Access.UPDATE)}
    for name, value in named.items():
        if name in given:
            raise UsageError(f"{name} is given twice")
        if name in inputs:
            given[name] = value
        elif name in scalars:
            scalars[name] = type(scalars[name])(value)
        else:
            expected = ", ".join([*sorted(inputs), *scalars])
            raise UsageError(f"{problem.name} has no {name!r}, expected {expected}")
    unread = reference.unread(scalars)
    missing = sorted(name for name in inputs if name not in given and name not in unread)
    if missing:
        raise UsageError(f"{missing[0]} is missing, and is read for these scalars")
    strange = [n for n, array in given.items() if not hasattr(array, "strides")]
    if strange:
        kind = type(given[strange[0]]).__name__
        raise UsageError(f"{strange[0]} is a {kind}, expected a NumPy or CuPy array")
    return given, scalars


def _copied(
    the: _Call, given: Mapping[str, Array], matrices: Mapping[str, Matrix], wanted: str
) -> Array:
    """Run on host arrays: they are copied into memory of their own, and the result out of it."""
    device = _device(wanted)
    placed = {o.name: _placed(the, o, given, matrices) for o in the.problem.operands}
    built = the.built(device)
    steps = prepare(
        the.problem,
        the.stage,
        device.tile(built),
        matrices=placed,
        size=the.size,
        scalars=the.scalars,
    )
    execution = device.run(built, steps, count=False)
    if execution.findings:
        first = execution.findings[0]
        place = f"{first.file}:{first.line}"
        more = f", and {len(execution.findings) - 1} more" if execution.findings[1:] else ""
        raise CallFailedError(f"{first.kind} at {place}: {first.example}{more}")
    output = output_of(the.problem)
    result: Array = placed[output.name].logical().reshape(output.extents(the.size)).copy()
    return result


def _in_place(the: _Call, given: Mapping[str, Array], matrices: Mapping[str, Matrix]) -> Array:
    """Run on GPU arrays where they are; only what is written gets memory of its own."""
    device = _gpu()
    built = the.built(device)
    arrays, shapes = dict(given), dict(matrices)
    for operand in the.problem.operands:
        if operand.access is not Access.READ or operand.name not in given:
            made = device.empty(operand.extents(the.size), DTYPES[operand.dtype].storage)
            if operand.name in given:
                made[...] = given[operand.name]
            arrays[operand.name] = made
            shapes[operand.name] = described(the.problem, operand, made)
    steps = prepare(
        the.problem,
        the.stage,
        device.tile(built),
        matrices=shapes,
        size=the.size,
        scalars=the.scalars,
    )
    device.run_in_place(built, steps, arrays)
    return arrays[output_of(the.problem).name]


def _placed(
    the: _Call, operand: Operand, given: Mapping[str, Array], matrices: Mapping[str, Matrix]
) -> Matrix:
    """Return an operand in memory of its own, laid out as the caller's array is."""
    # The result is a new array, row-major and without slack.
    like = matrices.get(operand.name) if operand.access is Access.READ else None
    matrix = allocate(
        operand.name,
        operand.shape(the.size),
        like.layout if like else operand.layouts[0],
        leading_dimension=like.leading_dimension if like else None,
        misalignment=like.misalignment if like else 0,
        dtype=operand.dtype,
    )
    if operand.name in given:
        kept = np.asarray(given[operand.name]).view(DTYPES[operand.dtype].storage)
        matrix.logical()[...] = kept.reshape(matrix.shape)
    return matrix


def _device(wanted: str) -> Device:
    if wanted != "simulator":
        try:
            gpu: Device = _gpu()
        except NoGpuError:
            if wanted == "cuda":
                raise
        else:
            return gpu
    return SimulatorDevice({})


@cache
def _gpu() -> Any:  # noqa: ANN401
    """Return the GPU, opened once a process; its class is known where CuPy is."""
    return open_cuda()
