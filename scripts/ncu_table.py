"""Makes the page that compares the simulator's counters with Nsight Compute's.

``python -m scripts.ncu_table`` writes ``docs/ncu-table.md`` from ``docs/data``: the predictions
that were frozen before the profile, the counts of the simulator as it stands (remake them with
``python -m scripts.ncu_stages recount docs/data/ncu``), and what the profiler counted.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.ncu_stages import METRICS, SIZES, Counts, read
from scripts.suite_ladders import ROOT, Rung, rungs

DATA, TABLE = ROOT / "docs" / "data", ROOT / "docs" / "ncu-table.md"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One stage at one size: all its kernels together."""

    stage: str
    size: str
    predicted: Counts
    """Frozen before the profile."""
    recounted: Counts
    """By the simulator as it stands."""
    profiled: Counts

    def off(self, ours: Counts) -> list[str]:
        """Return the counters in which ``ours`` and the profiler differ."""
        return [counter for counter in METRICS if ours[counter] != self.profiled[counter]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Twice:
    """One launch that was profiled twice."""

    stage: str
    size: str
    first: Counts
    again: Counts
    simulated: Counts | None
    """None: the stage has another tile by now."""

    @property
    def unsteady(self) -> list[str]:
        """Return the counters that the two profiles disagree on."""
        return [counter for counter in METRICS if self.first[counter] != self.again[counter]]


def main() -> int:
    """Write the page."""
    TABLE.write_text(page(table(), twice()), encoding="utf-8")
    return 0


def table() -> list[Row]:
    """Return every stage at both check sizes of its ladder."""
    found = []
    for number in SIZES:
        predicted, recounted = (_counts(kind, number) for kind in ("predicted", "recounted"))
        launches = iter(read(_text(DATA / "ncu" / f"profiled-{number}.csv")))
        for rung in rungs():
            steps = [next(launches) for _ in rung.stage.steps(rung.ladder.problem)]
            found.append(
                Row(
                    stage=rung.name,
                    size=_size(rung, number),
                    predicted=predicted[rung.name],
                    recounted=recounted[rung.name],
                    profiled={c: sum(step[c] for step in steps) for c in METRICS},
                )
            )
    return found


def twice() -> list[Twice]:
    """Return the launches of the SGEMM ladder, one a stage at the first check size."""
    texts = [_text(DATA / name) for name in ("ncu-sgemm.csv", "ncu-sgemm-again.csv")]
    now = set(_kernels(_text(DATA / "ncu" / "profiled-0.csv")))
    counts = _counts("recounted", SIZES[0])
    return [
        Twice(
            stage=rung.name,
            size=_size(rung, SIZES[0]),
            first=first,
            again=again,
            simulated=counts[rung.name] if kernel in now else None,
        )
        for rung, first, again, kernel in zip(
            rungs(["sgemm"]), *map(read, texts), _kernels(texts[0]), strict=True
        )
    ]


def page(rows: Sequence[Row], pairs: Sequence[Twice]) -> str:
    """Return the page."""
    total = len(rows) * len(METRICS)
    equal = total - sum(len(row.off(row.recounted)) for row in rows)
    frozen = total - sum(len(row.off(row.predicted)) for row in rows)
    lines = [
        "# Counters against Nsight Compute",
        "",
        (
            f"{equal} of {total} counters are equal ({_percent(equal, total)}), as the simulator "
            f"counts now. Of the predictions that were frozen before the profile, {frozen} were "
            f"({_percent(frozen, total)})."
        ),
        (
            "The simulator's model of which loads ptxas merges was corrected after the profile was "
            f"seen, and these figures with it: {'; '.join(_corrected(rows)) or 'none'}."
        ),
        "",
        *_repeating(rows, pairs),
        "",
        f"| stage | size | equal, of {len(METRICS)} | simulator now against profiler where not |",
        "|---|---|---:|---|",
    ]
    for row in rows:
        off = row.off(row.recounted)
        said = "; ".join(f"{c}: {row.recounted[c]:,} against {row.profiled[c]:,}" for c in off)
        lines.append(f"| `{row.stage}` | {row.size} | {len(METRICS) - len(off)} | {said} |")
    return "\n".join(lines) + "\n"


def _corrected(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        for counter in METRICS:
            if row.predicted[counter] != row.recounted[counter]:
                yield (
                    f"{counter} of `{row.stage}` at {row.size}, {row.predicted[counter]:,} "
                    f"predicted, {row.recounted[counter]:,} now"
                )


def _repeating(rows: Sequence[Row], pairs: Sequence[Twice]) -> list[str]:
    """Return what two profiles of the same launches say of the profiler itself."""
    differing = [(each, counter) for each in pairs for counter in each.unsteady]
    said = "; ".join(
        f"{counter} of `{each.stage}`: {each.first[counter]:,}, then {each.again[counter]:,}"
        for each, counter in differing
    )
    steady = [
        each.simulated[counter] == each.first[counter]
        for each in pairs
        if each.simulated is not None
        for counter in METRICS
        if counter not in each.unsteady
    ]
    changed = " and ".join(f"`{each.stage}`" for each in pairs if each.simulated is None)
    known = {(each.stage, each.size, counter) for each, counter in differing if each.simulated}
    missed = [(row.stage, row.size, c) for row in rows for c in row.off(row.recounted)]
    unsteady = sum(each in known for each in missed)
    return [
        (
            f"Of the {len(pairs) * len(METRICS)} counters of the SGEMM ladder that were profiled "
            f"twice at {pairs[0].size}, {len(differing)} differ between the two profiles of the "
            f"same launch ({said})."
        ),
        f"Of those that repeat, {sum(steady)} of {len(steady)} equal the simulator's"
        + (f"; {changed}, of another tile by now, left out." if changed else "."),
        (
            f"Of the {len(missed)} below that are not equal, {unsteady} are among those that did "
            f"not repeat; the other {len(missed) - unsteady} were profiled once. All "
            f"{len(missed)} are {' and '.join(sorted({counter for *_, counter in missed}))}."
        ),
    ]


def _size(rung: Rung, number: int) -> str:
    return " x ".join(str(extent) for extent in rung.check_size(number).values())


def _kernels(text: str) -> list[str]:
    """Return the kernel of each launch in a profiler's table, with its template arguments."""
    found = {int(row["ID"]): row["Kernel Name"] for row in csv.DictReader(io.StringIO(text))}
    return [found[number] for number in sorted(found)]


def _counts(kind: str, number: int) -> dict[str, Counts]:
    found: dict[str, Counts] = json.loads(_text(DATA / "ncu" / f"{kind}-{number}.json"))
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


if __name__ == "__main__":
    sys.exit(main())
