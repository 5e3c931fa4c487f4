"""``flopwatch gate``: base against head, verdict.json, report.md, a page and an exit code."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ci.errors import EXIT_INTERRUPTED, UsageError
from ci.gate.acknowledge import Acknowledgement, new_lines, parse
from ci.gate.compare import compare
from ci.gate.policy import exit_code
from ci.gate.settings import SENSITIVE, STANDARD
from ci.measure.gate_timing import GateTiming, TimingPlan, cases_to_time, time_gate
from ci.measure.nvml import GpuWatch
from ci.measure.session import SideRun
from ci.measure.sides import Side, Sides, resolve
from ci.report import markdown, terminal
from ci.results import codec
from ci.results.model import GateResult, RunRecord
from ci.results.store import load_all, save_gate, save_gate_run, write_text
from ci.verbs.context import (
    Context,
    Request,
    ledger_folder,
    note,
    prepare,
    require_suite,
)
from ci.verbs.holding import held_gpu
from ci.verbs.keeping import run_and_keep
from dashboards.build import build_site

ACKNOWLEDGED = "acknowledged.txt"
"""File in a suite's folder with the changes its authors accept."""

SETTINGS = {settings.name: settings for settings in (STANDARD, SENSITIVE)}


@dataclass(frozen=True, kw_only=True, slots=True)
class TimingRequest:
    """What the user asked of the timing."""

    measure_identical: bool
    """Whether to time identical code too."""
    setting: str
    """``standard`` or ``sensitive``."""
    budget_s: float
    """Time for all rounds (s)."""


def run(
    request: Request,
    timing: TimingRequest,
    *,
    base: str | None,
    head: str | None,
    out: str,
    form: str,
) -> int:
    """Run the gate and return its exit code."""
    started = datetime.now(UTC)
    clock = time.monotonic()
    context = prepare(request)
    with (
        tempfile.TemporaryDirectory(prefix="flopwatch-") as scratch,
        held_gpu(context.plan.device) as watch,
    ):
        sides = resolve(
            base=base, head=head, suite=context.suite, here=context.here, scratch=Path(scratch)
        )
        if sides.note:
            note(sides.note)
        # Base first: where commits tell no order, pages go by the start of the runs.
        base_first = [SideRun(s, context.plan, context.machine) for s in reversed(_both(sides))]
        runs = base_first[::-1]
        require_suite(_both(sides))
        if watch and not timing.measure_identical:
            _require_difference(sides)
        records = run_and_keep(runs, context.plan, Path(out) / "records")
        _require_cases(runs[0], context)
        timed = _timed(sides, records, context, timing, watch, Path(out)) if watch else None
        result = compare(
            records[1] if len(records) > 1 else None,
            records[0],
            timings=timed.verdicts if timed else {},
            acknowledgements=_acknowledgements(sides),
            started=started.isoformat(timespec="seconds"),
            seconds=time.monotonic() - clock,
            notes=[*_notes(sides, runs, records), *_timing_notes(timed)],
        )
    page = _write(result, records, context, Path(out))
    sys.stdout.write(_FORMS[form](result))
    if form == "text":
        sys.stdout.write(f"report  {Path(out) / 'report.md'}\npage    {page}\n")
    return EXIT_INTERRUPTED if timed and timed.interrupted else exit_code(result.verdict)


def _require_difference(sides: Sides) -> None:
    """Refuse to compare a revision with itself: nothing would be timed."""
    if sides.base is not None and sides.base.revision.commit == sides.head.revision.commit:
        msg = (
            f"base and head are both {sides.head.revision.commit}: identical code is not timed "
            "(name another --base, or ask for it with --measure-identical)"
        )
        raise UsageError(msg)


def _timed(
    sides: Sides,
    records: Sequence[RunRecord],
    context: Context,
    timing: TimingRequest,
    watch: GpuWatch,
    out: Path,
) -> GateTiming | None:
    """Time what passed on both sides and differs, and write every sample."""
    if sides.base is None:
        return None
    head, base = records
    cases = cases_to_time(base, head, measure_identical=timing.measure_identical)
    if not cases:
        return None
    found = time_gate(
        sides.base,
        sides.head,
        context.machine,
        cases,
        TimingPlan(
            bench=context.plan.device,
            cache=context.plan.cache,
            watch=watch,
            settings=SETTINGS[timing.setting],
            budget_s=timing.budget_s,
            ledger=ledger_folder(),
        ),
        say=note,
    )
    save_gate_run(out / "gate-run.json", found.run)
    case_s = sum(found.run.case_s.values())
    note(
        f"timed {len(cases)} cases in {found.run.fixed_s + case_s:.1f} s: {found.run.fixed_s:.1f} "
        f"s for processes, {case_s / len(cases):.2f} s a case"
    )
    return found


def _timing_notes(timed: GateTiming | None) -> list[str]:
    """Return what a reader must know of the timing: the controls, and whether it was cut short."""
    if timed is None:
        return []
    cut = "timing was interrupted: cases that were open then are undecided"
    return [timed.controls, *([cut] if timed.interrupted else [])]


def _both(sides: Sides) -> list[Side]:
    """Return head, then base if there is one."""
    return [sides.head] if sides.base is None else [sides.head, sides.base]


def _require_cases(head: SideRun, context: Context) -> None:
    if not head.error and not head.cases and context.plan.selection:
        msg = f"-k '{context.plan.selection}' selects no case that runs on {context.plan.device}"
        raise UsageError(f"{msg} (flopwatch list shows the cases)")


def _notes(sides: Sides, runs: Sequence[SideRun], records: Sequence[RunRecord]) -> list[str]:
    """Return what a reader of the verdict must know."""
    notes = [sides.note] if sides.note else []
    left_out = len(runs[0].left_out)
    if left_out:
        notes.append(f"{left_out} cases are timed on a GPU only and were not part of this gate")
    if len(records) > 1 and not sides.base_has_suite():
        notes.append("base has no such suite: every case is new")
    return notes


def _acknowledgements(sides: Sides) -> Sequence[Acknowledgement]:
    """Return the acknowledgements that head adds; without a base every line is one."""
    head = _text(sides.head.suite / ACKNOWLEDGED)
    base = _text(sides.base.suite / ACKNOWLEDGED) if sides.base else ""
    parse(head)
    return parse(new_lines(base, head))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _write(result: GateResult, records: Sequence[RunRecord], context: Context, out: Path) -> Path:
    """Write verdict, report and page; return the page's path."""
    save_gate(out / "verdict.json", result)
    write_text(out / "report.md", markdown.report(result))
    history = load_all(context.here / "records")
    known = {record.run for record in records}
    shown = [*(record for record in history if record.run not in known), *records]
    return build_site(shown, [result], out / "site")


def _table(result: GateResult) -> str:
    live = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if live else 0
    return terminal.verdict_table(result, width, colour=live and "NO_COLOR" not in os.environ)


_FORMS = {"text": _table, "json": codec.dumps, "markdown": markdown.report}
