"""Compares counters of kernels outside the suite with Nsight Compute's, atomics and local too.

The kernels are those of ``tests/data/ncu-h200/suite.cu`` whose counts no schedule changes, each at
two sizes. ``python -m scripts.ncu_golden predict FOLDER`` simulates them, anywhere; ``profile
FOLDER`` runs ncu on a machine with a GPU; ``compare FOLDER`` writes a table, ``golden.md``.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from kernels.nvrtc import compile_text
from scripts.ncu_stages import METRICS
from tests.simulator.golden_kernels import arguments_of, compiled, launch
from tests.simulator.ncu_golden import GOLDEN, launches

SIDES = (256, 192)
"""Sides of the matrices; the first is that of the earlier measurement."""
COUNTER_OF = {metric: counter for counter, metric in METRICS.items()} | {
    "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum": "global_atomic_requests",
    "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum": "global_atomic_requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum": "atomic_sectors",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum": "atomic_sectors",
    "smsp__inst_executed_op_shared_atom.sum": "shared_atomic_requests",
    "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum": "local_load_requests",
    "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum": "local_store_requests",
}
"""The profiler's name → the counter it is a part of."""

_MEASURED = 16
"""Launches of the earlier measurement that are kernels and no patterns."""
_UNPADDED = 15
_DYNAMIC_SHARED_BYTES = {"mm_cpasync": 16_384}

Triple = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """One launch that is predicted and profiled."""

    name: str
    kernel: str
    defines: tuple[str, ...]
    grid: Triple
    block: Triple
    arguments: tuple[np.ndarray | np.generic, ...]


def main() -> int:
    """Predict, profile, launch, or compare and return 1 if a number differs."""
    action, *folder = sys.argv[1:]
    if action == "launch":
        return launch_all()
    path = Path(folder[0])
    path.mkdir(parents=True, exist_ok=True)
    return {"predict": predict, "profile": profile, "compare": compare}[action](path)


def subjects() -> list[Subject]:
    """Return all launches, in order."""
    measured = launches("suite.csv")
    kernels = [
        (measured[n].kernel, ("-DPAD0",) if n == _UNPADDED else (), measured[n].grid)
        for n in range(_MEASURED)
    ]
    blocks = {measured[n].kernel: measured[n].block for n in range(_MEASURED)}
    found = []
    for side in SIDES:
        for kernel, defines, grid in kernels:
            found.append(
                Subject(
                    name=f"{kernel}{''.join(defines)} {side}",
                    kernel=kernel,
                    defines=defines,
                    grid=_grid(kernel, grid, side),
                    block=blocks[kernel],
                    arguments=tuple(arguments_of(kernel, side)),
                )
            )
        found += _own(side)
    return found


