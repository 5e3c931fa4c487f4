"""The body of a kernel or device function: scopes, labels, instructions."""

from __future__ import annotations

import re
from collections import ChainMap
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ci.simulator.declarations import parameters, variable
from ci.simulator.errors import PtxError
from ci.simulator.operands import Scope, operand, split_operands
from ci.simulator.ptx import (
    Guard,
    Instruction,
    Operand,
    Parameter,
    Register,
    Routine,
    Symbol,
    Target,
    Variable,
    Vector,
)

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from ci.simulator.reader import Reader
    from ci.simulator.report import Place

ENDS_RUN = frozenset({"bra", "brx", "call", "ret", "exit"})
"""Opcodes behind which a straight run of instructions ends."""
_LEADS_ON = ENDS_RUN | {"bar", "barrier"}
"""Behind a barrier, too, lanes may go on at other times than they came."""
DEPTH_MAX = 100
"""Braces in braces; a compiler writes one or two."""

IGNORED = (".pragma", ".alias", ".callprototype", ".calltargets")
LINKING = re.compile(r"(?:\.(?:visible|extern|weak|common)\s+)*")

_INSTRUCTION = re.compile(r"(?:@(!?)\s*([\w$%]+)\s+)?([a-z]\w*)((?:\.[\w:]+)*)\s*(.*)$", re.DOTALL)
_REGISTERS = re.compile(r"\.reg\s*\.(?P<type>\w+)\s+(?P<names>.*)$", re.DOTALL)
_CALL = re.compile(
    r"(?:\((?P<returns>[^()]*)\)\s*,\s*)?(?P<callee>[\w$%]+)\s*"
    r"(?:,\s*\((?P<arguments>[^()]*)\)\s*)?(?:,\s*[\w$%]+\s*)?$"
)


@dataclass(kw_only=True, slots=True)
class _Labels:
    """Labels of one pair of braces: visible in it and further inside."""

    outer: _Labels | None
    pcs: dict[str, int] = field(default_factory=dict)
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a ``.branchtargets`` list → its labels."""

    def find(self, name: str) -> int | None:
        place: _Labels | None = self
        while place is not None:
            if name in place.pcs:
                return place.pcs[name]
            place = place.outer
        return None

    def find_list(self, name: str) -> tuple[str, ...] | None:
        place: _Labels | None = self
        while place is not None:
            if name in place.lists:
                return place.lists[name]
            place = place.outer
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Draft:
    """An instruction whose branch targets may not be known yet."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    text: str
    place: Place
    targets: str
    """A label, or the name of a list of labels; empty if it does not branch."""
    labels: _Labels


