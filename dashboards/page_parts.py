"""Parts that several pages share: facts, revisions, findings and the origin of the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ci.results.model import CaseResult, Finding, Revision
from dashboards.charts import Point
from dashboards.formatting import DASH, moment, short_commit, shortened, subject, whole
from dashboards.history import Commit, MachineHistory
from dashboards.quantities import Figures, Quantity, figures_of
from dashboards.tables import Badge, Cell, Column, Row, Table
from dashboards.words import ABSENT, STATUSES

CHARTED_COMMITS = 200
"""A chart shows the newest commits up to this number: more would be a cloud of dots."""
_FACT_CHARACTERS = 90


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """A link within the site."""

    label: str
    href: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """One labelled fact."""

    label: str
    text: str
    note: str = ""
    code: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """What stands around every page."""

    root: str
    """Way from the page to the site's folder: empty, or ``../``."""
    nav: tuple[Link, ...]
    origins: tuple[str, ...]
    """Where the data comes from, one line a machine."""
    meaning: str
    """What kind of figures these pages hold."""


def frame_of(history: Sequence[MachineHistory], *, root: str, nav: tuple[Link, ...]) -> Frame:
    """Return what stands around the pages of a site."""
    meaning = "Counts are exact, of one launch and of the compiled code; they are never times."
    if any(entry.timed for entry in history):
        meaning = (
            "Counts are exact, of one launch and of the compiled code. Times are medians of "
            "samples taken in one run on the machine that is named."
        )
    return Frame(root=root, nav=nav, origins=tuple(map(origin, history)), meaning=meaning)


def size_text(size: Mapping[str, int]) -> str:
    """Return a problem size as people read it."""
    return ", ".join(f"{axis}={extent}" for axis, extent in size.items()) or "no axes"


def revision_fact(label: str, revision: Revision | None, absent: str) -> Fact:
    """Return a revision with its subject, date and the name the user gave it."""
    if revision is None:
        return Fact(label=label, text=DASH, note=absent)
    # What the user typed tells something only where there is no commit message.
    told = [shortened(subject(revision.subject), _FACT_CHARACTERS) or revision.described]
    told += [moment(revision.committed)] if revision.committed else []
    return Fact(
        label=label,
        text=short_commit(revision.commit),
        note=" · ".join(part for part in told if part),
        code=True,
    )


def status_badge(case: CaseResult | None) -> Badge:
    """Return what became of a case in one run; absent where the run does not hold it."""
    return STATUSES[case.status] if case else ABSENT


def figures_at(commit: Commit | None, example: CaseResult) -> Figures:
    """Return what a commit knows about a case; nothing where there is no such commit."""
    if commit is None:
        return figures_of(None, None)
    return figures_of(commit.cases.get(example.id), commit.stage_of(example), commit.roofs)


def comparable_figures(commits: Sequence[Commit], example: CaseResult) -> tuple[Figures, ...]:
    """Return what each commit knows about a case, without times of another method.

    Times that two methods measured are never put side by side: those of the newest stay.
    """
    known = [figures_at(commit, example) for commit in commits]
    methods = [method for figures in known if (method := _method(figures)) is not None]
    newest = methods[-1] if methods else None
    return tuple(
        figures if _method(figures) in (newest, None) else _without_times(figures)
        for figures in known
    )


def _method(figures: Figures) -> int | None:
    cold = figures.case.cold if figures.case else None
    return cold.method_version if cold else None


def _without_times(figures: Figures) -> Figures:
    if figures.case is None:
        return figures
    return replace(figures, case=replace(figures.case, cold=None, hot=None, baseline=None))


def points_of(commits: Sequence[Commit], example: CaseResult, quantity: Quantity) -> list[Point]:
    """Return one quantity of a case over commits; a commit without a value says why."""
    points = []
    for commit, figures in zip(commits, comparable_figures(commits, example), strict=True):
        value = quantity.of(figures)
        text = f"no value, {status_badge(figures.case).word.lower()}"
        if value is not None:
            text = f"{quantity.show(value)} {quantity.unit}"
        label = short_commit(commit.revision.commit)
        points.append(Point(label=label, value=value, text=text, band=quantity.band(figures)))
    return points


def findings_table(findings: Iterable[Finding]) -> Table | None:
    """Return findings at their places in the source, or None if there are none."""
    rows = tuple(
        Row(
            cells=(
                Cell(text=finding.kind, tone="bad"),
                Cell(text=place(finding.file, finding.line)),
                Cell(text=whole(finding.count)),
                Cell(text=finding.example),
                Cell(text=finding.subcheck),
            )
        )
        for finding in dict.fromkeys(findings)
    )
    columns = (
        Column(label="Finding", header=True),
        Column(label="Place", code=True),
        Column(label="Seen", unit="times", numeric=True),
        Column(label="One occurrence", wide=True),
        Column(label="First seen in", wide=True),
    )
    return Table(caption="Findings", shape="stacked", columns=columns, rows=rows) if rows else None


def place(file: str, line: int) -> str:
    """Return a place in the source, without the line where it is unknown."""
    return f"{file}:{line}".removeprefix(":") if line else file


def origin(history: MachineHistory) -> str:
    """Return one line about where a machine's figures come from."""
    machine = history.machine
    versions = ", ".join(f"{name} {version}" for name, version in sorted(machine.versions.items()))
    used = [commit.runs[0].run for commit in (history.base, history.shown) if commit]
    runs = ", ".join(dict.fromkeys(used)) or "none stored"
    return f"{machine.name}: {versions or 'versions unknown'} ({machine.origin}). Runs: {runs}."
