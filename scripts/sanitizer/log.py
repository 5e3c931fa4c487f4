"""What compute-sanitizer prints, as findings."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_PREFIX = "========="
_PLACES = (
    re.compile(r"at (?P<kernel>\w+)(?:\(.*?\))?\+0x[0-9a-f]+ in (?P<file>\S+?):(?P<line>\d+)"),
    re.compile(r"at 0x[0-9a-f]+ in (?P<file>[^\s:]+):(?P<line>\d+):(?P<kernel>\w+)"),
)
_CLASSES = (
    ("misaligned", "alignment"),
    ("invalid __", "bounds"),
    ("out-of-bounds", "bounds"),
    ("race", "race"),
    ("hazard", "race"),
    ("uninitiali", "initialisation"),
    ("barrier", "barrier"),
    ("member mask", "barrier"),
    ("without all its lanes", "barrier"),
    # What the hardware answers to a member mask that leaves the lane out.
    ("illegal instruction", "barrier"),
    ("shuffle", "shuffle"),
    ("asynchronous copy", "asynchronous copy"),
)
"""A word of a finding, and what class of fault it speaks of."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Found:
    """A kind of fault at the source lines that a report names."""

    kind: str
    """What the tool calls it."""
    fault: str
    """Its class."""
    file: str
    lines: tuple[int, ...]
    count: int
    example: str = ""
    """One access or thread of it; empty where the tool's report holds it."""


def class_of(words: str) -> str:
    """Return the class of fault that a finding speaks of, its own words if it is of none."""
    # Details below the heading, such as threads, make no class of their own.
    lowered = words.lower()
    heading = lowered.split("\n", 1)[0]
    return next((name for word, name in _CLASSES if word in lowered), heading)


def read(log: str) -> dict[str, tuple[Found, ...]]:
    """Return the findings of each kernel in a log of compute-sanitizer.

    Args:
        log: Its output, among that of the program.
    """
    counts: Counter[tuple[str, str, str, str, tuple[int, ...]]] = Counter()
    for record in _records(log):
        places = [match for pattern in _PLACES for match in pattern.finditer(record)]
        if not places:
            continue
        heading = record.split("\n", 1)[0]
        kind = re.sub(r"^(?:Error|Warning|Info): ", "", heading)
        kind = re.split(r" between | at |\. ", kind)[0].strip()
        lines = tuple(sorted({int(match["line"]) for match in places}))
        file = places[0]["file"].rpartition("/")[2]
        counts[places[0]["kernel"], kind, class_of(record), file, lines] += 1
    found: dict[str, list[Found]] = {}
    for (kernel, kind, fault, file, lines), count in sorted(counts.items()):
        found.setdefault(kernel, []).append(
            Found(kind=kind, fault=fault, file=file, lines=lines, count=count)
        )
    return {kernel: tuple(each) for kernel, each in found.items()}


def _records(log: str) -> list[str]:
    """Return the reports of a log: a heading, and the indented lines below it."""
    records: list[list[str]] = []
    for row in log.splitlines():
        if not row.startswith(_PREFIX):
            continue
        words = row.removeprefix(_PREFIX).removeprefix(" ")
        if words and not words.startswith(" "):
            # The second half of a report about a race begins at the margin, too.
            if words.startswith(("and ", "Read access", "Write access")) and records:
                records[-1].append(words)
            else:
                records.append([words])
        elif words.strip() and records:
            records[-1].append(words.strip())
    return ["\n".join(record) for record in records]