class Body:
    """Reads one body; ``routine`` is called once."""

    def __init__(
        self, reader: Reader, name: str, outside: MutableMapping[str, str], suffix: str = ""
    ) -> None:
        """Begin behind the opening brace.

        Args:
            reader: The text.
            name: Of the kernel or function.
            outside: Variables and functions declared so far.
            suffix: Makes the names of a function's registers and variables unique in a kernel.
        """
        self._reader = reader
        self._name = name
        self._suffix = suffix
        self._symbols = ChainMap[str, str]({}, outside)
        self._parameters: tuple[Parameter, ...] = ()
        self._formals: tuple[Register, ...] = ()
        self._returns: tuple[Register, ...] = ()
        self._own: dict[str, Variable] = {}
        self._scope = Scope(outer=None, suffix=suffix)
        self._labels = _Labels(outer=None)
        self._label = ""
        self._scopes = 0
        self._drafts: list[_Draft] = []

    def declare_parameters(self, declared: tuple[Parameter, ...]) -> None:
        """Give a kernel its parameters."""
        self._parameters = declared
        self._symbols.update({parameter.name: parameter.name for parameter in declared})

    def declare_formals(self, returns: str, formals: str) -> None:
        """Give a function the parameters of two lists."""
        self._returns = self._declared_params(returns)
        self._formals = self._declared_params(formals)

    def _declared_params(self, declarations: str) -> tuple[Register, ...]:
        return tuple(
            self._scope.declare_param(parameter.name, parameter.size_bytes)
            for parameter in parameters(declarations)
        )

    def routine(self) -> Routine:
        """Read to the closing brace and return what is inside.

        Raises:
            PtxError: It is malformed, or has no end.
        """
        depth = 1
        while depth:
            found = self._reader.next()
            if found is None:
                msg = f"the text ends inside {self._name}, expected a closing brace"
                raise PtxError(msg)
            if found["open"]:
                depth += 1
                self._open(depth)
            elif found["close"]:
                depth -= 1
                self._scope = self._scope.outer or self._scope
                self._labels = self._labels.outer or self._labels
            else:
                self._statement(found)
        return Routine(
            name=self._name,
            parameters=self._parameters,
            formals=self._formals,
            returns=self._returns,
            instructions=self._finished(),
            own=tuple(self._own.values()),
        )

    def _open(self, depth: int) -> None:
        if depth > DEPTH_MAX:
            msg = f"expected at most {DEPTH_MAX} braces in braces in {self._name}"
            raise PtxError(msg)
        self._scopes += 1
        self._scope = Scope(outer=self._scope, suffix=f"#{self._scopes}{self._suffix}")
        self._labels = _Labels(outer=self._labels)

    def _statement(self, found: re.Match[str]) -> None:
        if found["label"]:
            if found["label"] in self._labels.pcs:
                msg = f"label {found['label']} is defined twice"
                raise PtxError(msg)
            self._labels.pcs[found["label"]] = len(self._drafts)
            self._label = found["label"]
        elif found["statement"] and found["statement"].startswith("."):
            self._declaration(found["statement"])
        elif found["statement"]:
            self._drafts.append(self._draft(found["statement"]))
        elif (found["line"] or "").startswith(".loc"):
            self._reader.table.enter(found["line"].strip())
        else:
            msg = f"unexpected {found[0].strip()[:40]!r} inside {self._name}"
            raise PtxError(msg)

    def _declaration(self, statement: str) -> None:
        if statement.startswith(".reg"):
            registers = _REGISTERS.match(statement)
            if not registers:
                msg = f"malformed {statement[:60]!r}"
                raise PtxError(msg)
            for declared in registers["names"].split(","):
                self._scope.declare(declared.strip(), registers["type"])
        elif statement.startswith(".param"):
            self._declared_params(" ".join(statement.split()))
        elif statement.startswith(".branchtargets"):
            names = statement.removeprefix(".branchtargets").split(",")
            self._labels.lists[self._label] = tuple(name.strip() for name in names)
        elif not statement.startswith(IGNORED):
            declared_variable = variable(LINKING.sub("", statement, count=1))
            unique = declared_variable.name + self._suffix
            self._own[unique] = replace(declared_variable, name=unique)
            self._symbols[declared_variable.name] = unique

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
                msg = f"{guarded[:40]} is not a predicate"
                raise PtxError(msg)
            guard = Guard(register=register, negated=bool(negated))
        operands, targets = self._operands(opcode, rest.strip())
        return _Draft(
            opcode=opcode,
            modifiers=tuple(part.partition("::cta")[0] for part in dotted.split(".")[1:]),
            operands=operands,
            guard=guard,
            text=text,
            place=self._reader.table.place,
            targets=targets,
            labels=self._labels,
        )

    def _operands(self, opcode: str, text: str) -> tuple[tuple[Operand, ...], str]:
        """Return an instruction's operands, and the label or list that it branches to."""
        if opcode == "bra":
            return (), text
        if opcode == "call":
            return self._call(text), ""
        if opcode == "brx":
            index, _, targets = text.partition(",")
            return (operand(index.strip(), self._scope, self._symbols),), targets.strip()
        return self._listed(text), ""

    def _listed(self, text: str) -> tuple[Operand, ...]:
        return tuple(operand(part, self._scope, self._symbols) for part in split_operands(text))

    def _call(self, text: str) -> tuple[Operand, ...]:
        """Return the results, the callee and the arguments of a call."""
        parts = _CALL.match(text)
        if not parts:
            msg = f"malformed call {text[:60]!r}"
            raise PtxError(msg)
        returns, arguments = (
            Vector(items=self._listed((parts[name] or "").strip()))
            for name in ("returns", "arguments")
        )
        return returns, operand(parts["callee"], self._scope, self._symbols), arguments

    def _finished(self) -> tuple[Instruction, ...]:
        targets = [self._targets(draft) for draft in self._drafts]
        leaders = {0, *(pc for each in targets for pc in each)}
        leaders |= {pc + 1 for pc, d in enumerate(self._drafts) if d.opcode in _LEADS_ON}
        return tuple(
            Instruction(
                pc=pc,
                opcode=draft.opcode,
                modifiers=draft.modifiers,
                operands=draft.operands + tuple(Target(pc=target) for target in targets[pc]),
                guard=draft.guard,
                text=draft.text,
                place=draft.place,
                leader=pc in leaders,
            )
            for pc, draft in enumerate(self._drafts)
        )

    def _targets(self, draft: _Draft) -> tuple[int, ...]:
        """Return where a branch leads: one place, or one for each value of an index."""
        names: tuple[str, ...] | None = ()
        if draft.opcode == "bra":
            names = (draft.targets,)
        elif draft.opcode == "brx":
            names = draft.labels.find_list(draft.targets)
        pcs = [None] if names is None else [draft.labels.find(name) for name in names]
        found = tuple(pc for pc in pcs if pc is not None)
        if len(found) < len(pcs):
            msg = f"{draft.text[:60]!r}: no such label"
            raise PtxError(msg)
        return found


def callee_of(instruction: Instruction) -> str:
    """Return the function that a call names; empty if it is none, or goes through a register."""
    if instruction.opcode == "call" and isinstance(instruction.operands[1], Symbol):
        return instruction.operands[1].name
    return ""
