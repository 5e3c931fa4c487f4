"""Shows on a GPU how a timed gate ends when it is disturbed: signals, killed workers, bad kernels.

Every gate is the real command in a process of its own, on a small suite of two stages. Run it as
``python3 -m scripts.gate_faults --out FOLDER``; it returns 1 if a gate ends otherwise than it must.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STAGES = ("03_shared_tile_16", "06_block_tile_2d")
SPOILT = STAGES[0]
SUITE_END = f"""

import dataclasses

LADDER = Ladder(
    problem=dataclasses.replace(
        PROBLEM, sizes=(perf(M=256, N=256, K=256), check(M=127, N=65, K=33))
    ),
    stages=tuple(stage for stage in LADDER.stages if stage.name in {STAGES}),
)
"""
INCLUDE = '#include "layout.cuh"\n'
BODY = "float* __restrict__ C, int ldc) {\n"
COUNTER = "__device__ unsigned int launches;\n"
GUARD = """\
  // Right in the checks, which launch it less often; bad while it is timed.
  if (blockIdx.x + blockIdx.y + threadIdx.x == 0 && atomicAdd(&launches, 1u) > 1500) {{
    {deed}
  }}
"""
FAULT = "__trap();"
HANG = "while (*(volatile unsigned int*)&launches != 0) {}"
PATIENCE_S = 10
"""A hanging kernel is waited for so long here, not for the minutes of a real gate."""
PROGRAM = """\
import sys
from ci.cli import main
from ci.measure import timing_process
timing_process.REPLY_LIMIT_S = {patience_s}
sys.exit(main())
"""
WORKERS_END_S = 5.0
GATE_LIMIT_S = 150.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """A gate that is disturbed, and how it must end."""

    name: str
    codes: tuple[int, ...]
    """Exit codes that are right."""
    deed: str = ""
    """What head's kernel does after many launches; empty: nothing."""
    at: str = ""
    """Line of progress at which the gate is disturbed; empty: never."""
    disturb: Callable[[int], None] | None = None
    """Given the gate's process id."""


def send(number: signal.Signals) -> Callable[[int], None]:
    """Return what sends a signal to a process."""
    return lambda pid: os.kill(pid, number)


def kill_a_worker(pid: int) -> None:
    """Kill one timing process of a gate."""
    os.kill(workers(pid)[0], signal.SIGKILL)


TRIALS = (
    Trial(name="undisturbed", codes=(0,)),
    Trial(name="interrupted", codes=(130,), at="timing round 3", disturb=send(signal.SIGINT)),
    Trial(name="terminated", codes=(130,), at="timing round 3", disturb=send(signal.SIGTERM)),
    Trial(name="killed", codes=(-9,), at="timing round 3", disturb=send(signal.SIGKILL)),
    Trial(name="after_the_kill", codes=(0,)),
    Trial(name="worker_killed", codes=(0, 3), at="timing round 2", disturb=kill_a_worker),
    Trial(name="kernel_faults", codes=(3,), deed=FAULT),
    Trial(name="kernel_hangs", codes=(3,), deed=HANG),
)


def workers(pid: int) -> list[int]:
    """Return the timing processes that a gate's process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(folder.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            command = folder.joinpath("cmdline").read_bytes()
        except OSError:
            continue
        if parent == pid and b"timing_worker" in command:
            found.append(int(folder.name))
    return found


def write_side(folder: Path, deed: str) -> None:
    """Write a checkout with the small suite; ``deed`` spoils one of its kernels."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "kernels/include", folder / "kernels/include")
    ladder = folder / "kernels/sgemm"
    ladder.mkdir(parents=True)
    text = (ROOT / "kernels/sgemm/ladder.py").read_text(encoding="utf-8")
    (ladder / "ladder.py").write_text(text + SUITE_END, encoding="utf-8")
    for stage in STAGES:
        source = (ROOT / f"kernels/sgemm/{stage}.cu").read_text(encoding="utf-8")
        if deed and stage == SPOILT:
            if source.count(INCLUDE) != 1 or source.count(BODY) != 1:
                raise SystemExit(f"{stage}.cu: expected {INCLUDE!r} and {BODY!r} once each")
            source = source.replace(INCLUDE, INCLUDE + COUNTER)
            source = source.replace(BODY, BODY + GUARD.format(deed=deed))
        (ladder / f"{stage}.cu").write_text(source, encoding="utf-8")


