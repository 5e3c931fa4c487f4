"""Shows on a GPU what the timing rule shows: gates of equal code, and of code slowed on purpose.

Every gate measures two families in the same rounds: cases whose base and head are one code, and
copies of one stage whose head waits longer at its start, by a calibrated share of its time. Run it
as ``python3 -m scripts.gpu_noise --out FOLDER``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ci.devices.driver import gpu_facts, native
from ci.gate.ledger import noise_ledger
from ci.gate.rounds import estimate
from ci.gate.settings import SENSITIVE
from ci.gate.timing import TimingVerdict, decide
from ci.measure.batch import GATE_METHOD_VERSION
from ci.measure.gate_timing import begun, stored
from ci.measure.lock import exclusive_gpu
from ci.measure.machine import cuda_machine_name
from ci.measure.nvml import GpuWatch
from ci.measure.rounds import Setting, Taken, take_rounds
from ci.results import codec
from ci.results.model import GateRun, Machine, Revision, Round
from kernels.build import build_stage
from kernels.spec import CudaStage
from kernels.suite import load_suite

ROOT = Path(__file__).resolve().parents[1]
EQUAL = ("03_shared_tile_16", "06_block_tile_2d", "09_warp_tile")
"""Stages whose base and head are one code."""
EQUAL_SIZES = (256, 1024, 2048)
SLOWED = "06_block_tile_2d"
"""At 1024 its blocks are all resident at once, so that waiting adds to its time as a whole."""
SLOWED_SIZE = 1024
SLOWDOWNS = {"slower_02": 0.002, "slower_10": 0.01, "slower_20": 0.02, "slower_50": 0.05}
"""Stage → share of its time by which its head is slower."""
BODY = "float* __restrict__ C, int ldc) {\n"
SPIN = """\
  // Waits for so many cycles; base waits for one, so that both sides are the same code.
  const long long since = clock64();
  while (clock64() - since < {cycles}LL) {{
  }}
"""
CALIBRATION_ROUNDS = 4
FIRST_CYCLES = 2000
GATE_S = 36.0
"""A gate is begun only if so much time is left."""

LADDER_END = """

import dataclasses

_STAGES = {{stage.name: stage for stage in LADDER.stages}}
LADDER = Ladder(
    problem=dataclasses.replace(PROBLEM, sizes=tuple(perf(M=n, N=n, K=n) for n in {sizes})),
    stages=(
        *(_STAGES[name] for name in {equal}),
        *(dataclasses.replace(_STAGES["{slowed}"], source=name + ".cu") for name in {copies}),
    ),
)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bed:
    """Where the experiment takes place."""

    folder: Path
    setting: Setting
    arch: str

    def suite(self, side: str) -> Path:
        """Return the folder of a side's suite."""
        return self.folder / side / "kernels"


def case(stage: str, n: int) -> str:
    """Return the id of a stage's case at n × n × n."""
    return f"sgemm/{stage}[M={n},N={n},K={n}]"


EQUAL_CASES = tuple(case(stage, n) for stage in EQUAL for n in EQUAL_SIZES)
SLOWED_CASES = {case(stage, SLOWED_SIZE): share for stage, share in SLOWDOWNS.items()}


def write_suite(folder: Path, cycles: Mapping[str, int]) -> None:
    """Write a suite with the equal stages, and the slowed ones waiting for so many cycles."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "kernels/include", folder / "include")
    ladder = folder / "sgemm"
    ladder.mkdir(parents=True)
    for stage in EQUAL:
        shutil.copy(ROOT / f"kernels/sgemm/{stage}.cu", ladder)
    source = (ROOT / f"kernels/sgemm/{SLOWED}.cu").read_text(encoding="utf-8")
    if source.count(BODY) != 1:
        raise SystemExit(f"{SLOWED}.cu: expected {BODY!r} once, the place to wait at")
    for stage, number in cycles.items():
        text = source.replace(BODY, BODY + SPIN.format(cycles=number))
        (ladder / f"{stage}.cu").write_text(text, encoding="utf-8")
    end = LADDER_END.format(sizes=EQUAL_SIZES, equal=EQUAL, slowed=SLOWED, copies=tuple(SLOWDOWNS))
    text = (ROOT / "kernels/sgemm/ladder.py").read_text(encoding="utf-8")
    (ladder / "ladder.py").write_text(text + end, encoding="utf-8")


def compile_all(bed: Bed, side: str) -> None:
    """Compile a side's stages here, so that no gate has to."""
    suite = load_suite(bed.suite(side))
    for ladder in suite.ladders:
        for stage in ladder.stages:
            if isinstance(stage, CudaStage):
                architectures = (bed.arch,)
                build_stage(
                    suite, ladder, stage, architectures=architectures, cache=bed.setting.cache
                )


