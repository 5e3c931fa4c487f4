"""Shows on a GPU where the seconds of a timed gate go: by part of a case's set-up, and in all.

Run it as ``python3 -m scripts.round_cost --out FOLDER``.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci.devices.driver import gpu_facts, native
from ci.gate.settings import STANDARD
from ci.measure.batch import WARM_UP_AGAIN_S, WARM_UP_S, Batch, Survey, cold_parts, pair_count
from ci.measure.lock import exclusive_gpu
from ci.measure.nvml import GpuWatch
from ci.measure.rounds import BASE, turns
from ci.measure.timing_messages import (
    Command,
    Drop,
    Estimate,
    Estimated,
    Load,
    Loaded,
    Open,
    Opened,
    Sample,
)
from ci.measure.timing_process import TimingProcess
from scripts.gpu_noise import EQUAL_CASES, SLOWDOWNS, Bed, bed_in, compile_all, take, write_suite

GATE_CASES = 150
MESSAGES = 200
CONTENTS_STAGES = ("06_block_tile_2d", "09_warp_tile")
CONTENTS_SIZE = 2048
CONTENTS_REPEATS = 6
CONTENTS_PAIRS = 20


class Stopwatch:
    """Seconds by part, each without the parts inside it."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.spent_s: dict[str, float] = defaultdict(float)
        self._inner_s = [0.0]

    def watch(self, owner: object, name: str, part: str) -> None:
        """Count the calls of a function towards a part from now on."""
        function = getattr(owner, name)

        @functools.wraps(function)
        def watched(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            self._inner_s.append(0.0)
            started = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                whole_s = time.perf_counter() - started
                self.spent_s[part] += whole_s - self._inner_s.pop()
                self._inner_s[-1] += whole_s

        setattr(owner, name, watched)

    def taken(self) -> dict[str, float]:
        """Return the seconds since the last call."""
        found = dict(self.spent_s)
        self.spent_s.clear()
        return found


def watch_everything(stopwatch: Stopwatch) -> None:
    """Watch what a timing process does for a case."""
    from ci.devices import cuda  # noqa: PLC0415
    from ci.measure import cuda_bench, timing_worker  # noqa: PLC0415

    bench, worker = cuda_bench.CudaBench, timing_worker.TimingWorker
    on_gpu = vars(cuda_bench)["_OnGpu"]
    for owner, name, part in (
        (cuda_bench, "unfilled", "form of the operands"),
        (cuda_bench, "drawn", "random numbers"),
        (bench, "_filled", "operands to the GPU"),
        (bench, "_repeat", "copies on the GPU, enqueued"),
        (bench, "_arena_of", "arena"),
        (cuda_bench, "build_stage", "compiled code from the cache"),
        (cuda.CudaDevice, "_kernel", "module load"),
        (cuda.CudaDevice, "prepare", "launches prepared"),
        (bench, "place", "placing, and waiting for copies"),
        (bench, "record", "capture and instantiation"),
        (cuda_bench, "_Graphs", "graph upload"),
        (on_gpu, "launch", "launch on its own"),
        (on_gpu, "output", "outputs fetched"),
        (on_gpu, "poison", "outputs poisoned"),
        (timing_worker, "require_all_worked_on", "outputs compared"),
        (worker, "_estimate", "launch time estimated"),
        (worker, "_warm_up", "warm-up"),
        (worker, "_sample", "samples"),
        (worker, "_drop", "drop"),
        (worker, "answer", "rest"),
    ):
        stopwatch.watch(owner, name, part)


def one_process(bed: Bed, batches: Mapping[str, Batch]) -> dict[str, object]:
    """Serve every case as one side's process does in a round, alone, and return the seconds.

    Args:
        bed: Where.
        batches: Case → batch, as the first round found them; empty: this is the first round.
    """
    from ci.measure.timing_worker import _BENCHES, TimingWorker  # noqa: PLC0415

    stopwatch = Stopwatch()
    watch_everything(stopwatch)
    worker = TimingWorker(_BENCHES["cuda"]())

    def ask(command: Command, kind: type[Any]) -> Any:  # noqa: ANN401
        reply = worker.answer(command)
        if not isinstance(reply, kind):
            raise SystemExit(f"{command}: {reply}")
        return reply

    opened = ask(Open(suites=(str(bed.suite("base")),), cache=str(bed.setting.cache)), Opened)
    opening_s = sum(stopwatch.taken().values())
    known, cases = dict(batches), {}
    for number, case in enumerate(EQUAL_CASES):
        if case not in batches:
            told = ask(Estimate(case=case, baseline=False), Estimated)
            survey = Survey(launch_s=told.launch_s, set_bytes=told.set_bytes)
            known[case] = cold_parts([survey], l2_bytes=opened.l2_bytes, tick_s=opened.tick_s)
        load = Load(
            case=case,
            baseline=False,
            batch=known[case],
            verify=case not in batches,
            warm_up_s=WARM_UP_AGAIN_S if number else WARM_UP_S,
        )
        pairs = pair_count(ask(load, Loaded).sample_s)
        mine = [turn for turn in turns(pairs) if turn.side == BASE]
        for turn in mine:
            ask(Sample(count=turn.samples), object)
        ask(Drop(), object)
        cases[case] = {
            "pairs": pairs,
            "batch": [known[case].launches, known[case].sets, known[case].parts],
            "messages": 2 + len(mine),
            "seconds": stopwatch.taken(),
        }
    return {"opening_s": opening_s, "cases": cases}


def in_fresh_process(options: argparse.Namespace, batches: Mapping[str, object]) -> dict[str, Any]:
    """Return what ``one_process`` finds in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.round_cost", "--scratch", str(options.scratch), "--alone"],
        input=json.dumps(batches),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def traffic(bed: Bed, watch: GpuWatch) -> dict[str, float]:
    """Return what a message and a reading of the GPU's state cost, and a process's life (s)."""
    started = time.perf_counter()
    process = TimingProcess("cuda")
    try:
        process.open([bed.suite("base")], bed.setting.cache)
        opened_s = time.perf_counter() - started
        started = time.perf_counter()
        for _ in range(MESSAGES):
            process.drop()
        message_s = (time.perf_counter() - started) / MESSAGES
        started = time.perf_counter()
        for _ in range(MESSAGES):
            watch.state()
        state_s = (time.perf_counter() - started) / MESSAGES
    finally:
        started = time.perf_counter()
        process.ask_to_end()
        process.end()
        ended_s = time.perf_counter() - started
    return {
        "process_start_s": opened_s,
        "process_end_s": ended_s,
        "message_s": message_s,
        "state_s": state_s,
    }


def real_rounds(bed: Bed) -> dict[str, object]:
    """Take rounds as a gate does; return the seconds of a first and of a later round."""
    first = take(bed, EQUAL_CASES, 1)
    screen = take(bed, EQUAL_CASES, STANDARD.screen_rounds)
    invalid = [entry.invalid for entry in screen.rounds if entry.invalid]
    later = STANDARD.screen_rounds - 1
    cases = {
        case: {
            "first_s": first.case_s[case],
            "later_s": (screen.case_s[case] - first.case_s[case]) / later,
        }
        for case in EQUAL_CASES
    }
    case_s = statistics.mean(screen.case_s.values())
    fixed_s = screen.fixed_s / STANDARD.screen_rounds
    return {
        "cases": cases,
        "invalid": invalid,
        "fixed_a_round_s": fixed_s,
        "a_case_in_a_screen_s": case_s,
        "a_case_in_a_gate_of_150_s": case_s + screen.fixed_s / GATE_CASES,
    }


def contents_ratio(bed: Bed) -> dict[str, object]:
    """Return times on operands that repeat against operands that do not, percent."""
    from ci.check.contents import place_operands  # noqa: PLC0415
    from ci.measure import cuda_bench  # noqa: PLC0415
    from ci.measure.bench import Routine  # noqa: PLC0415
    from ci.measure.contents import drawn as repeating  # noqa: PLC0415
    from kernels.suite import load_suite  # noqa: PLC0415

    suite = load_suite(bed.suite("base"))

    def throughout(*arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        matrices = place_operands(*arguments)
        return {name: matrices[name].buffer() for name in repeating(*arguments)}

    found: dict[str, object] = {}
    for stage in CONTENTS_STAGES:
        size = ",".join(f"{axis}={CONTENTS_SIZE}" for axis in "MNK")
        case = next(each for each in suite.cases() if each.id == f"sgemm/{stage}[{size}]")
        ratios = []
        for repeat in range(CONTENTS_REPEATS):
            replays = {}
            # Which is placed first alternates, as the sides of a gate do.
            for draw in ((repeating, throughout), (throughout, repeating))[repeat % 2]:
                vars(cuda_bench)["drawn"] = draw
                bench = cuda_bench.CudaBench([suite], cache=bed.setting.cache)
                sets = bench.place(Routine(case=case, baseline=False), 3)
                replays[draw] = (bench, bench.record([sets]))
                replays[draw][1].time(20)
            vars(cuda_bench)["drawn"] = repeating
            logs = []
            for _ in range(CONTENTS_PAIRS):
                one, other = (replays[draw][1].time(2) for draw in (repeating, throughout))
                logs.append(math.log(sum(one) / sum(other)))
            ratios.append(100 * statistics.median(logs))
        mean, spread = statistics.mean(ratios), statistics.stdev(ratios)
        found[stage] = {"percent": mean, "spread": spread, "each": ratios}
        print(f"{stage}: repeating operands {mean:+.3f} % (sd {spread:.3f})", flush=True)
    return found


def show(title: str, found: Mapping[str, Any]) -> None:
    """Print the mean seconds of each part a case, largest first."""
    cases: Sequence[Mapping[str, Any]] = list(found["cases"].values())
    parts: dict[str, float] = defaultdict(float)
    for case in cases:
        for part, seconds in case["seconds"].items():
            parts[part] += seconds / len(cases)
    whole_ms = 1e3 * sum(parts.values())
    print(f"\n{title}: {whole_ms:.1f} ms a case and side, {found['opening_s']:.2f} s to open")
    for part, seconds in sorted(parts.items(), key=lambda item: -item[1]):
        print(f"  {1e3 * seconds:8.2f} ms  {part}", flush=True)


def make_bed(scratch: Path, watch: GpuWatch) -> Bed:
    """Return the place of the experiment."""
    arch = native(gpu_facts().capability, ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90"))
    if arch is None:
        raise SystemExit("no architecture of the ladder runs on this GPU")
    return bed_in(scratch, watch, arch)


def measured(options: argparse.Namespace, say: Callable[..., None]) -> dict[str, object]:
    """Return everything this script shows."""
    watch = GpuWatch(gpu_facts().uuid)
    bed = make_bed(options.scratch, watch)
    with exclusive_gpu(gpu_facts().uuid, watch):
        for side in ("base", "head"):
            write_suite(bed.suite(side), dict.fromkeys(SLOWDOWNS, 1))
            compile_all(bed, side)
        first = in_fresh_process(options, {})
        show("first round", first)
        batches = {case: each["batch"] for case, each in first["cases"].items()}
        later = in_fresh_process(options, batches)
        show("later round", later)
        cost = traffic(bed, watch)
        say(json.dumps(cost))
        rounds = real_rounds(bed)
        for key in ("fixed_a_round_s", "a_case_in_a_screen_s", "a_case_in_a_gate_of_150_s"):
            say(f"{key}: {rounds[key]:.3f}")
        contents = contents_ratio(bed)
    return {
        "first_round": first,
        "later_round": later,
        "traffic": cost,
        "rounds": rounds,
        "contents_percent": contents,
    }


def main() -> None:
    """Measure, print and write ``round-cost.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "round-cost")))
    parser.add_argument("--scratch", type=Path, default=Path("/tmp/flopwatch-cost"))  # noqa: S108
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        batches = {
            case: Batch(launches=launches, sets=sets, parts=parts)
            for case, (launches, sets, parts) in json.load(sys.stdin).items()
        }
        bed = make_bed(options.scratch, GpuWatch(gpu_facts().uuid))
        print(json.dumps(one_process(bed, batches)))
        return
    found = measured(options, functools.partial(print, flush=True))
    options.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1, allow_nan=False) + "\n"
    (options.out / "round-cost.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
