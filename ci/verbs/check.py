"""``flopwatch check``: is every stage right? Prints, records nothing."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from ci.measure.session import SideRun, run_sides
from ci.measure.sides import resolve_one
from ci.report.terminal import case_line
from ci.report.untrusted import code, prose
from ci.results import codec
from ci.results.model import CaseResult, RunRecord, Status
from ci.verbs.context import Request, prepare, require_results, require_suite
from ci.verbs.progress import Progress


def run(request: Request, *, form: str) -> int:
    """Check the working tree; 1 if a case did not pass."""
    context = prepare(request)
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="flopwatch-") as scratch:
        side = resolve_one(None, suite=context.suite, here=context.here, scratch=Path(scratch))
        require_suite([side])
        side_run = SideRun(side, context.plan, context.machine)
        run_sides([side_run], context.plan, progress=progress.show, keep=lambda *_: None)
    progress.end()
    record = side_run.record()
    require_results(record)
    sys.stdout.write(_FORMS[form](record))
    return int(any(case.status is not Status.PASSED for case in record.cases))


def _text(record: RunRecord) -> str:
    rows = [case_line(case) for case in record.cases]
    passed = sum(case.status is Status.PASSED for case in record.cases)
    launches = sum(len(stage.subchecks) for stage in record.stages) + len(record.cases)
    rows.append(f"{passed} of {len(record.cases)} cases passed, {launches} launches checked")
    return "\n".join(rows) + "\n"


def _json(record: RunRecord) -> str:
    rows = [codec.encode(case) for case in record.cases]
    return json.dumps(rows, indent=2, allow_nan=False) + "\n"


def _markdown(record: RunRecord) -> str:
    rows = ["| case | status | reason |", "|---|---|---|"]
    rows += [_row(case) for case in record.cases]
    return "\n".join(rows) + "\n"


def _row(case: CaseResult) -> str:
    return f"| {code(case.id)} | {case.status.value} | {prose(case.reason)} |"


_FORMS = {"text": _text, "json": _json, "markdown": _markdown}
