"""``flopwatch measure``: one revision checked, counted or timed, and recorded."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from ci.measure.session import SideRun
from ci.measure.sides import resolve_one
from ci.results.model import Status
from ci.results.store import record_path
from ci.verbs.context import Request, prepare, require_results, require_suite
from ci.verbs.holding import held_gpu
from ci.verbs.keeping import run_and_keep


def run(request: Request, *, revision: str | None, records: str) -> int:
    """Write the record of a revision and print its path; 1 if a case did not pass."""
    context = prepare(request)
    with (
        tempfile.TemporaryDirectory(prefix="flopwatch-") as scratch,
        held_gpu(context.plan.device) as watch,
    ):
        side = resolve_one(revision, suite=context.suite, here=context.here, scratch=Path(scratch))
        require_suite([side])
        side_run = SideRun(side, context.plan, context.machine)
        (record,) = run_and_keep([side_run], context.plan, Path(records), timed_on=watch)
    require_results(record)
    sys.stdout.write(f"{record_path(Path(records), record)}\n")
    return int(any(case.status is not Status.PASSED for case in record.cases))
