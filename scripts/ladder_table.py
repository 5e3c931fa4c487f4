"""Writes the ladder table of the README from the newest committed record of the simulator.

``python scripts/ladder_table.py`` rewrites the text between the markers; a test compares it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ci.results.model import CaseResult, RunRecord, StageResult
from ci.results.store import load_all, write_text

ROOT = Path(__file__).resolve().parents[1]
BEGIN = "<!-- ladder table: begin (scripts/ladder_table.py) -->"
END = "<!-- ladder table: end -->"
SIZE = {"M": 256, "N": 256, "K": 256}
ARCH = "sm_90"


def main() -> int:
    """Rewrite the README."""
    path = ROOT / "README.md"
    write_text(path, with_table(path.read_text(encoding="utf-8"), newest(ROOT / "records")))
    return 0


def newest(records: Path) -> RunRecord:
    """Return the newest complete record of the simulator."""
    complete = [
        record
        for record in load_all(records)
        if record.complete and not record.selection and record.machine.device == "simulator"
    ]
    if not complete:
        msg = f"{records}: no complete record of the simulator (flopwatch measure makes one)"
        raise SystemExit(msg)
    return complete[-1]


def with_table(text: str, record: RunRecord) -> str:
    """Return a README with the table of a record between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(record)}{END}{after}"


def table(record: RunRecord) -> str:
    """Return the ladder table as Markdown."""
    rows = [
        (
            "| stage | element loads per FMA | load sectors | shared wavefronts "
            "| bank conflicts | registers | resident blocks |"
        ),
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    stages = {(stage.ladder, stage.stage): stage for stage in record.stages}
    rows += [
        _row(case, stages[case.ladder, case.stage])
        for case in record.cases
        if case.size == SIZE and case.counters is not None
    ]
    size = " x ".join(str(extent) for extent in SIZE.values())
    commit = record.revision.commit[:12]
    rows += [
        "",
        f"Counted at {size} without a GPU, commit {commit}; registers and blocks on {ARCH}.",
    ]
    return "\n".join(rows) + "\n"


def _row(case: CaseResult, stage: StageResult) -> str:
    counters = case.counters
    static = next(figures for figures in stage.static if figures.arch == ARCH)
    if counters is None:
        msg = f"{case.id} has no counters"
        raise ValueError(msg)
    loads = counters.global_load_elements / (case.flops / 2)
    return (
        f"| [`{case.stage}`](kernels/{case.ladder}/{case.stage}.cu) | {loads:.4g} "
        f"| {counters.global_load_sectors:,} "
        f"| {counters.shared_load_wavefronts + counters.shared_store_wavefronts:,} "
        f"| {counters.shared_load_conflicts + counters.shared_store_conflicts:,} "
        f"| {static.registers} | {static.resident_blocks} |"
    )


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
