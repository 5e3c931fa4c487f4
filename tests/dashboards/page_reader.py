"""Reading a written site back: its links, its tables, its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

_VOID = {"meta", "link", "img", "br", "hr", "input"}


@dataclass(slots=True)
class TableCell:
    """One cell of a table as a reader sees it."""

    heading: bool
    numeric: bool
    has_unit: bool
    text: str = ""


@dataclass(slots=True)
class PageTable:
    """A table: its caption, the heading of each column and the rows below."""

    caption: str = ""
    head: list[list[TableCell]] = field(default_factory=list)
    body: list[list[TableCell]] = field(default_factory=list)


class Page(HTMLParser):
    """One page; raises where tags are not closed in order."""

    def __init__(self, path: Path) -> None:
        """Read the page at ``path``."""
        super().__init__()
        self.path = path
        self.ids: set[str] = set()
        self.references: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[PageTable] = []
        self.text = ""
        self._open: list[str] = []
        self._cell: TableCell | None = None
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert not self._open, f"{path}: never closed: {self._open}"

    def table(self, caption: str) -> PageTable:
        """Return the table with this caption."""
        return next(table for table in self.tables if table.caption == caption)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        self.ids.update(value for name, value in attrs if name == "id" and value)
        self.references += [value for name, value in attrs if name in ("href", "src") and value]
        if tag not in _VOID:
            self._open.append(tag)
        classes = (given.get("class") or "").split()
        if tag == "table":
            self.tables.append(PageTable())
        elif tag == "tr":
            table = self.tables[-1]
            (table.head if "thead" in self._open else table.body).append([])
        elif tag in ("td", "th"):
            table = self.tables[-1]
            self._cell = TableCell(heading=tag == "th", numeric="number" in classes, has_unit=False)
            (table.head if "thead" in self._open else table.body)[-1].append(self._cell)
        elif "unit" in classes and self._cell:
            self._cell.has_unit = True

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"{self.path}: </{tag}> closes nothing"
        opened = self._open.pop()
        assert opened == tag, f"{self.path}: </{tag}> closes <{opened}>"
        if tag in ("td", "th"):
            self._cell = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._cell:
            self._cell.text += data
        if self._open[-1:] == ["caption"]:
            self.tables[-1].caption += data


def pages(index: Path) -> list[Page]:
    """Return every page of the site whose front page is ``index``."""
    return [Page(path) for path in sorted(index.parent.rglob("*.html"))]