def _own(side: int) -> list[Subject]:
    """Return launches that the earlier measurement lacks: shared atomics, and local memory."""
    cells = side * side
    random = np.random.default_rng(side)
    content = random.integers(0, 256, cells, dtype=np.uint8)
    index = random.integers(0, 16, cells, dtype=np.int32)
    return [
        Subject(
            name=f"hist {side}",
            kernel="hist",
            defines=(),
            grid=(32, 1, 1),
            block=(256, 1, 1),
            arguments=(content, np.zeros(256, np.uint32), np.int32(cells)),
        ),
        Subject(
            name=f"local_arr {side}",
            kernel="local_arr",
            defines=(),
            grid=(cells // 256, 1, 1),
            block=(256, 1, 1),
            arguments=(index, np.zeros(cells, np.float32), np.int32(cells)),
        ),
    ]


def _grid(kernel: str, measured: Triple, side: int) -> Triple:
    """Return the grid for a side, given that of the earlier measurement."""
    x, y, z = measured
    if kernel in ("stencil5", "red_shfl"):
        return measured
    if kernel == "red_smem":
        return x * side * side // SIDES[0] ** 2, y, z
    if kernel == "softmax_row":
        return x * side // SIDES[0], y, z
    return x * side // SIDES[0], y * side // SIDES[0], z


def predict(folder: Path) -> int:
    """Write the simulator's counters of every launch."""
    found = {subject.name: simulate(subject) for subject in subjects()}
    document = json.dumps(found, indent=1)
    (folder / "golden-predicted.json").write_text(document + "\n", encoding="utf-8")
    return 0


def simulate(subject: Subject) -> dict[str, int]:
    """Return the simulator's counters of a launch."""
    totals = asdict(
        launch(
            compiled("suite.cu", *subject.defines),
            subject.kernel,
            subject.arguments,
            grid=subject.grid,
            block=subject.block,
            dynamic_shared_bytes=_DYNAMIC_SHARED_BYTES.get(subject.kernel, 0),
        ).totals
    )
    totals["global_atomic_requests"] = totals["atomic_requests"] - totals["shared_atomic_requests"]
    return {counter: totals[counter] for counter in counters()}


def counters() -> list[str]:
    """Return the counters that are compared."""
    return list(dict.fromkeys(COUNTER_OF.values()))


def launch_all() -> int:
    """Launch every subject once on the GPU, for the profiler to look at."""
    import cupy  # noqa: PLC0415 (there is none where the others run)

    text = (GOLDEN / "suite.cu").read_text()
    for subject in subjects():
        options = ("--std=c++17", "-ftz=true", *subject.defines)
        cubin = compile_text(text, "suite.cu", arch="sm_90", options=options, expressions=[])
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin.data)
            file.flush()
            kernel = cupy.RawModule(path=file.name).get_function(subject.kernel)
            kernel(
                subject.grid,
                subject.block,
                tuple(
                    cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in subject.arguments
                ),
                shared_mem=_DYNAMIC_SHARED_BYTES.get(subject.kernel, 0),
            )
            cupy.cuda.Device().synchronize()
    return 0


def profile(folder: Path) -> int:
    """Write the profiler's table of all launches and return its exit code."""
    asked = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True, check=False)
    # A metric that this version does not know would end the run.
    known = [metric for metric in COUNTER_OF if metric.removesuffix(".sum") in asked.stdout]
    names = sorted({subject.kernel for subject in subjects()})
    done = subprocess.run(
        [
            "ncu",
            "--csv",
            "--clock-control=none",
            "--target-processes=all",
            f"--kernel-name=regex:^({'|'.join(names)})$",
            f"--metrics={','.join(known or COUNTER_OF)}",
            sys.executable,
            "-m",
            "scripts.ncu_golden",
            "launch",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    table = done.stdout[max(0, done.stdout.find('"ID",')) :]
    (folder / "golden-profiled.csv").write_text(table, encoding="utf-8")
    print(f"{len(read(table))} of {len(subjects())} launches, {len(known)} metrics known")
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-2000:])
    return done.returncode


def read(table: str) -> list[Mapping[str, int]]:
    """Return the counters of each launch in a profiler's table, in launch order."""
    found: dict[int, defaultdict[str, int]] = {}
    for row in csv.DictReader(io.StringIO(table)):
        counter = COUNTER_OF.get(row.get("Metric Name") or "")
        if counter:
            values = found.setdefault(int(row["ID"]), defaultdict(int))
            values[counter] += int(row["Metric Value"].replace(",", ""))
    return [found[number] for number in sorted(found)]


def compare(folder: Path) -> int:
    """Write the table and return 1 if a number differs."""
    predicted = json.loads((folder / "golden-predicted.json").read_text(encoding="utf-8"))
    measured = read((folder / "golden-profiled.csv").read_text(encoding="utf-8"))
    rows, equal, total = [], 0, 0
    for (name, ours), theirs in zip(predicted.items(), measured, strict=True):
        off = [counter for counter in theirs if ours[counter] != theirs[counter]]
        equal += len(theirs) - len(off)
        total += len(theirs)
        said = "; ".join(f"{c}: {ours[c]:,} against {theirs[c]:,}" for c in off)
        rows.append(f"| `{name}` | {len(theirs) - len(off)} of {len(theirs)} | {said} |")
    sentence = f"{equal} of {total} counters are equal ({100 * equal / total:.1f} %)."
    head = f"{sentence}\n\n| kernel, side | equal | simulator against profiler where not |\n"
    text = f"{head}|---|---:|---|\n" + "\n".join(rows) + "\n"
    (folder / "golden.md").write_text(text, encoding="utf-8")
    print(sentence)
    return int(equal < total)


if __name__ == "__main__":
    sys.exit(main())
