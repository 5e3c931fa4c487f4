"""What GitHub is told of a verdict: comment, check run and job summary. Pure builders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from ci.report.event import Target
from ci.report.markdown import report
from ci.report.untrusted import code, one_line
from ci.results.codec import Json
from ci.results.model import CaseVerdict, GateResult, Outcome

MOST_COMMENT_CHARACTERS = 60_000
"""GitHub takes 65,536; the same cap serves the summary of a check run, which takes 65,535."""
MOST_SUMMARY_BYTES = 1_000_000
"""GitHub takes 1 MiB a step, and above it shows nothing."""
ANNOTATIONS_PER_CALL = 50
MOST_ANNOTATIONS = 200

_CONCLUSIONS = {
    Outcome.PASSED: "success",
    Outcome.FAILED: "failure",
    Outcome.UNDECIDED: "neutral",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Annotation:
    """A remark at a source line."""

    path: str
    """Relative to the repository."""
    line: int
    title: str
    message: str
    failing: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Which workflow run speaks."""

    workflow: str
    """Its name: one comment and one check run a workflow."""
    link: str
    """Address of the run."""

    @property
    def name(self) -> str:
        """Return the name of the check run."""
        return one_line(f"flopwatch: {self.workflow}")

    @property
    def marker(self) -> str:
        """Return the first line of the comment, by which it is found again."""
        plain = "".join(char if char.isalnum() else "-" for char in self.workflow)
        return f"<!-- flopwatch 1 {plain} -->"


def page(result: GateResult, target: Target) -> str:
    """Return the whole report as markdown: the commits in question first."""
    return f"{_commits(result, target)}\n\n{report(result)}"


def comment(result: GateResult, target: Target, origin: Origin) -> str:
    """Return the body of the comment."""
    room = MOST_COMMENT_CHARACTERS - len(origin.marker) - 1
    return f"{origin.marker}\n{cut(page(result, target), room, origin)}"


def job_summary(result: GateResult, target: Target, origin: Origin) -> str:
    """Return the text of the job summary."""
    text = page(result, target)
    spare = len(text.encode()) - len(text)
    return cut(text, MOST_SUMMARY_BYTES - spare, origin)


def pending(target: Target, origin: Origin) -> dict[str, Json]:
    """Return the check run that says a measurement is under way."""
    return {**_identity(target, origin), "status": "in_progress"}


def completed(
    result: GateResult, target: Target, origin: Origin, suite: str
) -> Iterator[dict[str, Json]]:
    """Yield the check run, then updates that each append more annotations.

    Args:
        result: The verdict.
        target: The commit to report on.
        origin: Which workflow run speaks.
        suite: The suite's folder in the repository: findings name files relative to it.
    """
    remarks = source_remarks(result, suite)[:MOST_ANNOTATIONS]
    whole: dict[str, Json] = {
        **_identity(target, origin),
        "status": "completed",
        "conclusion": _CONCLUSIONS[result.verdict],
    }
    title = cut(one_line(result.sentence), 255, None)
    summary = cut(page(result, target), MOST_COMMENT_CHARACTERS, origin)
    for start in range(0, max(len(remarks), 1), ANNOTATIONS_PER_CALL):
        some = remarks[start : start + ANNOTATIONS_PER_CALL]
        shown: list[Json] = [_annotation(remark) for remark in some]
        output: dict[str, Json] = {"title": title, "summary": summary, "annotations": shown}
        yield {**whole, "output": output}


def without_verdict(target: Target, origin: Origin, reason: str) -> dict[str, Json]:
    """Return the check run of a measurement that left no verdict, which is never green."""
    output: dict[str, Json] = {"title": "no verdict", "summary": cut(code(reason), 1000, None)}
    return {
        **_identity(target, origin),
        "status": "completed",
        "conclusion": "failure",
        "output": output,
    }


def source_remarks(result: GateResult, suite: str) -> list[Annotation]:
    """Return a remark a source line and cause, failing ones first; equal ones are merged."""
    found: dict[tuple[str, int, str], Annotation] = {}
    seen: dict[tuple[str, int, str], int] = {}
    for verdict in result.cases:
        for remark in _remarks(verdict, suite):
            key = (remark.path, remark.line, remark.title)
            found.setdefault(key, remark)
            seen[key] = seen.get(key, 0) + 1
    merged = [
        replace(remark, message=f"{remark.message} (and {seen[key] - 1:,} more like it)")
        if seen[key] > 1
        else remark
        for key, remark in found.items()
    ]
    return sorted(merged, key=lambda remark: not remark.failing)


def cut(text: str, most: int, origin: Origin | None) -> str:
    """Return ``text`` in at most ``most`` characters, cut at a line and with a link to the rest."""
    if len(text) <= most:
        return text
    tail = "…" if origin is None else f"\n\nCut here: [the whole report]({origin.link}).\n"
    if origin is None:
        return text[: most - len(tail)] + tail
    fold = "\n\n</details>"
    kept = text[: most - len(tail) - len(fold)].rpartition("\n")[0]
    still_folded = kept.count("<details>") > kept.count("</details>")
    return kept + (fold if still_folded else "") + tail


def _identity(target: Target, origin: Origin) -> dict[str, Json]:
    return {
        "name": origin.name,
        "head_sha": target.head,
        "external_id": origin.marker,
        "details_url": origin.link,
    }


def _commits(result: GateResult, target: Target) -> str:
    """Return one line that names every commit by what it is."""
    parts = [f"head {code(target.head)}"]
    if target.merge:
        parts.append(f"measured as its test merge {code(target.merge)}")
    parts.append(f"base {code(result.base.commit)}" if result.base else "no base")
    line = ", ".join(parts)
    if target.moved_to:
        line += f"\n\nThe pull request has moved on to {code(target.moved_to)} since."
    return line


def _remarks(verdict: CaseVerdict, suite: str) -> Iterator[Annotation]:
    """Yield what a case's verdict says of source lines."""
    for finding in verdict.findings:
        path = _inside(suite, finding.file)
        if path and finding.line > 0:
            yield Annotation(
                path=path,
                line=finding.line,
                title=one_line(finding.kind),
                message=one_line(f"{verdict.id}: {finding.count:,} times, {finding.example}"),
                failing=verdict.fails,
            )
    for change in verdict.changes:
        file, _, number = change.place.rpartition(":")
        path = _inside(suite, file)
        if change.fails and path and number.isdecimal() and int(number) > 0:
            yield Annotation(
                path=path,
                line=int(number),
                title=one_line(change.metric.replace("_", " ")),
                message=one_line(
                    f"{verdict.id}: {change.base:,} to {change.head:,}, "
                    f"on this line {change.place_base:,} to {change.place_head:,}"
                ),
                failing=verdict.fails,
            )


def _inside(suite: str, file: str) -> str:
    """Return a suite's file relative to the repository; empty if it is none or leads outside."""
    path = PurePosixPath(file)
    if not file or path.is_absolute() or ".." in path.parts:
        return ""
    return (PurePosixPath(suite) / path).as_posix()


def _annotation(remark: Annotation) -> dict[str, Json]:
    return {
        "path": remark.path,
        "start_line": remark.line,
        "end_line": remark.line,
        "annotation_level": "failure" if remark.failing else "notice",
        "title": cut(remark.title, 255, None),
        "message": cut(remark.message, 4000, None),
    }
