"""Times square SGEMM from 256 to 4096 on the CPU, by four stages and by cuBLAS, on this GPU.

``python -m scripts.size_sweep --commit HASH`` writes ``records/tables/size_sweep.json``; it takes
about 30 s of a GPU. Every result is compared with the CPU's. Times are taken as in a gate: replays
of a CUDA graph, operands outside the cache, the median of ten.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ci.check.plan import plain
from ci.check.references import trusted_reference
from ci.devices.opening import usable_gpu
from ci.measure.batch import SAMPLES_A_ROUND, Survey, cold, survey_launches
from ci.measure.bench import Bench, Routine
from ci.measure.contents import filled
from ci.verbs.context import cache_folder
from kernels import load_suite
from kernels.spec import Case, Ladder, Suite, perf
from scripts import sweep_record
from scripts.sweep_record import CPU, CUBLAS, SIZES, SizeSweep, SweepRow

ROOT = Path(__file__).resolve().parents[1]
STAGES = ("01_naive", "02_coalesced", "03_shared_tile_16", "04_shared_tile_32")
_CPU_SAMPLES = 5

Floats = NDArray[np.float32]


class SweepError(Exception):
    """A routine's result is wrong."""


def main() -> int:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commit", required=True, help="full hash of what is measured")
    parser.add_argument("--records", default=str(ROOT / "records"), help="where to write")
    arguments = parser.parse_args()
    facts = usable_gpu()
    # Late: importing it needs CuPy, which is there only beside a GPU.
    from ci.measure.cuda_bench import CudaBench  # noqa: PLC0415

    started = dt.datetime.now(dt.UTC)
    suite = load_suite(ROOT / "kernels")
    bench = CudaBench([suite], cache=cache_folder())
    rows = [row for size in SIZES for row in sweep_size(bench, suite, size)]
    sweep = SizeSweep(
        started=started.isoformat(timespec="seconds"),
        commit=arguments.commit,
        gpu=facts.name,
        cpu=f"{_cpu_model()}, {len(os.sched_getaffinity(0))} threads",
        cpu_library=f"NumPy {np.__version__}",
        float32_flop_per_s=facts.float32_flop_per_s,
        rows=tuple(rows),
    )
    print(sweep_record.save(Path(arguments.records), sweep))
    return 0


def sweep_size(bench: Bench, suite: Suite, extent: int) -> Iterator[SweepRow]:
    """Yield the rows of one size: CPU, stages, cuBLAS.

    Raises:
        SweepError: A result differs from the CPU's by more than the tolerance accepts.
    """
    ladder = next(each for each in suite.ladders if each.name == "sgemm")
    size = perf(M=extent, N=extent, K=extent)
    A, B = _factors(ladder, size.as_dict())
    seconds, product = _on_cpu(A, B)
    yield SweepRow(size=extent, routine=CPU, seconds=seconds, samples=_CPU_SAMPLES, error=0.0)
    # Both sides are rounded, so both may use what the tolerance accepts.
    accepted = 2 * ladder.problem.tolerance.relative * (np.abs(A) @ np.abs(B))
    stages = {stage.name: stage for stage in ladder.stages}
    for name in (*STAGES, CUBLAS):
        case = Case(ladder=ladder, stage=stages.get(name, ladder.stages[0]), size=size)
        routine = Routine(case=case, baseline=name == CUBLAS)
        seconds, got = _on_gpu(bench, routine)
        error = float(np.max(np.abs(got.reshape(product.shape) - product) / accepted))
        # Written so that a NaN fails.
        if not error <= 1:
            raise SweepError(
                f"{name} at {extent}: the largest error is {error:.3g} times what is accepted "
                "(flopwatch check shows where)"
            )
        row = SweepRow(
            size=extent, routine=name, seconds=seconds, samples=SAMPLES_A_ROUND, error=error
        )
        print(f"{extent:5} {name:18} {1e3 * seconds:10.4f} ms", file=sys.stderr)
        yield row


def _factors(ladder: Ladder, size: dict[str, int]) -> tuple[Floats, Floats]:
    """Return A and B ([M, K] and [K, N], float32) as the bench fills them."""
    reference = trusted_reference(ladder.problem.reference)
    scalars = {name: levels[0] for name, levels in reference.scalars.items()}
    matrices = filled(ladder.problem, reference, plain(ladder.problem, size, scalars))
    return matrices["A"], matrices["B"]


def _on_cpu(A: Floats, B: Floats) -> tuple[float, Floats]:
    """Return the median time (s) of A @ B and its result ([M, N], float32)."""
    product = A @ B
    times = []
    for _ in range(_CPU_SAMPLES):
        started = time.perf_counter()
        np.matmul(A, B, out=product)
        times.append(time.perf_counter() - started)
    return statistics.median(times), product


def _on_gpu(bench: Bench, routine: Routine) -> tuple[float, Floats]:
    """Return the median time of a launch (s), operands outside L2, and its result (float32)."""
    placed = bench.place(routine, 1)
    placed[0].poison()
    placed[0].launch()
    got = placed[0].output().astype(np.float32)
    launch_s = min(bench.record([placed]).time(2))
    launches = survey_launches(launch_s)
    launch_s = min(bench.record([list(placed) * launches]).time(2)) / launches
    survey = Survey(launch_s=launch_s, set_bytes=bench.set_bytes(routine))
    batch = cold([survey], l2_bytes=bench.l2_bytes, tick_s=bench.tick_s)
    sets = bench.place(routine, batch.sets)
    replay = bench.record([[sets[number] for number in order] for order in batch.orders()])
    replay.run()
    times = replay.time(SAMPLES_A_ROUND)
    del placed, sets, replay
    bench.drop()
    return statistics.median(times) / batch.launches, got


def _cpu_model() -> str:
    """Return the processor's name as Linux gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


if __name__ == "__main__":
    sys.exit(main())
