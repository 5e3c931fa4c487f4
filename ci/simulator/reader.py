"""PTX text as a sequence of statements, with the line of each."""

from __future__ import annotations

import re

from ci.simulator.errors import PtxError
from ci.simulator.lines import LineTable

TEXT_MAX_CHARACTERS = 1 << 26
"""Far above any real module; a longer text is not read."""

_COMMENT = re.compile(r'("[^"\n]*")|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_BRACE = re.compile("[{}]")
_STATEMENT = re.compile(
    r"""\s*(?:
      (?P<line>\.(?:version|target|address_size|file|loc)\b[^\n]*)
    | (?P<section>\.section\b[^{};]*)\{
    | (?:\.(?:visible|extern|weak)\s+)*\.entry\s+(?P<entry>[\w$%]+)\s*
        (?:\((?P<params>[^)]*)\))?[^{};]*\{
    | (?P<function>(?:\.(?:visible|extern|weak)\s+)*\.func\b[^{};]*)(?P<end>[{;])
    | (?P<open>\{)
    | (?P<close>\})
    | (?P<label>[A-Za-z_$%][\w$]*)\s*:(?!:)
    | (?P<statement>[^\s{};:][^;]*);
    )""",
    re.VERBOSE,
)


class Reader:
    """The statements of a text, one after the other."""

    def __init__(self, text: str) -> None:
        """Begin at the start.

        Raises:
            PtxError: The text is longer than any PTX.
        """
        if len(text) > TEXT_MAX_CHARACTERS:
            msg = f"expected at most {TEXT_MAX_CHARACTERS} characters of PTX, got {len(text)}"
            raise PtxError(msg)
        self.text = _COMMENT.sub(_blank, text)
        self._start = 0
        self._position = 0
        self.table = LineTable(self.text)

    @property
    def line(self) -> int:
        """Return the 1-based line of the statement read last."""
        return self.text.count("\n", 0, self._start) + 1

    def next(self) -> re.Match[str] | None:
        """Return the next statement, or None at the end of the text.

        Raises:
            PtxError: What follows is no statement.
        """
        found = _STATEMENT.match(self.text, self._position)
        if found is None:
            rest = self.text[self._position :].strip()
            if not rest:
                return None
            self._start = self.text.index(rest, self._position)
            msg = f"expected a statement, got {rest[:40]!r}"
            raise PtxError(msg)
        self._start = found.start() + len(found[0]) - len(found[0].lstrip())
        self._position = found.end()
        return found

    def skip_braces(self) -> None:
        """Go behind the brace that closes the one just read.

        Raises:
            PtxError: There is none.
        """
        depth = 1
        for brace in _BRACE.finditer(self.text, self._position):
            depth += 1 if brace[0] == "{" else -1
            if not depth:
                self._position = brace.end()
                return
        msg = "the text ends inside braces"
        raise PtxError(msg)


def _blank(found: re.Match[str]) -> str:
    return found[1] or "\n" * found[0].count("\n") or " "
