"""Writes the tables of the README, docs/sizes.md and docs/ladders.md from committed records.

``python -m scripts.ladder_table`` rewrites the text between the markers; a test compares it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci.results.model import CaseResult, RunRecord, StageResult
from ci.results.store import load_all, record_path, write_text
from dashboards.formatting import significant
from dashboards.timing import median_s
from scripts import sweep_record
from scripts.ladder_tables import ladder_tables
from scripts.sweep_record import CPU, CUBLAS, SIZES, SizeSweep

ROOT = Path(__file__).resolve().parents[1]
LADDER = "ladder table"
LADDERS = "ladder tables"
SWEEP = "size table"
SGEMM = "sgemm"
COUNTED_SIZE = {"M": 256, "N": 256, "K": 256}
TIMED_SIZE = {"M": 4096, "N": 4096, "K": 4096}
ARCH = "sm_90"
_SIMULATOR, _GPU = "simulator", "cuda"
_DASH = "–"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """The records that the tables are made from."""

    counted: RunRecord | None
    """The newest commit's complete record of the simulator."""
    timed: RunRecord | None
    """The newest commit's complete record of a GPU."""
    sweep: SizeSweep | None


def main() -> int:
    """Rewrite the texts."""
    for path, text in rewritten(ROOT, sources(ROOT / "records")).items():
        write_text(path, text)
    return 0


def rewritten(root: Path, found: Sources) -> dict[Path, str]:
    """Return the text of each file that has a table, with the tables that the records give."""
    tables = {
        root / "README.md": (LADDER, ladder_table(found)),
        root / "docs" / "sizes.md": (SWEEP, size_table(found.sweep) if found.sweep else ""),
        root / "docs" / "ladders.md": (
            LADDERS,
            ladder_tables(found.timed, found.counted, but=SGEMM),
        ),
    }
    return {
        path: between_markers(path.read_text(encoding="utf-8"), name, table)
        for path, (name, table) in tables.items()
        if table
    }


def sources(records: Path, only: Collection[str] | None = None) -> Sources:
    """Return the records below a folder that count.

    Args:
        records: The folder.
        only: Files to consider, as ``records/MACHINE/COMMIT/RUN.json``; None: all.
    """
    loaded = [
        record
        for record in load_all(records)
        if only is None or str(record_path(Path(records.name), record)) in only
    ]
    complete = [each for each in loaded if each.complete and not each.selection]
    # By commit, not by run: an old commit can be measured later.
    complete.sort(key=lambda each: (each.revision.committed, each.started))
    newest = {each.machine.device: each for each in complete}
    return Sources(
        counted=newest.get(_SIMULATOR),
        timed=newest.get(_GPU),
        sweep=sweep_record.load(records),
    )


def between_markers(text: str, name: str, table: str) -> str:
    """Return a text with a table between the markers of that name.

    Raises:
        SystemExit: The markers are not there, each once.
    """
    begin, end = f"<!-- {name}: begin (scripts/ladder_table.py) -->", f"<!-- {name}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        msg = f"expected {begin!r} and then {end!r}, each once (put them where the table goes)"
        raise SystemExit(msg)
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{table}{end}{after}"


def ladder_table(found: Sources) -> str:
    """Return the ladder as Markdown: times where a GPU took them, counters beside them.

    Empty without any record.
    """
    main_record = found.timed or found.counted
    if main_record is None:
        return ""
    timed, counted = _cases(found.timed, TIMED_SIZE), _cases(found.counted, COUNTED_SIZE)
    stages = {(stage.ladder, stage.stage): stage for stage in main_record.stages}
    other = {(stage.ladder, stage.stage): stage for stage in _stages(found.counted)}
    columns = [
        *(("ms", "TFLOP/s", "% of cuBLAS", "% of FP32 peak") if found.timed else ()),
        "registers", "resident blocks", "element loads per FMA", "load sectors",
        "shared wavefronts", "bank conflicts",
    ]  # fmt: skip
    rows = [f"| stage | {' | '.join(columns)} |", f"|---{'|---:' * len(columns)}|"]
    for key in timed if found.timed else counted:
        stage, case = stages[key], timed.get(key)
        # A count of another source says nothing about this one.
        same = key in other and other[key].source_digest == stage.source_digest
        figures = [
            *(_time_figures(case, found.timed) if case and found.timed else ()),
            *_static_figures(stage),
            *_counter_figures(counted.get(key) if same else None),
        ]
        link = f"[`{stage.stage}`](kernels/{stage.ladder}/{stage.stage}.cu)"
        rows.append(f"| {link} | {' | '.join(figures)} |")
    return "\n".join([*rows, "", _caption(found)]) + "\n"