def take(bed: Bed, cases: Sequence[str], rounds: int) -> Taken:
    """Take so many rounds of some cases."""

    def wanted(taken: Sequence[Round]) -> Sequence[str]:
        return [c for c in cases if sum(entry.case == c for entry in taken) < rounds]

    return take_rounds(bed.setting, wanted, budget_s=120.0)


def effect(taken: Sequence[Round], of: str) -> tuple[float, float]:
    """Return by how much head is slower (log ratio), and base's median time (s)."""
    rounds = [entry for entry in taken if entry.case == of and not entry.invalid]
    if not rounds:
        reasons = {entry.invalid for entry in taken if entry.case == of}
        raise SystemExit(f"{of}: no round counts: {'; '.join(sorted(reasons))}")
    base = statistics.median(pair.base_s for entry in rounds for pair in entry.pairs)
    return statistics.mean(estimate(entry) for entry in rounds), base


def calibrated(bed: Bed) -> dict[str, int]:
    """Return stage → cycles its head must wait, in two steps: from one wait to all, then mended."""
    write_suite(bed.suite("base"), dict.fromkeys(SLOWDOWNS, 1))
    compile_all(bed, "base")
    cycles = dict.fromkeys(SLOWDOWNS, FIRST_CYCLES)
    for step in (1, 2):
        write_suite(bed.suite("head"), cycles)
        compile_all(bed, "head")
        stages = list(SLOWDOWNS) if step > 1 else list(SLOWDOWNS)[-1:]
        taken = take(bed, [case(stage, SLOWED_SIZE) for stage in stages], CALIBRATION_ROUNDS).rounds
        if step == 1:
            shown, base_s = effect(taken, case(stages[0], SLOWED_SIZE))
            per_cycle = shown / FIRST_CYCLES
            print(f"{base_s * 1e6:.2f} us a launch, {per_cycle * 1e6:.3f} ppm a cycle", flush=True)
            cycles = {s: max(1, round(math.log1p(p) / per_cycle)) for s, p in SLOWDOWNS.items()}
            continue
        for stage, share in SLOWDOWNS.items():
            shown, _ = effect(taken, case(stage, SLOWED_SIZE))
            print(f"{stage}: {cycles[stage]} cycles are {100 * shown:.3f} %", flush=True)
            # Waits are whole turns of a loop: mended in proportion, and never by more than half.
            factor = min(1.5, max(0.67, math.log1p(share) / shown)) if shown > 0 else 1.5
            cycles[stage] = round(cycles[stage] * factor)
    write_suite(bed.suite("head"), cycles)
    compile_all(bed, "head")
    return cycles


def gate(bed: Bed, number: int, history: Sequence[GateRun], machine: Machine) -> GateRun:
    """Run one gate: both families in the same rounds, each decided on its own."""
    ledger = noise_ledger(history, machine=machine.name, method_version=GATE_METHOD_VERSION)

    def wanted(taken: Sequence[Round]) -> Sequence[str]:
        return [
            case_id
            for family in (EQUAL_CASES, tuple(SLOWED_CASES))
            for case_id in decide(taken, family, SENSITIVE, ledger).open
        ]

    run = begun(revision(f"base-{number}"), revision(f"head-{number}"), machine)
    return stored(run, take_rounds(bed.setting, wanted, budget_s=120.0))


