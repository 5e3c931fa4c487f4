"""``flopwatch compare``: two records, by the gate's rules, without running anything."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from ci.gate.compare import compare
from ci.gate.other_runs import timings_of_other_runs
from ci.gate.policy import exit_code
from ci.report import markdown, terminal
from ci.results import codec
from ci.results.store import load


def run(base: str, head: str, *, form: str) -> int:
    """Print the verdict on two record files and return the gate's exit code."""
    former, present = load(Path(base)), load(Path(head))
    result = compare(
        former,
        present,
        timings=timings_of_other_runs(former, present),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=0.0,
    )
    forms = {
        "text": lambda: terminal.verdict_table(result, 0),
        "json": lambda: codec.dumps(result),
        "markdown": lambda: markdown.report(result),
    }
    sys.stdout.write(forms[form]())
    return exit_code(result.verdict)
