"""PTX text to a module: its variables, functions and kernels.

Source: NVIDIA, Parallel Thread Execution ISA, "Syntax" and "Directives".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ci.simulator.body import IGNORED, LINKING, Body
from ci.simulator.declarations import parameters, variable
from ci.simulator.errors import PtxError
from ci.simulator.link import Kernels
from ci.simulator.ptx import Module, Routine, Variable
from ci.simulator.reader import Reader

_FUNCTION = re.compile(
    r"(?:\.(?:visible|extern|weak)\s+)*\.func\s*(?:\.attribute\s*\([^()]*\)\s*)?"
    r"(?:\((?P<returns>[^()]*)\)\s*)?(?P<name>[\w$%]+)\s*(?:\((?P<params>[^()]*)\))?\s*(?:\.[^()]*)?$"
)


_MESSAGE_MAX_CHARACTERS = 200


def _shorten(message: str) -> str:
    """Return a message as one line of bearable length, whatever it quotes."""
    line = " ".join(message.split())
    most = _MESSAGE_MAX_CHARACTERS
    return line if len(line) <= most else f"{line[: most // 2]} ... {line[-most // 4 :]}"


def parse(text: str) -> Module:
    """Return the kernels of a PTX text.

    Raises:
        PtxError: The text is not PTX, or is cut off.
    """
    reader = Reader(text)
    try:
        return _Parser(reader).module()
    except PtxError as error:
        msg = f"PTX line {reader.line}: {_shorten(str(error))}"
        raise PtxError(msg) from error
    except (ValueError, OverflowError) as error:
        msg = f"PTX line {reader.line}: expected a number, got one out of range"
        raise PtxError(msg) from error


@dataclass(slots=True)
class _Parser:
    """What has been read of a module so far."""

    reader: Reader
    entries: dict[str, Routine] = field(default_factory=dict)
    functions: dict[str, Routine] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)

    def module(self) -> Module:
        """Return the whole module."""
        first = self.reader.next()
        if first is None or not (first["line"] or "").startswith(".version"):
            msg = "expected .version at the start"
            raise PtxError(msg)
        while (found := self.reader.next()) is not None:
            self._directive(found)
        return Module(kernels=Kernels(self.entries, self.functions, self.variables))

    def _directive(self, found: re.Match[str]) -> None:
        if found["entry"]:
            body = Body(self.reader, found["entry"], self.symbols)
            body.declare_parameters(parameters(found["params"] or ""))
            self.entries[found["entry"]] = body.routine()
        elif found["function"]:
            self._function(found["function"], has_body=found["end"] == "{")
        elif found["section"]:
            self.reader.skip_braces()
        elif found["statement"]:
            declaration = LINKING.sub("", found["statement"], count=1)
            if not declaration.startswith(IGNORED):
                declared = variable(declaration)
                self.variables[declared.name] = declared
                self.symbols[declared.name] = declared.name
        elif not found["line"]:
            msg = f"unexpected {found[0].strip()[:40]!r} outside a kernel"
            raise PtxError(msg)

    def _function(self, header: str, *, has_body: bool) -> None:
        parts = _FUNCTION.match(" ".join(header.split()))
        if not parts:
            msg = f"malformed {header[:60]!r}"
            raise PtxError(msg)
        name = parts["name"]
        self.symbols[name] = name
        if has_body:
            body = Body(self.reader, name, self.symbols, suffix=f"@{name}")
            body.declare_formals(parts["returns"] or "", parts["params"] or "")
            self.functions[name] = body.routine()
