"""``flopwatch explain``: one case on the simulator, counters and findings beside each line."""

from __future__ import annotations

import difflib
import json
import sys
from contextlib import closing
from pathlib import Path

from ci import origin
from ci.errors import UsageError
from ci.measure.errors import SetupError
from ci.measure.messages import Explain, Explained, SetupFailed
from ci.measure.pool import Ended, run_jobs
from ci.report import explanation as pages
from ci.results import codec
from ci.results.explanation import Explanation
from ci.results.model import Status
from ci.verbs.context import cache_folder, checkout_root
from kernels.suite import load_suite

_NEAREST = 3


def run(case: str, *, suite: str, form: str) -> int:
    """Print the explanation of a case; 1 if it did not pass, or could not be counted.

    A case of a size that only a GPU checks is counted from some of its blocks.

    Raises:
        UsageError: There is no such case, or its process did not end well.
        SetupError: A wheel is missing.
    """
    origin.loaded_from()
    folder = checkout_root() / suite
    _require(case, folder)
    explanation = _explain(Explain(suite=str(folder), cache=str(cache_folder()), case=case))
    forms = {
        "text": pages.text,
        "json": lambda each: json.dumps(codec.encode(each), indent=2, allow_nan=False) + "\n",
        "markdown": pages.markdown,
    }
    sys.stdout.write(forms[form](explanation))
    sampled = explanation.status is Status.SKIPPED and explanation.counters is not None
    return int(explanation.status is not Status.PASSED and not sampled)


def _require(case: str, folder: Path) -> None:
    """Refuse a case that the suite does not have.

    Raises:
        UsageError: Names the ids that are most like it.
    """
    known = [each.id for each in load_suite(folder).cases()]
    if case in known:
        return
    near = difflib.get_close_matches(case, known, n=_NEAREST, cutoff=0.0)
    msg = f"{case}: no such case, the nearest are {', '.join(near)} (flopwatch list shows them all)"
    raise UsageError(msg)


def _explain(job: Explain) -> Explanation:
    trouble = ""
    with closing(run_jobs([job], workers=1)) as events:
        for event in events:
            match event.said:
                case Explained():
                    return event.said.explanation
                case SetupFailed():
                    raise SetupError(event.said.message)
                case Ended():
                    trouble = event.said.trouble
    msg = f"{job.case}: the worker process {trouble or 'ended without a result'}"
    raise UsageError(msg)
