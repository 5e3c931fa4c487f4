"""PTX text to kernels: directives, scopes, labels, instructions.

Source: NVIDIA, Parallel Thread Execution ISA, "Syntax" and "Directives".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ci.simulator.declarations import parameters, variable
from ci.simulator.errors import PtxError
from ci.simulator.lines import LineTable
from ci.simulator.operands import Scope, operand, split_operands
from ci.simulator.ptx import (
    Address,
    Guard,
    Instruction,
    Kernel,
    Module,
    Operand,
    Symbol,
    Target,
    Variable,
)
from ci.simulator.report import Place

ENDS_RUN = frozenset({"bra", "ret", "exit"})
"""Opcodes behind which a straight run of instructions ends."""

_COMMENT = re.compile(r'("[^"\n]*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
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
_INSTRUCTION = re.compile(r"(?:@(!?)\s*([\w$%]+)\s+)?([a-z]\w*)((?:\.[\w:]+)*)\s*(.*)$", re.DOTALL)
_LINKING = re.compile(r"(?:\.(?:visible|extern|weak|common)\s+)*")
_IGNORED = (".pragma", ".alias", ".branchtargets", ".callprototype", ".calltargets", ".param")


def parse(text: str) -> Module:
    """Return the kernels of a PTX text.

    Bodies of device functions are skipped: an instruction that calls one is not emulated.

    Raises:
        PtxError: The text is not PTX, or is cut off.
    """
    reader = _Reader(_COMMENT.sub(_blank, text))
    try:
        return _module(reader)
    except PtxError as error:
        msg = f"PTX line {reader.line}: {error}"
        raise PtxError(msg) from error


def _blank(found: re.Match[str]) -> str:
    return found[1] or "\n" * found[0].count("\n") or " "


class _Reader:
    """The statements of a text, one after the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.start = 0
        self.position = 0
        self.table = LineTable(text)

    @property
    def line(self) -> int:
        """Return the 1-based line of the statement read last."""
        return self.text.count("\n", 0, self.start) + 1

    def next(self) -> re.Match[str] | None:
        """Return the next statement, or None at the end of the text."""
        found = _STATEMENT.match(self.text, self.position)
        if found is None:
            rest = self.text[self.position :].strip()
            if not rest:
                return None
            self.start = self.text.index(rest, self.position)
            msg = f"expected a statement, got {rest[:40]!r}"
            raise PtxError(msg)
        self.start = found.start() + len(found[0]) - len(found[0].lstrip())
        self.position = found.end()
        return found

    def skip_braces(self) -> None:
        """Go behind the brace that closes the one just read."""
        depth = 1
        for brace in re.finditer(r"[{}]", self.text[self.position :]):
            depth += 1 if brace[0] == "{" else -1
            if not depth:
                self.position += brace.end()
                return
        msg = "the text ends inside braces"
        raise PtxError(msg)


def _module(reader: _Reader) -> Module:
    kernels: dict[str, Kernel] = {}
    variables: dict[str, Variable] = {}
    first = reader.next()
    if first is None or not (first["line"] or "").startswith(".version"):
        msg = "expected .version at the start"
        raise PtxError(msg)
    while (found := reader.next()) is not None:
        if found["entry"]:
            kernels[found["entry"]] = _Body(reader, found, variables).kernel()
        elif found["section"] or found["end"] == "{":
            reader.skip_braces()
        elif found["statement"]:
            declaration = _LINKING.sub("", found["statement"], count=1)
            if not declaration.startswith(_IGNORED):
                declared = variable(declaration)
                variables[declared.name] = declared
        elif not (found["line"] or found["function"]):
            msg = f"unexpected {found[0].strip()!r} outside a kernel"
            raise PtxError(msg)
    return Module(kernels=kernels)


