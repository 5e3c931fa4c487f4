"""Makes the page that compares the simulator's counters with Nsight Compute's.

``python -m scripts.ncu_table`` writes ``docs/ncu-table.md`` from ``docs/data/ncu``: what the
simulator predicted of every stage, and of kernels outside the suite, frozen in a commit before each
of two profiles, and what the profiler counted. The first round's files are in ``first``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts import ncu_golden, ncu_stages
from scripts.ncu_stages import SIZES, Counts
from scripts.suite_ladders import ROOT, Rung, rungs

FIRST, SECOND = ROOT / "docs" / "data" / "ncu" / "first", ROOT / "docs" / "data" / "ncu"
TABLE = ROOT / "docs" / "ncu-table.md"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One stage at one size, all its kernels together; or one launch of another kernel."""

    name: str
    size: str
    predicted: Counts
    """Frozen before the profile."""
    profiled: Counts

    @property
    def off(self) -> list[str]:
        """Return the counters that differ."""
        return [c for c in self.profiled if self.predicted[c] != self.profiled[c]]


Round = Mapping[str, Sequence[Row]]
"""``stages`` and ``others`` → rows."""


def main() -> int:
    """Write the page."""
    TABLE.write_text(page(read_round(FIRST), read_round(SECOND)), encoding="utf-8")
    return 0


def read_round(folder: Path) -> Round:
    """Return what was predicted and profiled in one round."""
    known = {rung.name: rung for rung in rungs()}
    stages = []
    for number in SIZES:
        predicted: dict[str, Counts] = json.loads(_text(folder / f"predicted-{number}.json"))
        launches = iter(ncu_stages.read(_text(folder / f"profiled-{number}.csv")))
        for name, counts in predicted.items():
            rung = known[name]
            steps = [next(launches) for _ in rung.stage.steps(rung.ladder.problem)]
            profiled = {c: sum(step[c] for step in steps) for c in counts}
            size = _size(rung, number)
            stages.append(Row(name=name, size=size, predicted=counts, profiled=profiled))
    frozen: dict[str, Counts] = json.loads(_text(folder / "golden-predicted.json"))
    measured = ncu_golden.read(_text(folder / "golden-profiled.csv"))
    others = [
        Row(name=kernel, size=side, predicted=predicted, profiled=profiled)
        for (kernel, _, side), predicted, profiled in zip(
            (name.rpartition(" ") for name in frozen), frozen.values(), measured, strict=True
        )
    ]
    return {"stages": stages, "others": others}


def page(first: Round, second: Round) -> str:
    """Return the page."""
    missed = [counter for row in _rows(second) for counter in row.off]
    stages, others = second["stages"], second["others"]
    lines = [
        "# Counters against Nsight Compute",
        "",
        (
            f"{_equal(_rows(second))} counters are equal: {_equal(stages)} of the suite's stages, "
            f"{_equal(others)} of kernels outside it. Each was predicted in a commit before the "
            "profile on an H200."
        ),
        "",
        (
            f"It was the second round. In the first {_equal(first['stages'])} of stages and "
            f"{_equal(first['others'])} of the others were equal, and the simulator learnt from it:"
        ),
        "",
        *_learnt(first, second),
        "",
        *_repeating(first, second),
        f"All {len(missed)} that are not equal are {' and '.join(sorted(set(missed)))}.",
        "",
        "| stage | size | equal | simulator against profiler where not |",
        "|---|---|---:|---|",
        *(_line(row) for row in stages),
        "",
        (
            "The others are those of `tests/data/ncu-h200/suite.cu` whose counts no schedule "
            "changes, on matrices of that side, with atomics and local memory."
        ),
        "",
        "| kernel | side | equal | simulator against profiler where not |",
        "|---|---:|---:|---|",
        *(_line(row) for row in others),
    ]
    return "\n".join(lines) + "\n"


def _repeating(first: Round, second: Round) -> list[str]:
    """Return what two profiles of the same launches say of the profiler itself."""
    before = {(row.name, row.size): row.profiled for row in _rows(first)}
    pairs = [
        (row, counter, before[row.name, row.size][counter])
        for row in _rows(second)
        if (row.name, row.size) in before
        for counter in row.profiled
    ]
    unsteady = [(row, counter, old) for row, counter, old in pairs if old != row.profiled[counter]]
    steady = len(pairs) - len(unsteady)
    wrong = sum(c in row.off and old == row.profiled[c] for row, c, old in pairs)
    return [
        (
            f"Of {len(pairs)} counters that both rounds profiled, {steady} repeat, and "
            f"{steady - wrong} of these equal the prediction. {len(unsteady)} differ between the "
            "two profiles of the same launch, so that no model can equal them:"
        ),
        "",
        *(
            f"- {counter} of `{row.name}` at {row.size}: {old:,}, then {row.profiled[counter]:,}"
            for row, counter, old in unsteady
        ),
        "",
    ]


def _learnt(first: Round, second: Round) -> list[str]:
    """Return the predictions that changed between the rounds."""
    now = {(row.name, row.size): row.predicted for row in _rows(second)}
    return [
        f"- {counter} of `{row.name}` at {row.size}: {count:,} predicted first, "
        f"{now[row.name, row.size][counter]:,} then, {row.profiled[counter]:,} profiled"
        for row in _rows(first)
        for counter, count in row.predicted.items()
        if now[row.name, row.size][counter] != count
    ]


def _rows(both: Round) -> list[Row]:
    return [*both["stages"], *both["others"]]


def _equal(rows: Sequence[Row]) -> str:
    """Return ``3 of 4 (75.0 %)``."""
    total = sum(len(row.profiled) for row in rows)
    equal = total - sum(len(row.off) for row in rows)
    return f"{equal} of {total} ({100 * equal / total:.1f} %)"


def _line(row: Row) -> str:
    said = "; ".join(f"{c}: {row.predicted[c]:,} against {row.profiled[c]:,}" for c in row.off)
    equal = len(row.profiled) - len(row.off)
    return f"| `{row.name}` | {row.size} | {equal} of {len(row.profiled)} | {said} |"


def _size(rung: Rung, number: int) -> str:
    return " x ".join(str(extent) for extent in rung.check_size(number).values())


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
