"""Which source line changed a counter most, though lines move and are edited between commits."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci.gate.metrics import counter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ci.gate.metrics import Metric
    from ci.results.model import LineCounters

_SAME_LINE_SIMILARITY = 0.6
"""Similarity (0 to 1) from which a new line is taken for the edited form of a vanished one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LineChange:
    """One line of head and what it cost at base and costs at head."""

    line: LineCounters
    base: int
    """0 if the line is new."""
    head: int

    @property
    def place(self) -> str:
        """Return ``file:line`` at head."""
        return f"{self.line.file}:{self.line.line}"


def most_changed(
    metric: Metric, base: Sequence[LineCounters], head: Sequence[LineCounters]
) -> LineChange | None:
    """Return head's line whose share of ``metric`` grew most; None if no line has a share.

    If no line grew, the line with the largest figure at head.
    """
    changes = [
        LineChange(
            line=line,
            base=(counter(former.counters, metric) or 0) if former else 0,
            head=counter(line.counters, metric) or 0,
        )
        for former, line in _paired(base, head)
    ]
    return max(
        (change for change in changes if change.head),
        key=lambda change: (max(change.head - change.base, 0), change.head),
        default=None,
    )


def _paired(
    base: Iterable[LineCounters], head: Sequence[LineCounters]
) -> list[tuple[LineCounters | None, LineCounters]]:
    """Return every line of head with the line of base that it was; None for a new one.

    A line is found by its text within its file, equal lines in their order; what is left over
    pairs with the vanished line of the file that is most like it.
    """
    vanished = list(base)
    former: dict[int, LineCounters] = {}
    for index, line in enumerate(head):
        same = next((old for old in vanished if _key(old) == _key(line)), None)
        if same is not None:
            vanished.remove(same)
            former[index] = same
    for index, line in enumerate(head):
        texts = {old.text.strip(): old for old in vanished if old.file == line.file}
        if index in former or not texts:
            continue
        close = difflib.get_close_matches(
            line.text.strip(), texts, n=1, cutoff=_SAME_LINE_SIMILARITY
        )
        if close:
            former[index] = texts[close[0]]
            vanished.remove(texts[close[0]])
    return [(former.get(index), line) for index, line in enumerate(head)]


def _key(line: LineCounters) -> tuple[str, str]:
    return line.file, line.text.strip()