@dataclass(kw_only=True, slots=True)
class _Labels:
    """Labels of one pair of braces: visible in it and further inside."""

    outer: _Labels | None
    pcs: dict[str, int] = field(default_factory=dict)

    def find(self, name: str) -> int | None:
        place: _Labels | None = self
        while place is not None:
            if name in place.pcs:
                return place.pcs[name]
            place = place.outer
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Draft:
    """An instruction whose branch target may not be known yet."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    text: str
    place: Place
    target: str
    labels: _Labels


class _Body:
    """The body of one kernel."""

    def __init__(
        self, reader: _Reader, header: re.Match[str], variables: dict[str, Variable]
    ) -> None:
        self._reader = reader
        self._name = header["entry"]
        self._parameters = parameters(header["params"] or "")
        self._outside = variables
        self._own: dict[str, Variable] = {}
        self._symbols = frozenset(variables) | {parameter.name for parameter in self._parameters}
        self._scope = Scope(outer=None, suffix="")
        self._labels = _Labels(outer=None)
        self._scopes = 0
        self._drafts: list[_Draft] = []

    def kernel(self) -> Kernel:
        depth = 1
        while depth:
            found = self._reader.next()
            if found is None:
                msg = f"the text ends inside kernel {self._name}"
                raise PtxError(msg)
            if found["open"]:
                depth += 1
                self._scopes += 1
                self._scope = Scope(outer=self._scope, suffix=f"#{self._scopes}")
                self._labels = _Labels(outer=self._labels)
            elif found["close"]:
                depth -= 1
                self._scope = self._scope.outer or self._scope
                self._labels = self._labels.outer or self._labels
            else:
                self._statement(found)
        return self._finished()

    def _statement(self, found: re.Match[str]) -> None:
        if found["label"]:
            if found["label"] in self._labels.pcs:
                msg = f"label {found['label']} is defined twice"
                raise PtxError(msg)
            self._labels.pcs[found["label"]] = len(self._drafts)
        elif found["statement"] and found["statement"].startswith("."):
            self._declaration(found["statement"])
        elif found["statement"]:
            self._drafts.append(self._draft(found["statement"]))
        elif (found["line"] or "").startswith(".loc"):
            self._reader.table.enter(found["line"].strip())
        else:
            msg = f"unexpected {found[0].strip()[:40]!r} inside kernel {self._name}"
            raise PtxError(msg)

    def _declaration(self, statement: str) -> None:
        if statement.startswith(".reg"):
            parts = statement.split(None, 2)
            if len(parts) != 3 or not parts[1].startswith("."):  # noqa: PLR2004
                msg = f"malformed {statement[:60]!r}"
                raise PtxError(msg)
            for declared in parts[2].split(","):
                self._scope.declare(declared.strip(), parts[1][1:])
        elif statement.startswith(".param"):
            # Arguments of a call, which is not emulated.
            self._symbols |= {re.split(r"[\s\[]+", statement)[-1 - statement.endswith("]")]}
        elif not statement.startswith(_IGNORED):
            declared_variable = variable(_LINKING.sub("", statement, count=1))
            self._own[declared_variable.name] = declared_variable
            self._symbols |= {declared_variable.name}

    def _draft(self, statement: str) -> _Draft:
        text = " ".join(statement.split())
        parts = _INSTRUCTION.match(text)
        if not parts:
            msg = f"expected an instruction, got {text[:40]!r}"
            raise PtxError(msg)
        negated, guarded, opcode, dotted, rest = parts.groups()
        guard = None
        if guarded:
            register = self._scope.register(guarded)
            if register is None or register.type != "pred":
                msg = f"{guarded} is not a predicate"
                raise PtxError(msg)
            guard = Guard(register=register, negated=bool(negated))
        operands: tuple[Operand, ...] = ()
        if opcode not in ("call", "bra", "brx"):
            operands = tuple(
                operand(part, self._scope, self._symbols) for part in split_operands(rest.strip())
            )
        return _Draft(
            opcode=opcode,
            modifiers=tuple(part.partition("::cta")[0] for part in dotted.split(".")[1:]),
            operands=operands,
            guard=guard,
            text=text,
            place=self._reader.table.place,
            target=rest.strip() if opcode == "bra" else "",
            labels=self._labels,
        )

    def _finished(self) -> Kernel:
        targets = [self._target(draft) for draft in self._drafts]
        leaders = {0, *(target for target in targets if target is not None)}
        leaders |= {pc + 1 for pc, draft in enumerate(self._drafts) if draft.opcode in ENDS_RUN}
        instructions = tuple(
            Instruction(
                pc=pc,
                opcode=draft.opcode,
                modifiers=draft.modifiers,
                operands=draft.operands if target is None else (Target(pc=target),),
                guard=draft.guard,
                text=draft.text,
                place=draft.place,
                leader=pc in leaders,
            )
            for pc, (draft, target) in enumerate(zip(self._drafts, targets, strict=True))
        )
        named = _names(instructions)
        reachable = [*self._own.values()]
        reachable += [v for name, v in self._outside.items() if name in named]
        shared = [v for v in reachable if v.space == "shared"]
        return Kernel(
            name=self._name,
            parameters=self._parameters,
            instructions=instructions,
            shared=tuple(sorted(shared, key=lambda v: v.dynamic)),
            local=tuple(v for v in reachable if v.space == "local"),
            variables={v.name: v for v in reachable if v.space in ("const", "global")},
        )

    def _target(self, draft: _Draft) -> int | None:
        if draft.opcode != "bra":
            return None
        pc = draft.labels.find(draft.target)
        if pc is None:
            msg = f"{draft.text!r}: no such label"
            raise PtxError(msg)
        return pc


def _names(instructions: tuple[Instruction, ...]) -> frozenset[str]:
    """Return the variables that the instructions name."""
    names = set()
    for instruction in instructions:
        for item in instruction.operands:
            base = item.base if isinstance(item, Address) else item
            if isinstance(base, Symbol):
                names.add(base.name)
    return frozenset(names)
