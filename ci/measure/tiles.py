"""What a worker does with one tile of a search: compile, check, time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ci.check.contents import place_operands
from ci.check.launch import prepare
from ci.check.plan import plain
from ci.check.reference import Reference
from ci.check.references import device_reference
from ci.check.run import check_case
from ci.devices.driver import gpu_facts, native
from ci.devices.errors import DeviceError
from ci.devices.opening import open_cuda
from ci.devices.protocol import Buffer
from ci.measure.messages import Answer, TileTimed, TileTried, TimeTiles, TryTile
from ci.results.model import Status
from kernels.build import BuiltStage, build_stage
from kernels.errors import CompileError
from kernels.spec import CudaStage, Ladder, Role, Suite
from kernels.suite import load_suite

if TYPE_CHECKING:
    from ci.devices.cuda import CudaDevice

REPLAYS = 10
_OPERAND_SETS = 2
_SAMPLE_S = 2e-3
"""About how long the graph of a sample runs."""

Say = Callable[[Answer], None]


def answer_try_tile(job: TryTile, say: Say) -> None:
    """Compile the job's tile and check it at every check size."""
    suite, ladder, stage = _find(job.suite, job.ladder, job.stage)
    tiled = with_tile(stage, job.tile)
    try:
        built = _build(suite, ladder, tiled, Path(job.cache))
    except CompileError as error:
        say(TileTried(status=Status.COMPILE_ERROR, reason=str(error).splitlines()[0]))
        return
    device = open_cuda()
    reference = device_reference(ladder.problem.reference, device.multiply)
    for size in ladder.problem.sizes:
        if size.role is Role.CHECK:
            check = check_case(device, built, ladder, tiled, size.as_dict(), reference)
            if check.status is not Status.PASSED:
                say(TileTried(status=check.status, reason=f"{size.label}: {check.reason}"))
                return
    say(TileTried(status=Status.PASSED, reason=""))


def answer_time_tiles(job: TimeTiles, say: Say) -> None:
    """Time each of the job's tiles at the ladder's first size."""
    suite, ladder, stage = _find(job.suite, job.ladder, job.stage)
    device = open_cuda()
    reference = device_reference(ladder.problem.reference, device.multiply)
    for tile in job.tiles:
        tiled = with_tile(stage, tile)
        built = _build(suite, ladder, tiled, Path(job.cache))
        try:
            size = ladder.problem.sizes[0].as_dict()
            samples_s = time_stage(device, built, ladder, tiled, reference, size)
            say(TileTimed(tile=tile, samples_s=samples_s, reason=""))
        except DeviceError as error:
            say(TileTimed(tile=tile, samples_s=(), reason=str(error)))


def with_tile(stage: CudaStage, tile: Mapping[str, int]) -> CudaStage:
    """Return a stage that has this tile on every architecture."""
    return replace(stage, tile=dict(tile), tile_by_arch={})


def _find(folder: str, ladder_name: str, stage_name: str) -> tuple[Suite, Ladder, CudaStage]:
    suite = load_suite(Path(folder))
    ladder = next(ladder for ladder in suite.ladders if ladder.name == ladder_name)
    stage = next(stage for stage in ladder.stages if stage.name == stage_name)
    if not isinstance(stage, CudaStage):
        msg = f"{ladder_name}/{stage_name} is a Python callable and has no tile"
        raise TypeError(msg)
    return suite, ladder, stage


def _build(suite: Suite, ladder: Ladder, stage: CudaStage, cache: Path) -> BuiltStage:
    own = native(gpu_facts().capability, stage.architectures)
    return build_stage(suite, ladder, stage, architectures=[own] if own else [], cache=cache)


def time_stage(
    device: CudaDevice,
    built: BuiltStage,
    ladder: Ladder,
    stage: CudaStage,
    reference: Reference,
    size: Mapping[str, int],
) -> tuple[float, ...]:
    """Return the seconds a launch of some replays, in the first layouts on random operands.

    Good enough to rank tiles on one GPU in one process; the gate times with more care.

    Raises:
        LaunchError: The kernel cannot be launched, or faults.
        StepLimitError: The kernel does not end.
    """
    problem = ladder.problem
    scalars = {name: levels[0] for name, levels in reference.scalars.items()}
    combination = plain(problem, size, scalars)
    steps = prepare(
        problem,
        stage,
        device.tile(built),
        matrices=place_operands(problem, reference, combination),
        size=size,
        scalars=scalars,
    )
    buffers = {a.name: a for step in steps for a in step.arguments if isinstance(a, Buffer)}
    launches = [
        device.prepare_steps(built, steps, {n: device.place(b) for n, b in buffers.items()})
        for _ in range(_OPERAND_SETS)
    ]
    # On its own first, so that a kernel that hangs or faults is noticed here.
    for launch in launches[0].launches:
        device.finish(launch)
    once_s = min(device.replay_times(launches, 1))
    rounds = max(1, round(_SAMPLE_S / once_s / len(launches)))
    return device.replay_times(launches * rounds, REPLAYS)
