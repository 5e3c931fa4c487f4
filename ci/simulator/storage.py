"""In which type each register of a kernel holds its bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import BOOL, KINDS, U8, dtype_of
from ci.simulator.operands import PARAM, TYPE_BYTES
from ci.simulator.ptx import Address, Negated, Operand, Pair, Register, Vector

if TYPE_CHECKING:
    from ci.simulator.ptx import Kernel

_PREFERRED = ("i", "f", "u")
"""Kinds, in the order in which they win a draw."""


def storage_types(kernel: Kernel) -> dict[str, np.dtype[Any]]:
    """Return the type in which each register's slot holds its bits.

    Untyped registers hold what most of their instructions take them for, so that few
    instructions have to reinterpret them.
    """
    return _Votes(kernel).result


class _Votes:
    """Counts as what the instructions of a kernel use each register."""

    def __init__(self, kernel: Kernel) -> None:
        self._votes: dict[str, dict[str, int]] = {}
        self._types: dict[str, str] = {}
        for instruction in kernel.instructions:
            kinds = [part for part in instruction.modifiers if part[1:].isdigit()]
            if instruction.guard:
                self._count(instruction.guard.register, "b")
            for position, operand in enumerate(instruction.operands):
                kind = (kinds[0] if position == 0 else kinds[-1])[0] if kinds else "b"
                self._operand(operand, kind)
        for function in kernel.functions.values():
            for register in (*function.formals, *function.returns):
                self._count(register, "b")
        self.result = {name: self._storage(name) for name in self._types}

    def _operand(self, operand: Operand, kind: str) -> None:
        match operand:
            case Register():
                self._count(operand, kind)
            case Address(base=Register() as base):
                self._count(base, "s")
            case Negated(register=register):
                self._count(register, kind)
            case Pair(first=first, second=second):
                self._operand(first, kind)
                self._operand(second, kind)
            case Vector(items=items):
                for item in items:
                    self._operand(item, kind)
            case _:
                pass

    def _count(self, register: Register, kind: str) -> None:
        self._types[register.name] = register.type
        votes = self._votes.setdefault(register.name, {})
        if kind in KINDS and kind != "b":
            votes[KINDS[kind]] = votes.get(KINDS[kind], 0) + 1

    def _storage(self, name: str) -> np.dtype[Any]:
        declared = self._types[name]
        if declared.startswith(PARAM):
            return np.dtype(f"V{declared.removeprefix(PARAM)}")
        if TYPE_BYTES[declared] > U8.itemsize:
            # Wider than any type that an emulated instruction reads or writes.
            return U8
        held = dtype_of(declared)
        if declared[0] == "f" and declared != "f16x2":
            return held
        votes = self._votes[name]
        if held == BOOL or not votes:
            return held
        kind = max(_PREFERRED, key=lambda candidate: votes.get(candidate, 0))
        if kind == "f" and held.itemsize == 1:
            return held
        return np.dtype(f"{kind}{held.itemsize}")
