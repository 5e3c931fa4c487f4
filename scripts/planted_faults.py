"""Runs the check on every planted fault and says what it found.

``python -m scripts.planted_faults`` takes some minutes. It writes ``docs/data/planted-faults.json``
and ``docs/planted-faults.md``. The catalogues were committed before any detector was run on them;
misses stay listed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
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
from scripts.planted.own import LOOP, OWN
from scripts.planted.reasons import REASONS
from scripts.planted.twins import KERNELS, TWINS, check_twin
from scripts.suite_ladders import ROOT

DATA = ROOT / "docs" / "data" / "planted-faults.json"
PAGE = ROOT / "docs" / "planted-faults.md"
SUITE = ROOT / "kernels"
ALL = (*CATALOGUE, *OWN)

FOUND_BY = {
    "race": ("race", "asynchronous copy"),
    "inactive": ("inactive lane", "member mask", "warp instruction", "partial warp"),
    "copy": ("asynchronous copy", "race", "uninitialised"),
}
"""Expected kind → the words of which a finding's kind holds one; else the kind itself."""
_PLACE = re.compile(r"([\w./]+\.cuh?):(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What the check said of one fault."""

    name: str
    caught: bool
    found: str
    """The finding nearest to what was expected, else the sentence about the numbers."""
    right_kind: bool
    right_line: bool
    """Whether a finding of the right kind is at a line that the catalogue names."""
    named: bool
    """Whether a sentence says which elements are wrong and where they lie."""
    shared: bool
    """Whether it says what the catalogue expects them to share, where that was written down."""


def main() -> int:
    """Run every fault; return 1 if one was not caught."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        outcomes = list(pool.map(evaluate, ALL))
    text = json.dumps([asdict(outcome) for outcome in outcomes], indent=1, ensure_ascii=False)
    DATA.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(outcomes), encoding="utf-8")
    print(totals(outcomes))
    return int(not all(outcome.caught for outcome in outcomes))


def evaluate(planted: Planted) -> Outcome:
    """Return what the check says of a suite that has the fault."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        own = planted.source in TWINS
        family, _ = planted.source.split("/")
        for part in (family,) if own else (family, "include"):
            shutil.copytree((KERNELS if own else SUITE) / part, folder / part)
        edited = folder / (planted.file or planted.source)
        text = edited.read_text(encoding="utf-8")
        edited.write_text(text.replace(planted.old, planted.new), encoding="utf-8")
        checked = (check_twin if own else _check_stage_of_suite)(folder, planted.source)
        lines = {
            path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8").splitlines()
            for path in folder.rglob("*.cu*")
        }
    return _outcome(planted, checked, lines)


def _check_stage_of_suite(folder: Path, source: str) -> StageCheck:
    suite = load_suite(folder)
    ladder = suite.ladders[0]
    stages = (stage for stage in ladder.stages if isinstance(stage, CudaStage))
    stage = next(stage for stage in stages if f"{ladder.name}/{stage.source}" == source)
    built = build_stage(suite, ladder, stage, architectures=(), cache=cache_folder())
    return check_stage(SimulatorDevice({}), built, ladder, stage)


def _outcome(planted: Planted, checked: StageCheck, lines: dict[str, list[str]]) -> Outcome:
    findings = [*checked.findings, *_endless(checked)]
    words = FOUND_BY.get(planted.kind, (planted.kind,))
    kind = [f for f in findings if planted.kind and any(word in f.kind for word in words)]
    at_line = [f for f in kind if _is_at(planted, f, lines)]
    details = [subcheck.detail for subcheck in checked.subchecks if not subcheck.passed]
    named = [detail for detail in details if "wrong, first" in detail]
    shared = [detail for detail in named if planted.shares and planted.shares in detail]
    best = next(iter([*at_line, *kind, *([] if shared else findings)]), None)
    found = f"{best.kind} at {best.file}:{best.line}" if best else next(iter(shared or details), "")
    return Outcome(
        name=planted.name,
        caught=checked.status is not Status.PASSED,
        found=found or checked.reason,
        right_kind=bool(kind),
        right_line=bool(at_line),
        named=bool(named),
        shared=bool(shared),
    )


def _endless(checked: StageCheck) -> list[Finding]:
    """Return the loop that a launch did not leave, as a finding."""
    place = _PLACE.search(checked.reason) if checked.status is Status.TIMEOUT else None
    if place is None:
        return []
    return [
        Finding(
            kind=f"endless {LOOP}",
            kernel="",
            file=place[1],
            line=int(place[2]),
            count=1,
            example=checked.reason,
            subcheck="",
        )
    ]


def _is_at(planted: Planted, finding: Finding, lines: dict[str, list[str]]) -> bool:
    """Return whether a finding's line holds one of the fault's texts, or is the edited line."""
    rows = lines.get(finding.file, [])
    line = rows[finding.line - 1] if 0 < finding.line <= len(rows) else ""
    edited = finding.file == (planted.file or planted.source) and line.strip() in {
        row.strip() for row in planted.new.splitlines() if row.strip()
    }
    return edited or any(text in line for text in planted.at)


def totals(outcomes: Sequence[Outcome]) -> str:
    """Return the figures that count, in one paragraph."""
    expected = {planted.name: planted for planted in ALL}
    hazards = [o for o in outcomes if expected[o.name].expected == HAZARD]
    numbers = [o for o in outcomes if expected[o.name].expected != HAZARD]
    told = [o for o in numbers if expected[o.name].shares]
    caught = sum(o.caught for o in outcomes)
    right = sum(o.right_line for o in hazards)
    named = sum(o.named for o in numbers)
    sentence = (
        f"{caught} of {len(outcomes)} caught ({100 * caught / len(outcomes):.0f} %, aim 95). Of "
        f"{len(hazards)} hazards {right} at the right line ({100 * right / len(hazards):.0f} %, "
        f"aim 90), {sum(o.right_kind for o in hazards)} of the right kind. Of {len(numbers)} that "
        f"change numbers only, {named} name the wrong elements and where they lie"
    )
    if told:
        shared = sum(o.shared for o in told)
        sentence += f"; {shared} of {len(told)} in the words that were written down beforehand"
    return f"{sentence}."


def page(outcomes: Sequence[Outcome]) -> str:
    """Return the page: the totals, then a table for each catalogue, the misses first."""
    told = {outcome.name: outcome for outcome in outcomes}
    stages = [told[planted.name] for planted in CATALOGUE]
    own = [told[planted.name] for planted in OWN]
    return (
        "# Planted faults\n\n"
        "One edit each, committed before any detector was run on them;\n"
        "`python -m scripts.planted_faults` makes this page.\n\n"
        f"Together: {totals(outcomes)}\n\n"
        "## Stages of the suite\n\n"
        "`scripts/planted/catalogue.py`.\n\n"
        f"{totals(stages)}\n\n{_table(stages)}\n"
        "## Kernels of their own\n\n"
        "`scripts/planted/own.py`: what the stages do not use. Without an edit these kernels give\n"
        "right numbers and no finding (`tests/scripts/test_planted_twins.py`). What the\n"
        "first run found, and what the simulator has learnt since, is in `decisions.md`.\n\n"
        f"{totals(own)}\n\n{_table(own)}\n"
        "## Not found as expected, and why\n\n"
        + "".join(f"- **{o.name}.** {REASONS.get(o.name, '')}\n" for o in not_as_expected(outcomes))
    )


def not_as_expected(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return those missed, at another line or of another kind, or in other words."""
    expected = {planted.name: planted for planted in ALL}
    return [o for o in outcomes if _fits(expected[o.name], o) not in {"line", "words", "named"}]


def _table(outcomes: Sequence[Outcome]) -> str:
    expected = {planted.name: planted for planted in ALL}
    rows = [
        "| fault | kernel | expected | found | as expected |",
        "|---|---|---|---|---|",
    ]
    for outcome in sorted(outcomes, key=lambda o: (o.caught, o.right_line or o.named)):
        planted = expected[outcome.name]
        found = outcome.found.replace("|", "\\|") if outcome.caught else "**missed**"
        kind = planted.kind or planted.shares or planted.expected
        start = f"| {outcome.name} | `{planted.source}` | {kind} | {found} "
        rows.append(f"{start}| {_fits(planted, outcome)} |")
    return "\n".join(rows) + "\n"


def _fits(planted: Planted, outcome: Outcome) -> str:
    """Return in a word or two whether a fault was found as the catalogue expects."""
    if planted.expected == HAZARD:
        return "line" if outcome.right_line else "kind only" if outcome.right_kind else "other"
    if planted.shares:
        return "words" if outcome.shared else "other"
    return "named" if outcome.named else "other"


if __name__ == "__main__":
    sys.exit(main())
