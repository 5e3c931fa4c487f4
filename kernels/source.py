"""How a stage's source becomes one text: local includes pasted, lines still named, digest taken."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kernels.errors import SourceError

INCLUDE_FOLDER = "include"
"""Folder of a suite that every stage's quoted includes are also looked up in."""

_QUOTED_INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')
_PRAGMA_ONCE = re.compile(r"\s*#\s*pragma\s+once\b")
_COMMENT_OR_LITERAL = re.compile(r"//.*|/\*.*?(?:\*/|$)|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")


@dataclass(frozen=True, kw_only=True, slots=True)
class FlatSource:
    """A stage's source with every quoted include pasted in."""

    name: str
    """The stage's file as messages name it, relative to the suite folder."""
    text: str
    """The text to compile; ``#line`` directives name the files the author edits."""
    files: tuple[str, ...]
    """Every file the text comes from, relative to the suite folder, in order of first use."""

    @property
    def digest(self) -> str:
        """Return the sha256 of the text (hexadecimal)."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def flatten(path: Path, suite: Path) -> FlatSource:
    """Return the source at ``path`` with its quoted includes pasted in, recursively.

    A quoted include is looked up beside the file that names it, then in the suite's include
    folder. A file with ``#pragma once`` is pasted once. Includes in angle brackets are the
    compiler's and stay. One text is then the cache key, the provenance and what is compiled:
    an edited header cannot be overlooked.

    Args:
        path: The stage's .cu file.
        suite: The suite folder; no include may lie outside it.

    Raises:
        SourceError: A file is missing, unreadable or outside the suite, or includes form a cycle.
    """
    flattener = _Flattener(suite.resolve())
    root = path.resolve()
    name = flattener.name_of(root, f"{path}: ")
    lines = flattener.paste(root, f"{name}: ")
    return FlatSource(name=name, text="\n".join(lines) + "\n", files=tuple(flattener.files))


def quoted_lines(text: str) -> dict[tuple[str, int], str]:
    """Return (file, line) → source line, without indentation, of a flattened text."""
    quoted: dict[tuple[str, int], str] = {}
    file, line = "", 0
    for row in text.splitlines():
        if row.startswith("#line "):
            number, name = row.removeprefix("#line ").split(" ", 1)
            file, line = str(PurePosixPath(name.strip().strip('"'))), int(number)
            continue
        quoted[file, line] = row.strip()
        line += 1
    return quoted


class _Flattener:
    """The state of one flattening: what was pasted, and the chain of files being pasted."""

    def __init__(self, suite: Path) -> None:
        self.suite = suite
        self.files: list[str] = []
        self.once: set[Path] = set()
        self.chain: list[Path] = []

    def name_of(self, path: Path, where: str) -> str:
        """Return a file's name relative to the suite folder, with forward slashes."""
        try:
            return path.relative_to(self.suite).as_posix()
        except ValueError:
            msg = f"{where}{path} is outside the suite {self.suite} (move it into the suite)"
            raise SourceError(msg) from None

    def paste(self, path: Path, where: str) -> list[str]:
        """Return the lines of a file, its includes pasted; ``where`` begins the error messages."""
        if path in self.once:
            return []
        name = self.name_of(path, where)
        if path in self.chain:
            cycle = [self.name_of(link, where) for link in self.chain[self.chain.index(path) :]]
            msg = f"{where}includes form a cycle: {' -> '.join([*cycle, name])} (add #pragma once)"
            raise SourceError(msg)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            msg = f"{where}cannot read {name}: {error} (expected a UTF-8 text file)"
            raise SourceError(msg) from error
        if name not in self.files:
            self.files.append(name)
        self.chain.append(path)
        lines = [f'#line 1 "{name}"', *self._lines(path, name, text)]
        self.chain.pop()
        return lines

    def _lines(self, path: Path, name: str, text: str) -> list[str]:
        """Return a file's lines, each quoted include replaced by the file it names."""
        out: list[str] = []
        in_comment = False
        for number, line in enumerate(text.splitlines(), start=1):
            starts_in_comment, in_comment = in_comment, _ends_in_comment(line, inside=in_comment)
            include = None if starts_in_comment else _QUOTED_INCLUDE.match(line)
            if include is not None:
                where = f"{name}:{number}: "
                out += self.paste(self._find(path, include[1], where), where)
                out.append(f'#line {number + 1} "{name}"')
            elif not starts_in_comment and _PRAGMA_ONCE.match(line):
                self.once.add(path)
                out.append("")
            else:
                out.append(line)
        return out

    def _find(self, includer: Path, target: str, where: str) -> Path:
        """Return the file a quoted include means."""
        folders = (includer.parent, self.suite / INCLUDE_FOLDER)
        for folder in folders:
            if (folder / target).is_file():
                return (folder / target).resolve()
        searched = ", ".join(self.name_of(folder, where) for folder in folders)
        msg = (
            f'{where}#include "{target}" names no file in {searched} (add it, or correct the name)'
        )
        raise SourceError(msg)


def _ends_in_comment(line: str, *, inside: bool) -> bool:
    """Return whether a block comment is open at the end of a line."""
    if inside:
        _, closed, line = line.partition("*/")
        if not closed:
            return True
    tokens = _COMMENT_OR_LITERAL.findall(line)
    return bool(tokens) and tokens[-1].startswith("/*") and not tokens[-1].endswith("*/")
