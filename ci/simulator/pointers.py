"""Which parameters of a kernel it may write through, told from its text.

A pointer is followed through registers: what an instruction writes points wherever one of its
sources points. What is loaded from memory in eight bytes may point anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci.simulator.ptx import Address, Negated, Operand, Pair, Register, Symbol, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ci.simulator.ptx import Instruction, Kernel

_WRITES = frozenset({"st", "atom", "red"})
_WITHOUT_RESULT = frozenset({"st", "red", "bra", "bar", "barrier"})
_ANYWHERE = ""


def written_parameters(kernel: Kernel) -> frozenset[str]:
    """Return the names of the parameters that a store or an atomic may go through.

    All of them for a kernel that calls functions, or writes through a pointer from memory.
    """
    names = frozenset(parameter.name for parameter in kernel.parameters)
    if kernel.functions:
        return names
    sources: dict[str, set[str]] = {}
    pointing: dict[str, frozenset[str]] = {}
    for instruction in kernel.instructions:
        results, read = _flow(instruction, names)
        for result in results:
            sources.setdefault(result, set()).update(read)
    changed = True
    while changed:
        changed = False
        for result, read in sources.items():
            targets = frozenset().union(
                *(frozenset({s}) if s in names or s == _ANYWHERE else pointing.get(s, frozenset())
                  for s in read)
            )  # fmt: skip
            if targets != pointing.get(result, frozenset()):
                pointing[result] = targets
                changed = True
    written: set[str] = set()
    for instruction in kernel.instructions:
        if instruction.opcode in _WRITES and "shared" not in instruction.modifiers:
            address = next(o for o in instruction.operands if isinstance(o, Address))
            if isinstance(address.base, Register):
                written |= pointing.get(address.base.name, frozenset())
    return names if _ANYWHERE in written else frozenset(written)


def _flow(instruction: Instruction, names: frozenset[str]) -> tuple[list[str], set[str]]:
    """Return the registers an instruction writes, and the registers and parameters it reads."""
    operands = instruction.operands
    if instruction.opcode in _WITHOUT_RESULT or not operands:
        return [], set()
    results = [register.name for register in registers_of(operands[0])]
    if instruction.opcode in ("ld", "ldu"):
        if "param" not in instruction.modifiers:
            return results, {_ANYWHERE} if instruction.modifiers[-1][1:] == "64" else set()
        base = operands[1].base if isinstance(operands[1], Address) else None
        return results, {base.name} & names if isinstance(base, Symbol) else {_ANYWHERE}
    read = {register.name for operand in operands[1:] for register in registers_of(operand)}
    read |= {o.name for o in operands[1:] if isinstance(o, Symbol)} & names
    return results, read


def registers_of(operand: Operand) -> Iterator[Register]:
    """Yield the registers of an operand that is no address."""
    match operand:
        case Register():
            yield operand
        case Negated(register=register):
            yield register
        case Pair(first=first, second=second):
            yield from registers_of(first)
            yield from registers_of(second)
        case Vector(items=items):
            for item in items:
                yield from registers_of(item)
        case _:
            return
