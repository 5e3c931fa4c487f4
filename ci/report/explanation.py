"""A case line by line: totals, the lines that cost most, and the source with its counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci.report.untrusted import code, one_line, prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ci.results.explanation import Explanation
    from ci.results.model import Counters, Finding, LineCounters

_SECTOR_BYTES = 32
_MOST_WORST = 5
"""Lines in the short list."""

_COLUMNS = (
    ("global_load_requests", "load requests"),
    ("global_load_sectors", "load sectors"),
    ("global_load_ideal_sectors", "ideal"),
    ("global_store_requests", "store requests"),
    ("global_store_sectors", "store sectors"),
    ("global_store_ideal_sectors", "ideal"),
    ("shared_load_wavefronts", "shared load wavefronts"),
    ("shared_load_conflicts", "conflicts"),
    ("shared_store_wavefronts", "shared store wavefronts"),
    ("shared_store_conflicts", "conflicts"),
    ("local_bytes", "local bytes"),
    ("atomic_requests", "atomic requests"),
    ("atomic_sectors", "atomic sectors"),
)
"""Counter → its heading in the listing; a pair of figures stands side by side."""


def text(explanation: Explanation) -> str:
    """Return the explanation for a terminal; lines keep their full length."""
    worst = [f"{place}  {why}\n    {source}" for place, why, source in _worst(explanation)]
    head = (explanation.id, explanation.status.value, explanation.reason)
    parts = [
        "  ".join(one_line(word) for word in head if word),
        _named("one launch", [f"{name}: {value}" for name, value in _totals(explanation)]),
        _named("printed", [one_line(line) for line in explanation.output]),
        _named("worst lines", worst),
        *(_listing(file, explanation) for file in _files(explanation)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown(explanation: Explanation) -> str:
    """Return the explanation as GitHub Flavored Markdown."""
    reason = f": {prose(explanation.reason)}" if explanation.reason else ""
    totals = _table(("one launch", ""), [(prose(n), prose(v)) for n, v in _totals(explanation)])
    worst = _table(
        ("worst lines", "why", "source"),
        [(prose(place), prose(why), code(source)) for place, why, source in _worst(explanation)],
    )
    printed = _table(("printed",), [(code(line),) for line in explanation.output])
    listings = [
        f"### {prose(file)}\n\n{_table(head, rows)}"
        for file in _files(explanation)
        for head, rows in [_rows(file, explanation)]
    ]
    parts = [f"## {code(explanation.id)}", f"**{explanation.status}**{reason}"]
    return "\n\n".join(part for part in (*parts, totals, printed, worst, *listings) if part) + "\n"


def _files(explanation: Explanation) -> list[str]:
    return list(dict.fromkeys(line.file for line in explanation.lines))


def _value(counters: Counters, name: str) -> int:
    value: int | None = getattr(counters, name)
    return value or 0


def _totals(explanation: Explanation) -> list[tuple[str, str]]:
    """Return what the whole launch costs, beside what the problem itself asks for."""
    counters = explanation.counters
    if counters is None:
        return []
    outputs = explanation.output_elements
    sectors = counters.global_load_sectors + counters.global_store_sectors
    moved, once = _SECTOR_BYTES * sectors / outputs, explanation.compulsory_bytes / outputs
    rows = [("counted", explanation.counting), ("output elements", f"{outputs:,}")]
    rows += [
        ("bytes per output element", f"{moved:,.4g}, {once:,.4g} if each operand crossed once"),
        ("loads per output element", _loads(counters, explanation)),
    ]
    for kind in ("load", "store"):
        requests = _value(counters, f"global_{kind}_requests")
        if requests:
            found = _value(counters, f"global_{kind}_sectors") / requests
            ideal = _value(counters, f"global_{kind}_ideal_sectors") / requests
            rows.append(
                (f"sectors per {kind} request", f"{found:,.4g}, {ideal:,.4g} if side by side")
            )
    wavefronts = counters.shared_load_wavefronts + counters.shared_store_wavefronts
    conflicts = counters.shared_load_conflicts + counters.shared_store_conflicts
    if wavefronts:
        rows.append(("shared wavefronts", f"{wavefronts:,}, {conflicts:,} of them bank conflicts"))
    rows += [
        (label, f"{_value(counters, name):,}")
        for name, label in _COLUMNS
        if name.startswith(("local", "atomic")) and _value(counters, name)
    ]
    return rows


def _loads(counters: Counters, explanation: Explanation) -> str:
    """Return element loads per output beside the textbook's: one an operation without reuse."""
    loads = counters.global_load_elements
    per_output = f"{loads / explanation.output_elements:,.4g}"
    if not loads or loads >= explanation.flops:
        return per_output
    naive = explanation.flops / explanation.output_elements
    return (
        f"{per_output} where one an operation would be {naive:,.4g}: "
        f"each serves {explanation.flops / loads:,.4g}"
    )


