"""From routines to kernels: which functions and variables each one reaches, in one sequence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ci.simulator.body import callee_of
from ci.simulator.ptx import (
    Address,
    Function,
    Instruction,
    Kernel,
    Operand,
    Routine,
    State,
    Symbol,
    Target,
    Variable,
)
from ci.simulator.report import Place

CODE_WINDOW = 1 << 32
"""Addresses of functions begin here, where no variable lies."""
CODE_SPACING = 16


class Kernels(Mapping[str, Kernel]):
    """The kernels of a module by symbol; each is put together when it is asked for."""

    def __init__(
        self,
        entries: Mapping[str, Routine],
        functions: Mapping[str, Routine],
        variables: Mapping[str, Variable],
    ) -> None:
        """Take over what a module declares."""
        self._entries = entries
        self._functions = functions
        self._variables = variables
        self._addresses = {
            name: CODE_WINDOW + CODE_SPACING * number for number, name in enumerate(functions)
        }
        self._linked: dict[str, Kernel] = {}
        self._state = State()

    def __getitem__(self, name: str) -> Kernel:
        """Return one kernel."""
        if name not in self._linked:
            self._linked[name] = self._link(self._entries[name])
        return self._linked[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the symbols in the order of the text."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Return the number of kernels."""
        return len(self._entries)

    def _link(self, entry: Routine) -> Kernel:
        functions, variables = self._reached(entry)
        instructions = list(entry.instructions)
        linked = {}
        if functions:
            instructions.append(_ending(len(instructions), entry))
        for function in functions:
            start = len(instructions)
            instructions += [_moved(i, start) for i in function.instructions]
            instructions.append(_ending(len(instructions), function))
            linked[function.name] = Function(
                name=function.name,
                start=start,
                end=len(instructions),
                formals=function.formals,
                returns=function.returns,
                local=tuple(v for v in function.own if v.space == "local"),
                address=self._addresses[function.name],
            )
        shared = [v for v in variables if v.space == "shared"]
        of_functions = {v.name for function in functions for v in function.own}
        return Kernel(
            name=entry.name,
            parameters=entry.parameters,
            instructions=tuple(instructions),
            shared=tuple(sorted(shared, key=lambda v: v.dynamic)),
            local=tuple(v for v in variables if v.space == "local" and v.name not in of_functions),
            variables={v.name: v for v in variables if v.space in ("const", "global")},
            functions=linked,
            state=self._state,
        )

    def _reached(self, entry: Routine) -> tuple[list[Routine], list[Variable]]:
        """Return the functions and variables that an entry names, directly or not."""
        functions: dict[str, Routine] = {}
        variables = {v.name: v for v in entry.own}
        waiting = [*_names(entry)]
        while waiting:
            name = waiting.pop()
            function, variable = self._functions.get(name), self._variables.get(name)
            if function is not None and name not in functions:
                functions[name] = function
                variables |= {v.name: v for v in function.own}
                waiting += _names(function)
            elif variable is not None and name not in variables:
                variables[name] = variable
                waiting += [link.symbol for link in variable.links]
        in_order = [f for name, f in self._functions.items() if name in functions]
        outside = [v for name, v in self._variables.items() if name in variables]
        own = [v for name, v in variables.items() if name not in self._variables]
        return in_order, own + outside


def _names(routine: Routine) -> frozenset[str]:
    """Return the variables and functions that the instructions name."""
    names = set()
    for instruction in routine.instructions:
        names.add(callee_of(instruction))
        for item in instruction.operands:
            base = item.base if isinstance(item, Address) else item
            if isinstance(base, Symbol):
                names.add(base.name)
    return frozenset(names)


def _moved(instruction: Instruction, start: int) -> Instruction:
    """Return an instruction of a routine that begins at ``start``."""
    operands: tuple[Operand, ...] = tuple(
        Target(pc=o.pc + start) if isinstance(o, Target) else o for o in instruction.operands
    )
    return replace(instruction, pc=instruction.pc + start, operands=operands)


def _ending(pc: int, routine: Routine) -> Instruction:
    """Return the ret that a routine may leave out at its end, or that a label there needs."""
    place = routine.instructions[-1].place if routine.instructions else Place(file="", line=0)
    return Instruction(
        pc=pc,
        opcode="ret",
        modifiers=(),
        operands=(),
        guard=None,
        text="ret",
        place=place,
        leader=True,
    )
