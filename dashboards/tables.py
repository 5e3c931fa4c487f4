"""What a table on a page is made of. Changes when tables look different."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Badge:
    """A word with a symbol and a tone, so that colour never stands alone."""

    word: str
    glyph: str
    tone: str
    """CSS class: ``wrong``, ``worse``, ``better``, ``missing``, ``unsure`` or ``calm``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column: its heading, and the unit of the numbers below it."""

    label: str
    unit: str = ""
    numeric: bool = False
    """Right-aligned figures. Each has its unit in the heading or at the head of its row."""
    code: bool = False
    """Monospaced text whose spaces count."""
    header: bool = False
    """The cells that name their row."""
    wide: bool = False
    """Text that may wrap."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One cell; everything in it is formatted text."""

    text: str = ""
    unit: str = ""
    href: str = ""
    badge: Badge | None = None
    tone: str = ""
    note: str = ""
    """A second line, muted."""
    graphic: str = ""
    """An ``<svg>`` element made by ``dashboards.charts``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row."""

    cells: tuple[Cell, ...]
    marked: bool = False
    """True if the reader should look here first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """A heading over neighbouring columns; an empty label heads none."""

    label: str
    span: int


Shape = Literal["full", "compact", "stacked"]
"""``full`` fills the page, ``compact`` is as wide as its figures, ``stacked`` fills the page and
becomes a list on a narrow screen, for rows that are read as sentences."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table with a name for those who do not see it."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    groups: tuple[Group, ...] = ()
    shape: Shape = "full"
