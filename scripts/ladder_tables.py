"""The tables of docs/ladders.md: every ladder but SGEMM, at each size that is timed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ci.results.model import CaseResult, RunRecord, StageResult
from dashboards.formatting import significant
from dashboards.timing import median_s

COPY = "copy_bytes_per_s"
ARCH = "sm_90"
_DASH = "–"
_PERF, _CHECK = "perf", "check"
_COLUMNS = (
    "stage", "ms", "TB/s", "% of copy", "TFLOP/s", "× baseline", "registers", "load sectors",
    "shared wavefronts", "bank conflicts",
)  # fmt: skip


def ladder_tables(timed: RunRecord | None, counted: RunRecord | None, *, but: str) -> str:
    """Return the ladders as Markdown, a section each; empty without a record of a GPU.

    Args:
        timed: The record that has the times.
        counted: The record that has the counters.
        but: A ladder that is shown elsewhere.
    """
    if timed is None:
        return ""
    sections = []
    for ladder in dict.fromkeys(case.ladder for case in timed.cases if case.ladder != but):
        sections.append(f"## {ladder}\n")
        cases = [case for case in timed.cases if case.ladder == ladder and case.role == _PERF]
        for size in dict.fromkeys(tuple(case.size.items()) for case in cases):
            here = [case for case in cases if tuple(case.size.items()) == size]
            sections.append(_table(here, timed, counted))
    return "\n".join([*sections, _caption(timed, counted)]) + "\n"


def _table(cases: Sequence[CaseResult], timed: RunRecord, counted: RunRecord | None) -> str:
    label = ", ".join(f"{axis} = {extent}" for axis, extent in cases[0].size.items())
    rows = [
        f"{label}: {cases[0].compulsory_bytes / 1e6:,.0f} MB at least{_baseline_words(cases)}\n",
        f"| {' | '.join(_COLUMNS)} |",
        f"|---{'|---:' * (len(_COLUMNS) - 1)}|",
    ]
    for case in cases:
        link = f"[`{case.stage}`](../kernels/{case.ladder}/{case.stage}.cu)"
        figures = [*_times(case, timed), *_static(case, timed), *_counts(case, counted)]
        rows.append(f"| {link} | {' | '.join(figures)} |")
    return "\n".join(rows) + "\n"


def _baseline_words(cases: Sequence[CaseResult]) -> str:
    medians = [median for case in cases if (median := median_s(case.baseline)) is not None]
    if not medians:
        return "; no baseline."
    return f"; baseline {significant(1e3 * statistics.median(medians))} ms."


def _times(case: CaseResult, timed: RunRecord) -> tuple[str, ...]:
    time_s, baseline_s = median_s(case.cold), median_s(case.baseline)
    if time_s is None:
        return (_DASH,) * 5
    rate = case.compulsory_bytes / time_s
    copy = timed.machine.peaks.get(COPY)
    return (
        significant(1e3 * time_s),
        f"{rate / 1e12:.2f}",
        f"{100 * rate / copy:.1f}" if copy else _DASH,
        f"{case.flops / time_s / 1e12:.2f}" if case.flops else _DASH,
        f"{baseline_s / time_s:.2f}" if baseline_s else _DASH,
    )


def _static(case: CaseResult, timed: RunRecord) -> tuple[str]:
    stage = _stage(case, timed)
    registers = [figures.registers for figures in stage.static if figures.arch == ARCH]
    return (" / ".join(map(str, registers)) if registers else _DASH,)


def _counts(case: CaseResult, counted: RunRecord | None) -> tuple[str, ...]:
    """Return the counters of the stage's first check size, if they are of the same source."""
    same = [
        other
        for other in (counted.cases if counted else ())
        if (other.ladder, other.stage, other.role) == (case.ladder, case.stage, _CHECK)
    ]
    if not same or same[0].counters is None:
        return (_DASH,) * 3
    counters = same[0].counters
    return (
        f"{counters.global_load_sectors:,}",
        f"{counters.shared_load_wavefronts + counters.shared_store_wavefronts:,}",
        f"{counters.shared_load_conflicts + counters.shared_store_conflicts:,}",
    )


def _stage(case: CaseResult, record: RunRecord) -> StageResult:
    return next(s for s in record.stages if (s.ladder, s.stage) == (case.ladder, case.stage))


def _caption(timed: RunRecord, counted: RunRecord | None) -> str:
    copy = timed.machine.peaks.get(COPY)
    told = (
        f"Medians of cold samples on {timed.machine.name}, commit {timed.revision.commit[:12]}; "
        "baselines in the same run: cuBLAS, PyTorch or a copy, as the ladder declares. TB/s: the "
        "least bytes over the time"
        + (f"; a copy moves {copy / 1e12:.2f} TB/s there." if copy else ".")
        + f" Registers: {ARCH}, a figure a kernel."
    )
    if counted:
        told += (
            " Counters: each ladder's first check size, without a GPU, commit "
            f"{counted.revision.commit[:12]}."
        )
    return told