def revision(name: str) -> Revision:
    """Return a revision that no repository knows."""
    return Revision(commit=name, subject="", committed="", parents=(), described=name)


def verdicts(run: GateRun, history: Sequence[GateRun]) -> dict[str, dict[str, object]]:
    """Return case id → what both settings say of a gate's rounds."""
    ledger = noise_ledger(history, machine=run.machine.name, method_version=GATE_METHOD_VERSION)
    found: dict[str, TimingVerdict] = {}
    for family in (EQUAL_CASES, tuple(SLOWED_CASES)):
        found |= decide(run.rounds, family, SENSITIVE, ledger).verdicts
    return {
        case_id: {
            "sensitive": verdict.word.value,
            "standard": verdict.timing.other_setting.value if verdict.timing else None,
            "slower_percent": 100 * (verdict.timing.ratio - 1) if verdict.timing else None,
            "rounds": sum(entry.case == case_id for entry in run.rounds),
            "invalid": [e.invalid for e in run.rounds if e.case == case_id and e.invalid],
            "reason": verdict.reason,
        }
        for case_id, verdict in found.items()
    }


def nested(runs: Sequence[GateRun], case_id: str) -> dict[str, object]:
    """Return the nested analysis of variance of a case: process pairs, and pairs within them.

    All figures are percent of time. ``between_processes`` is the standard deviation that process
    pairs add, within the two orders of starting; ``within`` that of one pair of samples.

    Source: Searle, Casella & McCulloch, Variance Components, ch. 3 (one-way, unbalanced).
    """
    rounds = [
        entry for run in runs for entry in run.rounds if entry.case == case_id and not entry.invalid
    ]
    logs = [np.log([pair.head_s / pair.base_s for pair in entry.pairs]) for entry in rounds]
    sizes = np.array([len(values) for values in logs], dtype=np.float64)
    means = np.array([values.mean() for values in logs])
    within = sum(((values - values.mean()) ** 2).sum() for values in logs) / (sizes - 1).sum()
    between, degrees, spread = 0.0, 0, 0.0
    of_order = {}
    for base_first in (True, False):
        chosen = np.array([entry.base_started_first is base_first for entry in rounds])
        weights, values = sizes[chosen], means[chosen]
        centre = float((weights * values).sum() / weights.sum())
        between += float((weights * (values - centre) ** 2).sum())
        degrees += len(values) - 1
        spread += weights.sum() - (weights**2).sum() / weights.sum()
        of_order["base_first" if base_first else "head_first"] = 100 * centre
    process = max(0.0, (between / degrees - within) * degrees / spread)
    estimates = [estimate(entry) for entry in rounds]
    base_s = statistics.median(pair.base_s for entry in rounds for pair in entry.pairs)
    return {
        "launch_s": base_s,
        "process_pairs": len(rounds),
        "pairs": int(sizes.sum()),
        "mean": 100 * statistics.mean(estimates),
        "between_processes": 100 * math.sqrt(process),
        "within": 100 * math.sqrt(within),
        "of_a_round": 100 * statistics.stdev(estimates),
        "worst_round": 100 * max(map(abs, estimates)),
        "offset_of_order": of_order,
    }


def summary(runs: Sequence[GateRun], cycles: Mapping[str, int]) -> dict[str, object]:
    """Return everything the experiment shows."""
    gates = [verdicts(run, runs[:number]) for number, run in enumerate(runs)]
    cases = (*EQUAL_CASES, *SLOWED_CASES)
    rounds = [len({entry.number for entry in run.rounds}) for run in runs]
    per_round = sum(run.fixed_s for run in runs) / sum(rounds)
    per_case = sum(sum(run.case_s.values()) for run in runs) / sum(len(r.rounds) for r in runs)
    screen = 4
    return {
        "gates": len(runs),
        "words": {
            case_id: {
                setting: {
                    word: sum(told[case_id][setting] == word for told in gates)
                    for word in sorted({str(told[case_id][setting]) for told in gates})
                }
                for setting in ("sensitive", "standard")
            }
            for case_id in cases
        },
        "noise_percent": {case_id: nested(runs, case_id) for case_id in cases},
        "cycles": dict(cycles),
        "seconds": {
            "fixed_a_round": per_round,
            "a_case_and_round": per_case,
            "a_case_in_a_screen_of_150": screen * (per_case + per_round / 150),
            "all_gates": sum(run.fixed_s + sum(run.case_s.values()) for run in runs),
        },
        "each_gate": gates,
    }


