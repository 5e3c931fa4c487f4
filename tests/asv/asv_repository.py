"""A small repository that asv runs in, and records of its commits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ci.results.model import CaseResult, Counters, Measurement, Revision, RunRecord
from tests import builders

ROOT = Path(__file__).resolve().parents[2]
GPU = "nvidia-h200-0"
SIZES = ("M=256,N=256,K=256", "M=127,N=65,K=33")
STAGES = ("01_naive", "02_coalesced")


def git(folder: Path, *arguments: str, date: str = "2026-01-01T12:00:00+00:00") -> str:
    """Run git in a folder and return what it prints."""
    environment = {
        **os.environ,
        **{
            f"GIT_{role}_{part}": "tester"
            for role in ("AUTHOR", "COMMITTER")
            for part in ("NAME", "EMAIL")
        },
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_DATE": date,
    }
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def commit(folder: Path, subject: str, date: str = "2026-01-01T12:00:00+00:00") -> str:
    """Commit everything in a folder and return the full hash."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", subject, date=date)
    return git(folder, "rev-parse", "HEAD")


def empty_repository(folder: Path) -> Path:
    """Return a repository with asv's configuration and benchmarks, and the tiny suite."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests/fixtures/suites/tiny", folder / "kernels", ignore=ignored)
    shutil.copytree(ROOT / "asv_bench", folder / "asv_bench", ignore=ignored)
    shutil.copy(ROOT / "asv.conf.json", folder)
    (folder / ".gitignore").write_text(".asv/\nrecords/\nresults/\nbuild/\n__pycache__/\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


def run(folder: Path, module: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run ``asv`` or ``ci`` in a repository; asv's machine file lies in ``home``."""
    return subprocess.run(
        [sys.executable, "-P", "-m", module, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def measurement(median_s: float, cache: str = "cold", *, method_version: int = 1) -> Measurement:
    """Return nine samples around a median."""
    offsets = (-0.004, -0.003, -0.002, -0.001, 0.0, 0.001, 0.002, 0.003, 0.004)
    return Measurement(
        method_version=method_version,
        cache=cache,
        launches_per_sample=16,
        operand_sets=3,
        samples_s=tuple(median_s * (1 + offset) for offset in offsets),
        states=(),
    )


def case(stage: str, size: str, sectors: int) -> CaseResult:
    """Return a case of the size that is counted."""
    return builders.case(f"sgemm/{stage}[{size}]", counters=Counters(global_load_sectors=sectors))


def timed_case(stage: str, median_s: float) -> CaseResult:
    """Return a case of the size that a GPU times."""
    plain = builders.case(f"sgemm/{stage}[M=4096,N=4096,K=4096]", counted=False)
    return replace(
        plain,
        role="perf",
        cold=measurement(median_s),
        hot=measurement(median_s * 0.9, "hot"),
    )


def record(
    sha: str, number: int, *cases: CaseResult, machine: str = "simulator", registers: int = 40
) -> RunRecord:
    """Return a run of a commit, ``number`` hours after midnight."""
    static = (builders.static(registers=registers),)
    return builders.record(
        *cases,
        stages=[builders.stage(name, figures=static) for name in STAGES],
        run=f"20260202T{number:02d}0000Z-{machine}",
        started=f"2026-02-02T{number:02d}:00:00+00:00",
        on=builders.machine(name=machine, device="simulator" if machine == "simulator" else "cuda"),
        of=Revision(
            commit=sha,
            subject="A change",
            committed=f"2026-01-{number + 1:02d}T12:00:00+00:00",
            parents=(),
            described=sha[:12],
        ),
    )


def history(commits: Sequence[str]) -> list[RunRecord]:
    """Return a run of each commit on the simulator and on a GPU."""
    records = []
    for number, sha in enumerate(commits):
        counted = [
            case(stage, size, 4096 // (1 + index) + 8 * number)
            for index, stage in enumerate(STAGES)
            for size in SIZES
        ]
        timed = [
            timed_case(stage, (1 + 0.05 * number) * 1e-3 / (1 + index))
            for index, stage in enumerate(STAGES)
        ]
        records.append(record(sha, number, *counted, registers=40 + number))
        records.append(record(sha, number, *counted, *timed, machine=GPU, registers=40 + number))
    return records
