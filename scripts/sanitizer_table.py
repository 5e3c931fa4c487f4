"""Compares what compute-sanitizer and the simulator find in the same kernels.

``python -m scripts.sanitizer_table record --out FOLDER`` on a machine with a GPU writes
``sanitizer.json`` and the tools' logs; ``… table`` makes ``docs/sanitizer.md`` from
``docs/data/sanitizer.json`` and the simulator.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ci.devices.driver import gpu_facts
from kernels.nvrtc import compile_text, toolchain
from scripts.sanitizer.comparison import OPTIONS, Row, rows
from scripts.sanitizer.launches import ENDED, symbol
from scripts.sanitizer.log import Found, class_of, read
from scripts.sanitizer.subjects import Subject, subjects

ROOT = Path(__file__).resolve().parents[1]
DATA, TABLE = ROOT / "docs" / "data" / "sanitizer.json", ROOT / "docs" / "sanitizer.md"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_TOOL_S = 100.0
"""Seconds a tool may take for all subjects."""
_REPORTS_MAX = 20_000


def main(words: Sequence[str] | None = None) -> int:
    """Record or make the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("record").add_argument("--out", type=Path, required=True)
    verbs.add_parser("table")
    options = parser.parse_args(words)
    if options.verb == "table":
        TABLE.write_text(page(json.loads(DATA.read_text(encoding="utf-8"))), encoding="utf-8")
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    return record(options.out)


def record(out: Path) -> int:
    """Run every tool over every subject; 1 if a subject was not run."""
    started = time.monotonic()
    facts, known = gpu_facts(), subjects()
    with tempfile.TemporaryDirectory() as folder:
        for number, subject in enumerate(known):
            _compile(
                Path(folder), number, subject, f"sm_{facts.capability[0]}{facts.capability[1]}"
            )
        with ThreadPoolExecutor(len(TOOLS)) as pool:
            logs = list(pool.map(lambda tool: watch(tool, Path(folder), len(known)), TOOLS))
    version = subprocess.run(
        ["compute-sanitizer", "--version"], capture_output=True, text=True, check=True
    ).stdout
    tools, lost = {}, []
    for tool, (log, missing) in zip(TOOLS, logs, strict=True):
        (out / f"{tool}.log").write_text(log, encoding="utf-8")
        found = read(log)
        tools[tool] = {
            subject.name: [asdict(each) for each in found.get(symbol(number), ())]
            for number, subject in enumerate(known)
            if symbol(number) in found
        }
        lost += [f"{tool}: {known[number].name}" for number in missing]
    document = {
        "gpu": facts.name, "driver": facts.driver, "nvrtc": toolchain(),
        "sanitizer": version.strip().splitlines()[-1], "date": datetime.now(UTC).date().isoformat(),
        "subjects": [subject.name for subject in known], "not_run": lost, "tools": tools,
    }  # fmt: skip
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    (out / "sanitizer.json").write_text(text, encoding="utf-8")
    counts = {tool: len(found) for tool, found in tools.items()}
    print(f"{len(known)} kernels, kernels with findings {counts}, not run {lost}")
    print(f"{time.monotonic() - started:.1f} s")
    return int(bool(lost))


def _compile(folder: Path, number: int, subject: Subject, architecture: str) -> None:
    # A name of its own for each subject tells whose findings are whose.
    options = (*OPTIONS, f"-D{subject.kernel}={symbol(number)}")
    made = compile_text(
        subject.text, subject.file, arch=architecture, options=options, expressions=()
    )
    (folder / f"{number}.cubin").write_bytes(made.data)


def watch(
    tool: str,
    folder: Path,
    count: int,
    command: Sequence[str] = (sys.executable, "-m", "scripts.sanitizer.launches"),
    prefix: Sequence[str] = ("compute-sanitizer",),
) -> tuple[str, list[int]]:
    """Return a tool's log of all subjects, and the subjects that it did not get to run.

    A subject that loses the GPU ends its process; the others go on in a new one.

    Args:
        tool: Such as ``memcheck``.
        folder: Of the cubins.
        count: How many subjects there are.
        command: What launches subjects.
        prefix: What watches it; empty in tests.
    """
    options = ["--tool", tool, "--destroy-on-device-error", "kernel", "--show-backtrace", "no"]
    options += ["--print-limit", str(_REPORTS_MAX)]
    watched = [*prefix, *options, *command] if prefix else list(command)
    deadline = time.monotonic() + _TOOL_S
    left, logs, missing = list(range(count)), [], []
    while left and time.monotonic() < deadline:
        log = _output([*watched, str(folder), *map(str, left)], deadline - time.monotonic())
        logs.append(log)
        ended = {int(row.split()[1]) for row in log.splitlines() if row.startswith(ENDED)}
        if not ended & set(left):
            # Not even the first one ended: leave it out, so that the others are run.
            missing.append(left[0])
            left = left[1:]
        left = [number for number in left if number not in ended]
    return "".join(logs), missing + left


def _output(command: Sequence[str], seconds: float) -> str:
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            return process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return process.communicate()[0]


def page(document: Mapping[str, Any]) -> str:
    """Return the text of ``docs/sanitizer.md``."""
    recorded = {
        tool: {name: [_found(each) for each in found] for name, found in kernels.items()}
        for tool, kernels in document["tools"].items()
    }
    names = set(document["subjects"])
    compared = rows([subject for subject in subjects() if subject.name in names], recorded)
    agreeing = sum(row.agree for row in compared)
    origin = ", ".join(document[part] for part in ("gpu", "sanitizer", "date"))
    lines = [
        "# compute-sanitizer and the simulator on the same kernels",
        "",
        f"{origin}, driver {document['driver']}. `python -m scripts.sanitizer_table record` runs",
        "the tools, `python -m scripts.sanitizer_table table` the simulator, and writes this page.",
        f"{len(names)} kernels; {agreeing} of {len(compared)} rows agree: the same class of fault,",
        "and a source line in common. The others come first, with the reason. Neither side reports",
        "a barrier that the missing threads would never come to again, because they exit.",
        "",
        "| kernel | fault | compute-sanitizer | simulator | agree |",
        "|---|---|---|---|---|",
    ]
    lines += [_cells(row) for row in sorted(compared, key=lambda row: row.agree)]
    if document["not_run"]:
        lines += ["", f"Not run: {'; '.join(document['not_run'])}."]
    return "\n".join(lines) + "\n"


def _found(about: Mapping[str, Any]) -> Found:
    found = Found(**{**about, "lines": tuple(about["lines"])})
    # Its own words stand where no class was known when it was recorded.
    return replace(found, fault=class_of(found.fault))


def _cells(row: Row) -> str:
    theirs = ", ".join(f"{tool} {_words(lines)}" for tool, lines in row.sanitizer) or "–"
    mine = _words(row.simulator) if row.simulator else "–"
    verdict = "yes" if row.agree else f"no: {row.reason}"
    name = row.subject if row.planted else f"{row.subject} (right)"
    return f"| {name} | {row.fault or '–'} | {theirs} | {mine} | {verdict} |"


def _words(lines: Sequence[int]) -> str:
    return f"line {' '.join(map(str, lines))}"


if __name__ == "__main__":
    sys.exit(main())
