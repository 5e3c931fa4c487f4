"""From the compiler's line table to the places people know: ``.file`` and ``.loc``."""

from __future__ import annotations

import re

from ci.simulator.errors import PtxError
from ci.simulator.report import Place

_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d{1,9})[ \t]+"([^"\n]*)"', re.MULTILINE)
_LOC = re.compile(
    r"\.loc\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})"
    r"(?:\s*,\s*function_name\s+[\w$+%]+(?:\s*\+\s*\d+)?\s*,\s*inlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9}))?\s*$"
)
_TOOLKIT = re.compile(r"(?:^|/)(?:nvidia|cuda[^/]*)/(?:[^/]+/)*include/")
"""Where headers of the CUDA toolkit lie, installed from wheels or with its own installer."""

_Position = tuple[int, int, int]


class LineTable:
    """Turns ``.loc`` directives, met in order, into places in the user's own files."""

    def __init__(self, text: str) -> None:
        """Read the file names, which PTX lists behind the code."""
        self._files = {int(number): name for number, name in _FILE.findall(text)}
        self._callers: dict[_Position, _Position] = {}
        self.place = Place(file="", line=0)
        """Where the instructions that follow come from."""

    def _foreign(self, position: _Position) -> bool:
        return _TOOLKIT.search(self._files.get(position[0], "")) is not None

    def enter(self, directive: str) -> None:
        """Take in one ``.loc`` directive.

        Code inlined from a toolkit header is placed where the user's code calls it. Line 0 marks
        code that the compiler moved: it keeps the place of its surroundings.

        Raises:
            PtxError: It is malformed.
        """
        found = _LOC.match(directive)
        if not found:
            msg = f"malformed {directive!r}"
            raise PtxError(msg)
        file, line, column = (int(number) for number in found.group(1, 2, 3))
        position = (file, line, column)
        if found[4]:
            caller = (int(found[4]), int(found[5]), int(found[6]))
            if caller != position:
                self._callers[position] = caller
        seen = set()
        while self._foreign(position) and position in self._callers and position not in seen:
            seen.add(position)
            position = self._callers[position]
        if position[1] > 0:
            self.place = Place(
                file=self._files.get(position[0], ""),
                line=position[1],
                called_from=self._called_from(position),
            )

    def _called_from(self, position: _Position) -> str:
        """Return where the kernel itself calls the code at a position; empty if it is its own."""
        outermost, seen = position, {position}
        while self._callers.get(outermost, outermost) not in seen:
            outermost = self._callers[outermost]
            seen.add(outermost)
        if outermost == position:
            return ""
        return f"{self._files.get(outermost[0], '')}:{outermost[1]}"
