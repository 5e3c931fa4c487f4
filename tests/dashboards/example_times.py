"""Synthetic timed runs of two GPUs and a timed gate, shaped like real ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ci.results.model import (
    CaseResult,
    GateResult,
    Machine,
    MachineState,
    Measurement,
    Outcome,
    RunRecord,
    Timing,
    Word,
)
from tests.dashboards import example_records as example

PERF_SIZES: tuple[Mapping[str, int], ...] = (
    {"M": 4096, "N": 4096, "K": 4096},
    {"M": 4092, "N": 4092, "K": 4092},
)
PEAKS = {"float32_flop_per_s": 66.9e12, "copy_bytes_per_s": 4.27e12}
H200 = Machine(
    name="h200-slot0", device="cuda", versions={"flopwatch": "0.1.0", "nvrtc": "13.0.88"},
    architectures=("sm_90",), origin="checkout", peaks=PEAKS,
)  # fmt: skip
L40S = replace(
    H200, name="l40s-slot0", architectures=("sm_89",),
    peaks={"float32_flop_per_s": 91.6e12, "copy_bytes_per_s": 0.68e12},
)  # fmt: skip
CUBLAS_S = 2.68e-3
SHARE_OF_CUBLAS = {
    "01_naive": 0.08, "02_coalesced": 0.15, "03_shared_tile": 0.21, "04_block_tile_1d": 0.42,
    "05_block_tile_2d": 0.63, "06_vectorised": 0.66, "07_padded_banks": 0.665,
    "08_double_buffer": 0.74, "09_warp_tile": 0.81,
}  # fmt: skip


def measurement(seconds: float, *, cache: str = "cold", noise: float = 0.001) -> Measurement:
    """Return 48 samples around ``seconds`` whose interquartile range is about ``noise`` of it."""
    offsets = [math.sin(2.4 * index) + 0.02 * (24 - index) for index in range(48)]
    return Measurement(
        method_version=1, cache=cache, launches_per_sample=4, operand_sets=3,
        samples_s=tuple(seconds * (1 + noise * 0.7 * offset) for offset in offsets),
        states=tuple(
            MachineState(sm_clock_hz=1_980_000_000 - 15_000_000 * index, power_w=612.0 + index,
                         memory_clock_hz=3_201_000_000, temperature_c=54.0,
                         slowdowns=("software power cap",) if index == 2 else ())
            for index in range(4)
        ),
    )  # fmt: skip


def timed_case(
    shape: example.StageShape, size: Mapping[str, int], slower: float = 1.0
) -> CaseResult:
    """Return a case that passed and was timed, but not counted."""
    flops = example.case(shape, size).flops
    vendor_s = CUBLAS_S * flops / (2 * 4096**3)
    stage_s = vendor_s / SHARE_OF_CUBLAS[shape.name] * slower
    return replace(
        example.case(shape, size), role="perf", counters=None, lines=(),
        cold=measurement(stage_s), hot=measurement(stage_s * 0.97, cache="hot", noise=0.0004),
        baseline=measurement(vendor_s * (1 + 0.001 * len(shape.name)), noise=0.0002),
    )  # fmt: skip


def timed_record(
    index: int, *, machine: Machine = H200, slower: Mapping[str, float] | None = None
) -> RunRecord:
    """Return a GPU's run of one of the three commits; ``slower`` scales times of stages."""
    factors = slower or {}
    return replace(
        example.record(index, machine=machine),
        cases=tuple(
            timed_case(shape, size, factors.get(shape.name, 1.0))
            for shape in example.LADDER
            for size in PERF_SIZES
        ),
    )


def three_timed_records(machine: Machine = H200, factor: float = 1.0) -> tuple[RunRecord, ...]:
    """Return the runs of three commits: the naive stage gets faster, the warp tile slower."""
    every = dict.fromkeys(SHARE_OF_CUBLAS, factor)
    return (
        timed_record(0, machine=machine, slower={**every, "01_naive": 1.6 * factor}),
        timed_record(1, machine=machine, slower={**every, "03_shared_tile": 1.004 * factor}),
        timed_record(2, machine=machine, slower={**every, "09_warp_tile": 1.15 * factor}),
    )


TIMING = Timing(
    setting="standard", ratio=1.1502, low=1.1489, high=1.1514, rounds=12, base_s=3.3086e-3,
    head_s=3.8049e-3, smallest_detectable=0.0, other_setting=Word.REGRESSION,
)  # fmt: skip


def timed_gate() -> GateResult:
    """Return a timed gate of the last two commits: one regression, one inconclusive case."""
    quiet = replace(TIMING, ratio=1.0002, low=0.9994, high=1.0011, rounds=4,
                    other_setting=Word.UNCHANGED)  # fmt: skip
    noisy = replace(TIMING, ratio=1.021, low=0.978, high=1.066, rounds=24,
                    smallest_detectable=1.052, other_setting=Word.INCONCLUSIVE)  # fmt: skip
    verdicts = []
    for case in timed_record(2).cases:
        if case.stage == "09_warp_tile":
            word, timing, reason = Word.REGRESSION, TIMING, "15.0 % slower (14.9 to 15.1 %)"
        elif case.stage == "08_double_buffer":
            word, timing, reason = Word.INCONCLUSIVE, noisy, "too noisy to tell 5 % apart"
        else:
            word, timing, reason = Word.UNCHANGED, quiet, "within the margin"
        verdicts.append(replace(example.verdict(case, word, reason), timing=timing))
    return replace(
        example.gate(), verdict=Outcome.FAILED, machine=H200, notes=(), cases=tuple(verdicts),
        sentence="2 of 18 cases fail: 2 regressions. Start with sgemm/09_warp_tile.",
        counts={"REGRESSION": 2, "INCONCLUSIVE": 2, "UNCHANGED": 14},
    )  # fmt: skip
