"""``flopwatch tune``: searches tile parameters on this GPU and records search and winner."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ci import origin
from ci.devices.driver import gpu_facts, native
from ci.devices.opening import usable_gpu
from ci.errors import UsageError
from ci.measure.session import worker_count
from ci.measure.sides import tree_digest
from ci.measure.tune import Subject, candidates, median_s, search, time_on_gpu, try_on_gpu
from ci.results import codec
from ci.results.model import SCHEMA_VERSION
from ci.results.store import write_text
from ci.results.tuning import TriedTile, Tuning
from ci.verbs.context import (
    cache_folder,
    checkout_root,
    describe_machine,
    note,
)
from kernels.spec import CudaStage, Ladder
from kernels.suite import load_suite


def run(ladder_name: str, *, suite: str, out: str) -> int:
    """Search the tile of every stage that declares a space; 1 if one has no tile that works.

    Raises:
        NoGpuError: There is no GPU to search on.
        UsageError: There is no such ladder, or nothing in it to search.
    """
    usable_gpu()
    _, loaded = origin.loaded_from()
    folder = checkout_root() / suite
    ladder = _ladder(folder, ladder_name)
    stages = [s for s in ladder.stages if isinstance(s, CudaStage) and s.tile_space]
    if not stages:
        msg = f"{ladder_name}: no stage declares a tile_space (add one to a CudaStage)"
        raise UsageError(msg)
    own = native(gpu_facts().capability, stages[0].architectures)
    machine = describe_machine("cuda", (own,) if own else (), loaded)
    found = []
    for stage in stages:
        started = datetime.now(UTC).isoformat(timespec="seconds")
        tuning = with_winner(
            Tuning(
                schema_version=SCHEMA_VERSION,
                ladder=ladder.name,
                stage=stage.name,
                source_digest=tree_digest(folder),
                started=started,
                machine=machine,
                size=ladder.problem.sizes[0].as_dict(),
                winner=None,
                winner_s=None,
                declared_s=None,
                tried=_search(folder, ladder, stage),
            ),
            stage.tile_for(own or ""),
        )
        path = Path(out) / machine.name / ladder.name / f"{stage.name}.json"
        write_text(path, json.dumps(codec.encode(tuning), indent=1, allow_nan=False) + "\n")
        sys.stdout.write(sentence(tuning) + f"\nrecord  {path}\n")
        found.append(tuning.winner is not None)
    return int(not all(found))


def with_winner(tuning: Tuning, declared: Mapping[str, int]) -> Tuning:
    """Return a search's record with its winner, and the time of the declared tile."""
    timed = [each for each in tuning.tried if each.samples_s]
    own = next((each for each in timed if each.tile == declared), None)
    return replace(
        tuning,
        winner=timed[0].tile if timed else None,
        winner_s=median_s(timed[0]) if timed else None,
        declared_s=median_s(own) if own else None,
    )


def sentence(tuning: Tuning) -> str:
    """Return what a search found, in one line."""
    counts = Counter(each.status.value for each in tuning.tried)
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items())
    name = f"{tuning.ladder}/{tuning.stage}"
    if tuning.winner is None or tuning.winner_s is None:
        return f"{name}: none of {len(tuning.tried)} tiles can be timed ({statuses})"
    tile = " ".join(f"{parameter}={value}" for parameter, value in tuning.winner.items())
    gain = f", the declared tile {tuning.declared_s * 1e3:.3f} ms" if tuning.declared_s else ""
    return f"{name}: {tile} is the fastest, {tuning.winner_s * 1e3:.3f} ms{gain} ({statuses})"


def _ladder(folder: Path, name: str) -> Ladder:
    ladders = {ladder.name: ladder for ladder in load_suite(folder).ladders}
    if name not in ladders:
        msg = f"{name}: {folder} has no such ladder, expected one of {', '.join(ladders)}"
        raise UsageError(msg)
    return ladders[name]


def _search(folder: Path, ladder: Ladder, stage: CudaStage) -> tuple[TriedTile, ...]:
    subject = Subject(suite=folder, cache=cache_folder(), ladder=ladder.name, stage=stage.name)
    return search(
        candidates(stage),
        try_tiles=lambda tiles: try_on_gpu(
            subject, tiles, workers=worker_count("cuda"), told=_tell
        ),
        time_tiles=lambda tiles: time_on_gpu(subject, tiles, told=_tell),
    )


def _tell(tried: TriedTile) -> None:
    tile = " ".join(f"{name}={value}" for name, value in tried.tile.items())
    told = f"{median_s(tried) * 1e3:.3f} ms" if tried.samples_s else tried.reason
    note(f"{tile}  {tried.status.value}  {told}")
