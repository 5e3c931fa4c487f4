"""Counts every stage at the first size of its ladder that is timed, from a sample of its blocks.

``python -m scripts.large_sizes`` writes ``docs/data/large-sizes.json`` and ``docs/large-sizes.md``
in some twenty minutes, without a GPU: what ``flopwatch explain`` counts, and what that costs.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from ci.measure.explain import answer_explain
from ci.measure.messages import Answer, Explain, Explained
from ci.verbs.context import cache_folder
from kernels.spec import CudaStage, Role
from scripts.suite_ladders import ROOT, suite

DATA = ROOT / "docs" / "data" / "large-sizes.json"
PAGE = ROOT / "docs" / "large-sizes.md"


def main() -> int:
    """Count, and write the record and the page; 1 if a case could not be counted."""
    with ProcessPoolExecutor(
        len(os.sched_getaffinity(0)),
        mp_context=multiprocessing.get_context("spawn"),
        # Each case's peak of memory is its process's.
        max_tasks_per_child=1,
    ) as pool:
        counted = list(pool.map(count, cases()))
    text = json.dumps(counted, indent=1, ensure_ascii=False, allow_nan=False)
    DATA.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(counted), encoding="utf-8")
    return int(not all(each["counting"] for each in counted))


def cases() -> list[str]:
    """Return the ids of the CUDA stages' cases at their ladder's first timed size."""
    first: dict[tuple[str, str], str] = {}
    for case in suite().cases():
        if isinstance(case.stage, CudaStage) and case.size.role is Role.PERF:
            first.setdefault((case.ladder.name, case.stage.name), case.id)
    return list(first.values())


def count(case: str) -> Mapping[str, Any]:
    """Return how a case was counted, its loads per output, and what counting took."""
    said: list[Answer] = []
    started = time.monotonic()
    job = Explain(suite=str(ROOT / "kernels"), cache=str(cache_folder()), case=case)
    answer_explain(job, said.append)
    seconds = time.monotonic() - started
    found = next(answer.explanation for answer in said if isinstance(answer, Explained))
    loads = found.counters.global_load_elements if found.counters else None
    return {
        "case": case,
        "counting": found.counting,
        "reason": found.reason,
        "findings": len(found.findings),
        "loads": loads,
        "output_elements": found.output_elements,
        "flops": found.flops,
        "seconds": round(seconds, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def page(counted: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of ``docs/large-sizes.md``."""
    exact = [each for each in counted if each["counting"].endswith("exact")]
    slowest = max(counted, key=lambda each: each["seconds"])
    peak = max(each["peak_mb"] for each in counted)
    lines = [
        "# Counters of large sizes",
        "",
        "Every CUDA stage at the first size of its ladder that is timed, counted without a GPU",
        "from some of its blocks (`python -m scripts.large_sizes`; one case is",
        "`flopwatch explain CASE`). A load that serves T operations is the textbook's tile of T.",
        "",
        f"{len(exact)} of {len(counted)} are exact, the others say why they are estimates. The",
        f"slowest took {slowest['seconds']:,.0f} s beside other work on two cores, the largest",
        f"{peak:,} MB.",
        "",
        "| case | counted | loads per output | operations a load serves | seconds | MB |",
        "|---|---|---:|---:|---:|---:|",
    ]
    return "\n".join([*lines, *map(_row, counted)]) + "\n"


def _row(each: Mapping[str, Any]) -> str:
    per_output = serves = "–"
    if each["loads"] is not None:
        per_output = f"{each['loads'] / each['output_elements']:,.4g}"
        if each["flops"] > each["loads"] > 0:
            serves = f"{each['flops'] / each['loads']:,.4g}"
    how = each["counting"] or f"not: {each['reason']}"
    how += f"; {each['findings']} findings" if each["findings"] else ""
    cost = f"{each['seconds']:,.1f} | {each['peak_mb']:,}"
    return f"| `{each['case']}` | {how} | {per_output} | {serves} | {cost} |"


if __name__ == "__main__":
    sys.exit(main())