def bed_in(folder: Path, watch: GpuWatch, arch: str) -> Bed:
    """Return the place of the experiment in an empty folder."""
    suites = (folder / "base/kernels", folder / "head/kernels")
    setting = Setting(
        suites=suites, bench="cuda", cache=folder / "cache", watch=watch, usual={}, seed=0
    )
    return Bed(folder=folder, setting=setting, arch=arch)


def show(number: int, run: GateRun, told: Mapping[str, Mapping[str, object]]) -> None:
    """Print a line about a gate."""
    words = " ".join(
        f"{stage[-2:]}:{told[case(stage, SLOWED_SIZE)]['sensitive']}"
        f"/{told[case(stage, SLOWED_SIZE)]['standard']}"
        for stage in SLOWDOWNS
    )
    equal = sorted({str(told[case_id]["sensitive"]) for case_id in EQUAL_CASES})
    spent_s = run.fixed_s + sum(run.case_s.values())
    print(f"gate {number + 1}: {spent_s:.1f} s; equal: {', '.join(equal)}; {words}", flush=True)


def main() -> None:
    """Calibrate, run the gates, and write what they show after each one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "gpu-noise")))
    parser.add_argument("--gates", type=int, default=20)
    parser.add_argument("--deadline", type=float, default=570.0, help="seconds for everything")
    parser.add_argument("--scratch", type=Path, default=Path("/tmp/flopwatch-noise"))  # noqa: S108
    parser.add_argument("--add", type=Path, help="gate-runs.jsonl.gz of an earlier run, continued")
    options = parser.parse_args()
    end = time.monotonic() + options.deadline
    options.out.mkdir(parents=True, exist_ok=True)
    facts = gpu_facts()
    arch = native(facts.capability, ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90"))
    if arch is None:
        raise SystemExit(f"{facts.name}: no architecture of the ladder runs on it")
    machine = Machine(
        name=cuda_machine_name(facts),
        device="cuda",
        versions={"driver": facts.driver},
        architectures=(arch,),
        origin="checkout",
    )
    watch = GpuWatch(facts.uuid)
    with exclusive_gpu(facts.uuid, watch):
        bed = bed_in(options.scratch, watch, arch)
        cycles = calibrated(bed)
        runs = earlier(options.add) if options.add else []
        while len(runs) < options.gates and end - time.monotonic() > GATE_S:
            runs.append(gate(bed, len(runs), runs, machine))
            show(len(runs) - 1, runs[-1], verdicts(runs[-1], runs[:-1]))
            write(options.out, runs, cycles)
    print(json.dumps(summary(runs, cycles)["seconds"], indent=2), flush=True)


def earlier(path: Path) -> list[GateRun]:
    """Return the gates of an earlier run."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [codec.decode(json.loads(line), GateRun, str(path)) for line in lines]


def write(folder: Path, runs: Sequence[GateRun], cycles: Mapping[str, int]) -> None:
    """Write the summary, and every sample."""
    text = json.dumps(summary(runs, cycles), indent=2, allow_nan=False)
    (folder / "gpu-noise.json").write_text(f"{text}\n", encoding="utf-8")
    with gzip.open(folder / "gate-runs.jsonl.gz", "wt", encoding="utf-8") as lines:
        lines.writelines(f"{json.dumps(codec.encode(run))}\n" for run in runs)


if __name__ == "__main__":
    main()
