"""Runs the check on every planted fault and says what it found.

``python -m scripts.planted_faults`` takes some minutes. It writes ``docs/data/planted-faults.json``
and ``docs/planted-faults.md``. The catalogue was committed before any detector was run on it;
misses stay listed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from ci.check.run import StageCheck, check_stage
from ci.devices.simulator import SimulatorDevice
from ci.results.model import Finding, Status
from ci.verbs.context import cache_folder
from kernels.build import build_stage
from kernels.spec import CudaStage
from kernels.suite import load_suite
from scripts.planted.catalogue import CATALOGUE, HAZARD, Planted
from scripts.suite_ladders import ROOT

DATA = ROOT / "docs" / "data" / "planted-faults.json"
PAGE = ROOT / "docs" / "planted-faults.md"
SUITE = ROOT / "kernels"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What the check said of one fault."""

    name: str
    caught: bool
    found: str
    """The finding nearest to what was expected, else the first sentence about the numbers."""
    right_kind: bool
    right_line: bool
    """Whether a finding of the right kind is at a line that the catalogue names."""
    named: bool
    """Whether a sentence says which elements are wrong and where they lie."""


def main() -> int:
    """Run every fault; return 1 if one was not caught."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        outcomes = list(pool.map(evaluate, CATALOGUE))
    text = json.dumps([asdict(outcome) for outcome in outcomes], indent=1, ensure_ascii=False)
    DATA.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(outcomes), encoding="utf-8")
    print(totals(outcomes))
    return int(not all(outcome.caught for outcome in outcomes))


def evaluate(planted: Planted) -> Outcome:
    """Return what the check says of a suite that has the fault."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        ladder_name, source = planted.source.split("/")
        for part in (ladder_name, "include"):
            shutil.copytree(SUITE / part, folder / part)
        edited = folder / (planted.file or planted.source)
        text = edited.read_text(encoding="utf-8")
        edited.write_text(text.replace(planted.old, planted.new), encoding="utf-8")
        suite = load_suite(folder)
        ladder = suite.ladders[0]
        stage = next(s for s in ladder.stages if isinstance(s, CudaStage) and s.source == source)
        built = build_stage(suite, ladder, stage, architectures=(), cache=cache_folder())
        checked = check_stage(SimulatorDevice({}), built, ladder, stage)
        lines = {
            path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8").splitlines()
            for path in folder.rglob("*.cu*")
        }
    return _outcome(planted, checked, lines)


def _outcome(planted: Planted, checked: StageCheck, lines: dict[str, list[str]]) -> Outcome:
    kind = [f for f in checked.findings if planted.kind and planted.kind in f.kind]
    at_line = [f for f in kind if _is_at(planted, f, lines)]
    details = [subcheck.detail for subcheck in checked.subchecks if not subcheck.passed]
    best = next(iter([*at_line, *kind, *checked.findings]), None)
    found = f"{best.kind} at {best.file}:{best.line}" if best else next(iter(details), "")
    return Outcome(
        name=planted.name,
        caught=checked.status is not Status.PASSED,
        found=found or checked.reason,
        right_kind=bool(kind),
        right_line=bool(at_line),
        named=any("wrong, first" in detail for detail in details),
    )


def _is_at(planted: Planted, finding: Finding, lines: dict[str, list[str]]) -> bool:
    """Return whether a finding's line holds one of the fault's texts, or is the edited line."""
    rows = lines.get(finding.file, [])
    line = rows[finding.line - 1] if 0 < finding.line <= len(rows) else ""
    edited = finding.file == (planted.file or planted.source) and line.strip() in {
        row.strip() for row in planted.new.splitlines() if row.strip()
    }
    return edited or any(text in line for text in planted.at)


def totals(outcomes: list[Outcome]) -> str:
    """Return the figures that count, in one paragraph."""
    expected = {planted.name: planted for planted in CATALOGUE}
    hazards = [o for o in outcomes if expected[o.name].expected == HAZARD]
    numbers = [o for o in outcomes if expected[o.name].expected != HAZARD]
    caught = sum(o.caught for o in outcomes)
    right = sum(o.right_line for o in hazards)
    named = sum(o.named for o in numbers)
    return (
        f"{caught} of {len(outcomes)} caught ({100 * caught / len(outcomes):.0f} %, aim 95). Of "
        f"{len(hazards)} hazards {right} at the right line ({100 * right / len(hazards):.0f} %, "
        f"aim 90), {sum(o.right_kind for o in hazards)} of the right kind. Of {len(numbers)} that "
        f"change numbers only, {named} name the wrong elements and where they lie."
    )


def page(outcomes: list[Outcome]) -> str:
    """Return the page: the totals, then a row a fault, the misses first."""
    expected = {planted.name: planted for planted in CATALOGUE}
    rows = [
        "| fault | stage | expected | found | line |",
        "|---|---|---|---|---|",
    ]
    for outcome in sorted(outcomes, key=lambda o: (o.caught, o.right_line or o.named)):
        planted = expected[outcome.name]
        found = outcome.found.replace("|", "\\|") if outcome.caught else "**missed**"
        line = "–" if planted.expected != HAZARD else "right" if outcome.right_line else "other"
        kind = planted.kind or planted.expected
        rows.append(f"| {outcome.name} | `{planted.source}` | {kind} | {found} | {line} |")
    return (
        "# Planted faults\n\n"
        "One edit each in a real stage (`scripts/planted/catalogue.py`), committed before any\n"
        "detector was run on them; `python -m scripts.planted_faults` makes this page.\n\n"
        f"{totals(outcomes)}\n\n" + "\n".join(rows) + "\n"
    )


if __name__ == "__main__":
    sys.exit(main())
