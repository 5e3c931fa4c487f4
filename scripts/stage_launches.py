"""Launches every stage once, for a profiler or a sanitizer to look at.

``python -m scripts.stage_launches NUMBER [--all-layouts] [LADDER ...]`` launches each at its
ladder's check size of that number: 0 is even, 1 ragged.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import cupy

from ci.check.contents import place_operands
from ci.check.launch import prepare
from ci.check.plan import plain
from ci.check.references import trusted_reference
from ci.devices.cuda import CudaDevice
from ci.devices.prepared import PlacedBuffer
from ci.devices.protocol import Buffer
from ci.verbs.context import cache_folder
from kernels.build import BuiltStage, build_stage, variants
from kernels.operands import allocate
from kernels.spec import Size
from scripts.suite_ladders import Rung, rungs, suite


def main() -> int:
    """Launch the stages in ladder order and return 0."""
    number, *words = sys.argv[1:]
    names = [word for word in words if not word.startswith("--")]
    # The pool would hide a byte beyond an operand inside a larger allocation.
    cupy.cuda.set_allocator(None)
    device = CudaDevice()
    for rung in rungs(names):
        built = build_stage(
            suite(),
            rung.ladder,
            rung.stage,
            architectures=[device.architecture],
            cache=cache_folder(),
        )
        labels = [label for label, _ in variants(rung.ladder.problem)]
        for label in labels if "--all-layouts" in words else labels[:1]:
            launch(device, built, rung, rung.check_size(int(number)), label)
            print(f"{rung.name} {label}", flush=True)
    return 0


def launch(device: CudaDevice, built: BuiltStage, rung: Rung, size: Size, label: str) -> None:
    """Launch one instantiation of a stage on random operands and wait for it."""
    problem = rung.ladder.problem
    reference = trusted_reference(problem.reference)
    scalars = {name: levels[0] for name, levels in reference.scalars.items()}
    matrices = place_operands(problem, reference, plain(problem, size, scalars))
    for name, layout in dict(variants(problem))[label].items():
        values = matrices[name].numbers().copy()
        matrices[name] = allocate(name, matrices[name].shape, layout, dtype=matrices[name].dtype)
        matrices[name].fill(values)
    steps = prepare(
        problem, rung.stage, device.tile(built), matrices=matrices, size=size, scalars=scalars
    )
    buffers = {a.name: a for step in steps for a in step.arguments if isinstance(a, Buffer)}
    for prepared in device.prepare_steps(built, steps, _bare(buffers)).launches:
        device.finish(prepared)


def _bare(buffers: Mapping[str, Buffer]) -> dict[str, PlacedBuffer]:
    """Return the buffers in allocations of their own, without guard bands."""
    placed = {}
    for name, buffer in buffers.items():
        array = cupy.asarray(buffer.data)
        placed[name] = PlacedBuffer(name=name, array=array, memory=array, start=0)
    cupy.cuda.Device().synchronize()
    return placed


if __name__ == "__main__":
    sys.exit(main())
