"""Launches every stage of SGEMM once, for a tool that watches: sanitizer or profiler.

``python -m scripts.stage_launches M N K [--all-layouts]`` on a machine with a GPU. Each operand
is an allocation of its own without guard bands, so that the tool sees the first byte beyond it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import cupy

from ci.check.contents import place_operands
from ci.check.launch import prepare
from ci.check.plan import plain
from ci.check.references import trusted_reference
from ci.devices.cuda import CudaDevice, DeviceArgument, PlacedBuffer
from ci.devices.protocol import Argument, Buffer
from ci.verbs.context import cache_folder
from kernels.build import BuiltStage, build_stage, variants
from kernels.operands import allocate
from kernels.spec import CudaStage, Ladder
from scripts.sgemm_ladder import sgemm


def main() -> int:
    """Launch the stages in ladder order and return 0."""
    size = dict(zip("MNK", (int(word) for word in sys.argv[1:4]), strict=True))
    every_layout = "--all-layouts" in sys.argv
    # The pool would hide a byte beyond an operand inside a larger allocation.
    cupy.cuda.set_allocator(None)
    device = CudaDevice()
    suite, ladder, stages = sgemm()
    labels = [label for label, _ in variants(ladder.problem)]
    for stage in stages:
        built = build_stage(
            suite, ladder, stage, architectures=[device.architecture], cache=cache_folder()
        )
        for label in labels if every_layout else labels[:1]:
            launch(device, built, ladder, stage, size, label)
            print(f"{stage.name} {label}", flush=True)
    return 0


def launch(
    device: CudaDevice,
    built: BuiltStage,
    ladder: Ladder,
    stage: CudaStage,
    size: Mapping[str, int],
    label: str,
) -> None:
    """Launch one instantiation of a stage on random operands and wait for it."""
    problem = ladder.problem
    reference = trusted_reference(problem.reference)
    scalars = {name: levels[0] for name, levels in reference.scalars.items()}
    matrices = place_operands(problem, reference, plain(problem, size, scalars))
    for name, layout in dict(variants(problem))[label].items():
        values = matrices[name].logical().copy()
        matrices[name] = allocate(name, values.shape, layout)
        matrices[name].fill(values)
    prepared = prepare(
        problem, stage, device.tile(built), matrices=matrices, size=size, scalars=scalars
    )
    arguments = [_bare(argument) for argument in prepared.arguments]
    device.finish(device.prepare(built, prepared.variant, prepared.launch, arguments))


def _bare(argument: Argument) -> DeviceArgument:
    if not isinstance(argument, Buffer):
        return argument
    array = cupy.asarray(argument.data)
    cupy.cuda.Device().synchronize()
    return PlacedBuffer(name=argument.name, array=array, memory=array, start=0)


if __name__ == "__main__":
    sys.exit(main())