def _cycles(counters: Counters) -> float:
    """Return the least cycles of one multiprocessor that this traffic takes.

    A shared wavefront takes one, a sector half of one: L2 gives a multiprocessor 64 bytes a cycle.
    """
    sectors = (
        counters.global_load_sectors
        + counters.global_store_sectors
        + _value(counters, "atomic_sectors")
        + counters.local_bytes / _SECTOR_BYTES
    )
    wavefronts = counters.shared_load_wavefronts + counters.shared_store_wavefronts
    return wavefronts + _value(counters, "shared_atomic_requests") + sectors / 2


def _worst(explanation: Explanation) -> list[tuple[str, str, str]]:
    """Return place, reason and source of the lines with findings, then of those that cost most."""
    found = {(finding.file, finding.line) for finding in explanation.findings}
    everything = sum(_cycles(line.counters) for line in explanation.lines)
    ranked = sorted(
        explanation.lines,
        key=lambda line: ((line.file, line.line) not in found, -_cycles(line.counters)),
    )
    rows = []
    for line in ranked[:_MOST_WORST]:
        kinds = [f.kind for f in explanation.findings if (f.file, f.line) == (line.file, line.line)]
        share = _cycles(line.counters) / everything if everything else 0.0
        reasons = [*kinds, f"{share:.0%} of the memory cycles", *_waste(line.counters)]
        place = f"{one_line(line.file)}:{line.line}"
        rows.append((place, "; ".join(reasons), one_line(line.text)))
    return rows


def _waste(counters: Counters) -> list[str]:
    """Return in words what a better access pattern would save."""
    words = []
    for kind in ("load", "store"):
        sectors = _value(counters, f"global_{kind}_sectors")
        ideal = _value(counters, f"global_{kind}_ideal_sectors")
        if ideal < sectors:
            words.append(f"{sectors:,} {kind} sectors where {ideal:,} would do")
        conflicts = _value(counters, f"shared_{kind}_conflicts")
        if conflicts:
            wavefronts = _value(counters, f"shared_{kind}_wavefronts")
            words.append(f"{conflicts:,} of {wavefronts:,} {kind} wavefronts are bank conflicts")
    if counters.local_bytes:
        words.append(f"{counters.local_bytes:,} bytes of local memory")
    return words


def _rows(file: str, explanation: Explanation) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heading and rows of one file as markdown cells; a finding has a row of its own."""
    lines = [line for line in explanation.lines if line.file == file]
    used = _used(lines)
    rows: list[tuple[str, ...]] = []
    for line in lines:
        figures = [f"{_value(line.counters, name):,}" for name, _ in used]
        rows.append((str(line.line), *figures, code(line.text)))
        rows += [
            ("", *("" for _ in used), prose(said)) for said in _said(line, explanation.findings)
        ]
    return ("line", *(label for _, label in used), "source"), rows


def _listing(file: str, explanation: Explanation) -> str:
    """Return the counted lines of a file as a table for a terminal."""
    lines = [line for line in explanation.lines if line.file == file]
    used = _used(lines)
    head = ["line", *(label for _, label in used)]
    cells = [
        [str(line.line), *(f"{_value(line.counters, name):,}" for name, _ in used)]
        for line in lines
    ]
    widths = [max(len(row[column]) for row in (head, *cells)) for column in range(len(head))]
    rows = [f"{_aligned(head, widths)}  {one_line(file)}"]
    for line, row in zip(lines, cells, strict=True):
        rows.append(f"{_aligned(row, widths)}  {one_line(line.text)}")
        margin = " " * (sum(widths) + 2 * len(widths))
        rows += [f"{margin}^ {one_line(said)}" for said in _said(line, explanation.findings)]
    return "\n".join(rows)


def _used(lines: Sequence[LineCounters]) -> list[tuple[str, str]]:
    """Return the columns that say anything."""
    return [
        (name, label)
        for name, label in _COLUMNS
        if any(_value(line.counters, name) for line in lines)
    ]


def _said(line: LineCounters, findings: Sequence[Finding]) -> list[str]:
    return [
        f"{finding.kind}, {finding.count:,} times: {finding.example}"
        for finding in findings
        if (finding.file, finding.line) == (line.file, line.line)
    ]


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _named(name: str, rows: Sequence[str]) -> str:
    return "\n".join((name, *(f"  {row}" for row in rows))) if rows else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