def run(trial: Trial, scratch: Path) -> dict[str, Any]:
    """Run one gate, disturb it, and return how it ended."""
    base, head, out = (scratch / name for name in ("base", "head", "gate-out"))
    write_side(base, "")
    write_side(head, trial.deed)
    (out / "verdict.json").unlink(missing_ok=True)
    program = PROGRAM.format(patience_s=PATIENCE_S if trial.deed else 120)
    started = time.monotonic()
    sides = ("--base", str(base), "--head", str(head), "--out", str(out))
    gate = subprocess.Popen(
        [sys.executable, "-c", program, "gate", "--device", "cuda", "--measure-identical", *sides],
        cwd=ROOT,
        env={
            **os.environ,
            "XDG_STATE_HOME": str(scratch / "state"),
            "XDG_CACHE_HOME": str(scratch / "cache"),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []
    handles: list[int] = []
    assert gate.stderr is not None  # noqa: S101
    limit = threading.Timer(GATE_LIMIT_S, gate.kill)
    limit.start()
    for line in gate.stderr:
        said.append(line.rstrip())
        if trial.disturb and trial.at in line and not handles:
            handles = [os.pidfd_open(worker) for worker in wait_for_workers(gate.pid)]
            trial.disturb(gate.pid)
            disturbed = time.monotonic()
    code = gate.wait()
    limit.cancel()
    found: dict[str, Any] = {"exit_code": code, "right": code in trial.codes}
    if handles and trial.disturb is not kill_a_worker:
        found["workers_end_s"] = all_ended(handles, disturbed)
        found["right"] &= found["workers_end_s"] is not None
    return {
        **found,
        "seconds": time.monotonic() - started,
        **told(out / "verdict.json"),
        "said": said[-12:],
    }


def wait_for_workers(pid: int) -> list[int]:
    """Return a gate's timing processes once there are two."""
    deadline = time.monotonic() + WORKERS_END_S
    while len(found := workers(pid)) < len(("base", "head")) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def all_ended(handles: list[int], since: float) -> float | None:
    """Return after how many seconds all processes had ended; None if one lives on."""
    for handle in handles:
        left_s = max(0.0, since + WORKERS_END_S - time.monotonic())
        if not select.select([handle], [], [], left_s)[0]:
            return None
    return time.monotonic() - since


def told(path: Path) -> dict[str, Any]:
    """Return what a verdict file says; empty if there is none."""
    if not path.is_file():
        return {}
    verdict = json.loads(path.read_text(encoding="utf-8"))
    return {
        "sentence": verdict["sentence"],
        "notes": verdict["notes"],
        "cases": {case["id"]: [case["verdict"], case["reason"]] for case in verdict["cases"]},
    }


def show(name: str, found: Mapping[str, Any]) -> None:
    """Print how a gate ended."""
    ended = found.get("workers_end_s")
    after = f", workers gone after {ended:.2f} s" if ended is not None else ""
    right = "as it must" if found["right"] else "WRONG"
    print(f"{name}: exit {found['exit_code']} after {found['seconds']:.1f} s{after}: {right}")
    for line in (*found.get("notes", ()), found.get("sentence", "no verdict")):
        print(f"  {line}", flush=True)


def main() -> int:
    """Run all trials and write ``gate-faults.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "gate-faults")))
    parser.add_argument("--scratch", type=Path, default=Path("/tmp/flopwatch-faults"))  # noqa: S108
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(options.scratch, ignore_errors=True)
    found: dict[str, Any] = {}
    for trial in TRIALS:
        found[trial.name] = run(trial, options.scratch)
        show(trial.name, found[trial.name])
        text = json.dumps(found, indent=1, allow_nan=False) + "\n"
        (options.out / "gate-faults.json").write_text(text, encoding="utf-8")
    return int(not all(each["right"] for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
