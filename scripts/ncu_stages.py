"""Compares the simulator's counters of every SGEMM stage with Nsight Compute's, number by number.

``python -m scripts.ncu_stages profile FILE.csv`` runs ncu, on a machine with a GPU;
``python -m scripts.ncu_stages compare FILE.csv`` simulates, anywhere, and prints both.
"""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

from ci.check.run import check_case
from ci.devices.simulator import SimulatorDevice
from ci.static.disassembly import disassemble, shared_widths
from ci.verbs.context import cache_folder
from kernels.build import WIDTHS_ARCH, build_stage
from scripts.sgemm_ladder import sgemm

SIZE = {"M": 256, "N": 256, "K": 256}
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
    """Profile, or compare and return 1 if a number differs."""
    action, path = sys.argv[1], Path(sys.argv[2])
    if action == "profile":
        return profile(path)
    names = [stage.name for stage in sgemm()[2]]
    measured = read(path.read_text(encoding="utf-8"))
    if len(measured) != len(names):
        print(f"{path}: {len(measured)} launches, expected {len(names)}, one a stage")
        return 2
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        simulated = list(pool.map(simulate, range(len(names))))
    differing = 0
    print(f"{'stage':20} {'counter':24} {'simulator':>12} {'ncu':>12}")
    for name, ours, theirs in zip(names, simulated, measured, strict=True):
        for counter in METRICS:
            same = ours[counter] == theirs[counter]
            differing += not same
            mark = "" if same else "  differs"
            print(f"{name:20} {counter:24} {ours[counter]:12,} {theirs[counter]:12,}{mark}")
    print(f"{differing} of {len(names) * len(METRICS)} numbers differ")
    return int(differing > 0)


def profile(path: Path) -> int:
    """Write the profiler's table of one launch a stage and return its exit code."""
    done = subprocess.run(
        [
            "ncu",
            "--csv",
            "--clock-control=none",
            "--target-processes=all",
            "--kernel-name=regex:^sgemm_",
            f"--metrics={','.join(METRICS.values())}",
            sys.executable,
            "-m",
            "scripts.stage_launches",
            *(str(extent) for extent in SIZE.values()),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    table = done.stdout[max(0, done.stdout.find('"ID",')) :]
    path.parent.mkdir(parents=True, exist_ok=True)
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


def simulate(index: int) -> Counts:
    """Return the simulator's counters of a stage."""
    suite, ladder, stages = sgemm()
    stage = stages[index]
    cache = cache_folder()
    built = build_stage(suite, ladder, stage, architectures=[WIDTHS_ARCH], cache=cache)
    cubin = built.cubins[WIDTHS_ARCH]
    found = shared_widths(disassemble(cubin.data, cache / "sass"))
    widths = {variant: found[kernel.symbol] for variant, kernel in cubin.kernels.items()}
    check = check_case(SimulatorDevice(widths), built, ladder, stage, SIZE)
    if check.counters is None:
        msg = f"{stage.name}: {check.status}: {check.reason}"
        raise RuntimeError(msg)
    return asdict(check.counters)


if __name__ == "__main__":
    sys.exit(main())
