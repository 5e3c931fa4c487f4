"""Checks every SGEMM stage on the GPU at every size, and that the cuBLAS baseline is no weak one.

``python -m scripts.gpu_check`` prints a table and writes ``$OUT/gpu_check.json``; it returns 1 if
a stage is not right, or if torch's product (TF32 off) is faster than ours by cuBLAS.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from ci.check.reference import Reference
from ci.check.references import device_reference
from ci.check.run import check_case, check_stage
from ci.devices.cublas import PreparedGemm, column_major
from ci.devices.cuda import CudaDevice
from ci.devices.protocol import Buffer
from ci.measure.tiles import time_stage
from ci.results.model import Status
from ci.verbs.context import cache_folder
from kernels.build import build_stage
from kernels.operands import Floats, normal
from kernels.spec import CudaStage, Ladder, Layout, Role, Suite
from scripts.suite_ladders import sgemm

EXTENT = 4096
LAUNCHES = 10
REPLAYS = 10
TORCH_MAY_LEAD = 1.03
"""Ours over torch's time that still counts as the same."""


def main() -> int:
    """Check everything and return 1 if something is not as it should be."""
    device = CudaDevice()
    print(f"{device.facts}\ncopy {device.copy_bytes_per_s() / 1e12:.2f} TB/s", flush=True)
    suite, ladder, stages = sgemm()
    started = time.monotonic()
    # Not forked: a copy of a process that has a GPU open has none.
    processors = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(processors, mp_context=get_context("spawn")) as pool:
        indices = range(len(stages))
        list(pool.map(compile_stage, indices, [device.architecture] * len(indices)))
    print(f"compiled in {time.monotonic() - started:.1f} s", flush=True)
    baseline = compare_with_torch(device)
    cublas_s = baseline["cublas_s"]
    reference = device_reference(ladder.problem.reference, device.multiply)
    rows = [check(device, suite, ladder, stage, reference, cublas_s) for stage in stages]
    weak = baseline["cublas_s"] > TORCH_MAY_LEAD * baseline["torch_s"]
    document = {"gpu": device.facts.name, "driver": device.facts.driver, "baseline": baseline}
    out = Path(os.environ.get("OUT", "build")) / "gpu_check.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({**document, "stages": rows}, indent=1, allow_nan=False) + "\n")
    best = max(row["cublas_share"] for row in rows)
    print(f"best stage {best:.1%} of cuBLAS; {out}")
    return int(weak or any(row["status"] != Status.PASSED for row in rows))


def compile_stage(index: int, architecture: str) -> None:
    """Compile one stage into the cache, in a process of its own."""
    suite, ladder, stages = sgemm()
    build_stage(suite, ladder, stages[index], architectures=[architecture], cache=cache_folder())


def check(
    device: CudaDevice,
    suite: Suite,
    ladder: Ladder,
    stage: CudaStage,
    reference: Reference,
    cublas_s: float,
) -> dict[str, Any]:
    """Return what a stage's plan, its cases and its time at the first size showed, and print it."""
    built = build_stage(
        suite, ladder, stage, architectures=[device.architecture], cache=cache_folder()
    )
    started = time.monotonic()
    plan = check_stage(device, built, ladder, stage, reference)
    cases = {}
    status, reason = plan.status, plan.reason
    for size in ladder.problem.sizes:
        case = check_case(device, built, ladder, stage, size.as_dict(), reference)
        errors = case.subcheck and [case.subcheck.max_error, case.subcheck.bound]
        cases[size.label] = {"status": case.status, "reason": case.reason, "error": errors}
        if status is Status.PASSED:
            status, reason = case.status, case.reason
    checked_s = time.monotonic() - started
    times = {
        size.label: time_stage(device, built, ladder, stage, reference, size.as_dict())
        for size in ladder.problem.sizes
        if size.role is Role.PERF
    }
    median_s = statistics.median(next(iter(times.values())))
    share = cublas_s / median_s
    print(
        f"{stage.name:20} {status:12} {len(plan.subchecks):3} launches, {median_s * 1e3:8.3f} ms "
        f"{2 * EXTENT**3 / median_s / 1e12:6.2f} TFLOP/s {share:6.1%} of cuBLAS, "
        f"checked in {checked_s:.1f} s {reason}",
        flush=True,
    )
    return {
        "stage": stage.name,
        "status": status,
        "reason": reason,
        "cases": cases,
        "samples_s": times,
        "cublas_share": share,
        "checked_s": checked_s,
    }


def compare_with_torch(device: CudaDevice) -> dict[str, Any]:
    """Return results and times of cuBLAS as we call it and of torch's product, TF32 off."""
    a, b = normal((EXTENT, EXTENT), (1,)), normal((EXTENT, EXTENT), (2,))
    c = np.zeros((EXTENT, EXTENT), dtype=np.float32)
    placed = {
        name: device.place(Buffer(name=name, data=data.reshape(-1)))
        for name, data in {"A": a, "B": b, "C": c}.items()
    }
    cublas, workspace = device.cublas(device.stream)
    gemm = PreparedGemm(
        cublas=cublas,
        product=column_major(
            dict.fromkeys("MNK", EXTENT),
            dict.fromkeys("ABC", Layout.ROW),
            dict.fromkeys("ABC", EXTENT),
        ),
        alpha=1.0,
        beta=0.0,
        addresses={name: at.address for name, at in placed.items()},
    )
    theirs, torch_s = torch_product(a, b)
    ours_s = statistics.median(device.replay_times([gemm] * LAUNCHES, REPLAYS))
    ours = placed["C"].fetch().view(np.float32).reshape(c.shape)
    del workspace
    found = {
        "cublas": cublas.version(),
        "cublas_s": ours_s,
        "torch_s": torch_s,
        "largest_difference": float(np.abs(ours - theirs).max()),
        "bit_equal": bool(np.array_equal(ours, theirs)),
    }
    print(
        f"cuBLAS {found['cublas']}: {ours_s * 1e3:.3f} ms "
        f"{2 * EXTENT**3 / ours_s / 1e12:.1f} TFLOP/s, torch {torch_s * 1e3:.3f} ms, largest "
        f"difference {found['largest_difference']:.2g}",
        flush=True,
    )
    return found


def torch_product(a: Floats, b: Floats) -> tuple[Floats, float]:
    """Return torch's product and the seconds it takes, from a graph as ours does."""
    import torch  # noqa: PLC0415

    torch.backends.cuda.matmul.allow_tf32 = False
    left, right = (torch.from_numpy(matrix).cuda() for matrix in (a, b))
    result = torch.matmul(left, right)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            torch.matmul(left, right, out=result)
    graph.replay()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times_s = []
    for _ in range(REPLAYS):
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times_s.append(begin.elapsed_time(end) / 1000 / LAUNCHES)
    product: Floats = result.cpu().numpy()
    return product, statistics.median(times_s)


if __name__ == "__main__":
    sys.exit(main())