def _caption(found: Sources) -> str:
    told = []
    if found.timed:
        peak_tflops = found.timed.machine.peaks["float32_flop_per_s"] / 1e12
        told.append(
            f"Timed at {_size(TIMED_SIZE)} on {found.timed.machine.name}, commit "
            f"{found.timed.revision.commit[:12]}: median of cold samples; cuBLAS in the same run; "
            f"FP32 peak {peak_tflops:.1f} TFLOP/s."
        )
    if found.counted:
        told.append(
            f"Counted at {_size(COUNTED_SIZE)} without a GPU, commit "
            f"{found.counted.revision.commit[:12]}."
        )
    return " ".join([*told, f"Registers and resident blocks: {ARCH}."])


def _cases(record: RunRecord | None, size: Mapping[str, int]) -> dict[tuple[str, str], CaseResult]:
    cases = record.cases if record else ()
    return {
        (case.ladder, case.stage): case
        for case in cases
        if case.ladder == SGEMM and dict(case.size) == dict(size)
    }


def _stages(record: RunRecord | None) -> Sequence[StageResult]:
    return record.stages if record else ()


def _time_figures(case: CaseResult, record: RunRecord) -> tuple[str, str, str, str]:
    time_s, baseline_s = median_s(case.cold), median_s(case.baseline)
    if time_s is None:
        return (_DASH,) * 4
    flop_per_s = case.flops / time_s
    peak = record.machine.peaks["float32_flop_per_s"]
    return (
        significant(1e3 * time_s),
        f"{flop_per_s / 1e12:.1f}",
        _DASH if baseline_s is None else f"{100 * baseline_s / time_s:.1f}",
        f"{100 * flop_per_s / peak:.1f}",
    )


def _static_figures(stage: StageResult) -> tuple[str, str]:
    static = next((figures for figures in stage.static if figures.arch == ARCH), None)
    if static is None:
        return _DASH, _DASH
    return f"{static.registers}", f"{static.resident_blocks}"


def _counter_figures(case: CaseResult | None) -> tuple[str, str, str, str]:
    if case is None or case.counters is None:
        return (_DASH,) * 4
    counters = case.counters
    return (
        f"{counters.global_load_elements / (case.flops / 2):.4g}",
        f"{counters.global_load_sectors:,}",
        f"{counters.shared_load_wavefronts + counters.shared_store_wavefronts:,}",
        f"{counters.shared_load_conflicts + counters.shared_store_conflicts:,}",
    )


def size_table(sweep: SizeSweep) -> str:
    """Return the sweep as Markdown: ms and GFLOP/s of each routine at each size."""
    seconds = {(row.size, row.routine): row.seconds for row in sweep.rows}
    routines = list(dict.fromkeys(row.routine for row in sweep.rows))
    names = [routine if routine in (CPU, CUBLAS) else f"`{routine}`" for routine in routines]
    headings = [f"{name} {unit}" for unit in ("ms", "GFLOP/s") for name in names]
    rows = [
        f"| M = N = K | {' | '.join(headings)} |",
        f"|---:{'|---:' * (2 * len(routines))}|",
    ]
    for size in SIZES:
        times = [seconds[size, routine] for routine in routines]
        figures = [significant(1e3 * each) for each in times]
        figures += [f"{2 * size**3 / each / 1e9:,.0f}" for each in times]
        rows.append(f"| {size} | {' | '.join(figures)} |")
    caption = (
        f"Medians on {sweep.gpu} (operands outside the cache) and on the CPU, {sweep.cpu_library} "
        f"in float32 ({sweep.cpu}); commit {sweep.commit[:12]}. Every result agrees with the "
        f"CPU's within the tolerance. {_shares(sweep)}"
    )
    return "\n".join([*rows, "", caption]) + "\n"


def _shares(sweep: SizeSweep) -> str:
    """Return how close the fastest stage comes at the largest size."""
    last = SIZES[-1]
    at_last = {row.routine: row.seconds for row in sweep.rows if row.size == last}
    stages = {name: time_s for name, time_s in at_last.items() if name not in (CPU, CUBLAS)}
    name = min(stages, key=stages.__getitem__)
    of_peak = 2 * last**3 / stages[name] / sweep.float32_flop_per_s
    return (
        f"At {last}, `{name}` reaches {100 * at_last[CUBLAS] / stages[name]:.1f} % of cuBLAS and "
        f"{100 * of_peak:.1f} % of the FP32 peak."
    )


def _size(size: Mapping[str, int]) -> str:
    return " x ".join(str(extent) for extent in size.values())


if __name__ == "__main__":
    sys.exit(main())
