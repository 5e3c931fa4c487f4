"""Searches a stage's tile on the GPU at hand: compile and check all, time those that are right."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from ci.measure.errors import SetupError
from ci.measure.messages import SetupFailed, TileTimed, TileTried, TimeTiles, TryTile
from ci.measure.pool import Ended, run_jobs
from ci.results.model import Status
from ci.results.tuning import TriedTile
from kernels.spec import CudaStage

Tile = Mapping[str, int]
Told = Callable[[TriedTile], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """Which stage is searched, and where things are."""

    suite: Path
    cache: Path
    ladder: str
    stage: str


def candidates(stage: CudaStage) -> tuple[dict[str, int], ...]:
    """Return every tile of a stage's space, in the space's order."""
    names = list(stage.tile_space)
    return tuple(
        dict(zip(names, values, strict=True))
        for values in itertools.product(*stage.tile_space.values())
    )


def search(
    tiles: Sequence[Tile],
    *,
    try_tiles: Callable[[Sequence[Tile]], Sequence[TriedTile]],
    time_tiles: Callable[[Sequence[Tile]], Sequence[TriedTile]],
) -> tuple[TriedTile, ...]:
    """Return what became of every tile: the timed ones first, fastest first.

    Args:
        tiles: What to try.
        try_tiles: Compiles and checks tiles.
        time_tiles: Times tiles that are right.
    """
    tried = try_tiles(tiles)
    right = [each.tile for each in tried if each.status is Status.PASSED]
    timed = time_tiles(right) if right else []
    left_out = [each for each in tried if each.status is not Status.PASSED]
    fast = sorted((each for each in timed if each.samples_s), key=median_s)
    return (*fast, *(each for each in timed if not each.samples_s), *left_out)


def median_s(tried: TriedTile) -> float:
    """Return the median of a timed tile's samples (s)."""
    return statistics.median(tried.samples_s)


def try_on_gpu(
    subject: Subject, tiles: Sequence[Tile], *, workers: int, told: Told
) -> list[TriedTile]:
    """Return each tile compiled and checked, in processes of their own.

    Raises:
        SetupError: This machine lacks something.
    """
    jobs = [
        TryTile(
            suite=str(subject.suite),
            cache=str(subject.cache),
            ladder=subject.ladder,
            stage=subject.stage,
            tile=tile,
        )
        for tile in tiles
    ]
    found: dict[int, TriedTile] = {}
    with closing(run_jobs(jobs, workers=workers)) as events:
        for event in events:
            said = event.said
            if isinstance(said, SetupFailed):
                raise SetupError(said.message)
            if isinstance(said, TileTried):
                found[event.job] = TriedTile(
                    tile=tiles[event.job], status=said.status, reason=said.reason
                )
            elif isinstance(said, Ended):
                reason = f"the worker process {said.trouble or 'ended without a result'}"
                status = Status.TIMEOUT if said.timed_out else Status.LAUNCH_ERROR
                ended = TriedTile(tile=tiles[event.job], status=status, reason=reason)
                told(found.setdefault(event.job, ended))
    return [found[index] for index in range(len(tiles))]


def time_on_gpu(subject: Subject, tiles: Sequence[Tile], *, told: Told) -> list[TriedTile]:
    """Return each tile timed, one after the other in one process.

    Raises:
        SetupError: This machine lacks something.
    """
    job = TimeTiles(
        suite=str(subject.suite),
        cache=str(subject.cache),
        ladder=subject.ladder,
        stage=subject.stage,
        tiles=tuple(tiles),
    )
    missing = TriedTile(tile={}, status=Status.LAUNCH_ERROR, reason="the timing ended before it")
    found = [replace(missing, tile=tile) for tile in tiles]
    done = 0
    with closing(run_jobs([job], workers=1)) as events:
        for event in events:
            if isinstance(event.said, SetupFailed):
                raise SetupError(event.said.message)
            if isinstance(event.said, TileTimed):
                found[done] = TriedTile(
                    tile=event.said.tile,
                    status=Status.PASSED if event.said.samples_s else Status.LAUNCH_ERROR,
                    reason=event.said.reason,
                    samples_s=event.said.samples_s,
                )
                told(found[done])
                done += 1
    return found
