"""Counts every stage with the simulator and with Nsight Compute, for a comparison.

``python -m scripts.ncu_stages predict FOLDER`` simulates every stage at both check sizes of its
ladder, anywhere, and writes ``predicted-N.json``, to be committed before ``profile FOLDER`` runs
ncu on a machine with a GPU and writes ``profiled-N.csv``; ``recount FOLDER`` simulates again and
writes ``recounted-N.json``. ``scripts.ncu_table`` makes a page of them.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

from ci.check.run import check_case
from ci.measure.simulating import simulator_for
from ci.verbs.context import cache_folder
from kernels.build import WIDTHS_ARCH, build_stage
from scripts.suite_ladders import rungs, suite

SIZES = (0, 1)
"""Check sizes of each ladder: the even one and the ragged one."""
METRICS = {
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_load_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_store_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}
"""Counter → the profiler's name for it."""

Counts = Mapping[str, int]


def main() -> int:
    """Predict, profile or recount."""
    action, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if action == "profile":
        return max(profile(folder / f"profiled-{number}.csv", number) for number in SIZES)
    return count(folder, {"predict": "predicted", "recount": "recounted"}[action])


def count(folder: Path, kind: str) -> int:
    """Write the simulator's counters of every stage to ``kind-N.json``."""
    names = [rung.name for rung in rungs()]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for number in SIZES:
            found = list(pool.map(simulate, range(len(names)), [number] * len(names)))
            document = json.dumps(dict(zip(names, found, strict=True)), indent=1)
            (folder / f"{kind}-{number}.json").write_text(document + "\n", encoding="utf-8")
    return 0


def profile(path: Path, number: int) -> int:
    """Write the profiler's table of one launch a stage and return its exit code."""
    entries = {step.entry for rung in rungs() for step in rung.stage.steps(rung.ladder.problem)}
    done = subprocess.run(
        [
            "ncu",
            "--csv",
            "--clock-control=none",
            "--target-processes=all",
            f"--kernel-name=regex:^({'|'.join(sorted(entries))})$",
            f"--metrics={','.join(METRICS.values())}",
            sys.executable,
            "-m",
            "scripts.stage_launches",
            str(number),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    table = done.stdout[max(0, done.stdout.find('"ID",')) :]
    path.write_text(table, encoding="utf-8")
    print(f"{path}: {len(read(table))} launches")
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-2000:])
    return done.returncode


def read(table: str) -> list[Counts]:
    """Return the counters of each launch in a profiler's table, in launch order."""
    counter_of = {metric: counter for counter, metric in METRICS.items()}
    launches: dict[int, dict[str, int]] = {}
    for row in csv.DictReader(io.StringIO(table)):
        counter = counter_of.get(row.get("Metric Name") or "")
        if counter:
            value = int(row["Metric Value"].replace(",", ""))
            launches.setdefault(int(row["ID"]), {})[counter] = value
    return [launches[number] for number in sorted(launches)]


def simulate(index: int, number: int) -> Counts:
    """Return the simulator's counters of a stage, all its kernels together."""
    rung = rungs()[index]
    cache = cache_folder()
    built = build_stage(suite(), rung.ladder, rung.stage, architectures=[WIDTHS_ARCH], cache=cache)
    size = rung.check_size(number)
    check = check_case(simulator_for(built, cache), built, rung.ladder, rung.stage, size)
    if check.counters is None:
        msg = f"{rung.name}: {check.status}: {check.reason}"
        raise RuntimeError(msg)
    counters = asdict(check.counters)
    return {counter: counters[counter] for counter in METRICS}


if __name__ == "__main__":
    sys.exit(main())
