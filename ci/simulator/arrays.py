"""Which shared array each access can only mean, told from a kernel's text.

The array is followed through registers, over all definitions of each: a sum of an array's address
and numbers points into that array. Where an address is chosen between two arrays, stems from both,
or comes from memory, there is no telling.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ci.simulator.ptx import Address, Operand, Pair, Register, Symbol, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ci.simulator.ptx import Instruction, Kernel

_ACCESSES = frozenset(("ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "wmma"))
_FROM_MEMORY = frozenset(("ld", "ldu", "atom", "ldmatrix", "wmma", "call"))
_WITHOUT_RESULT = frozenset(("st", "red", "cp", "bra", "brx", "bar", "barrier"))
_ELSEWHERE = frozenset(("global", "const", "param", "local"))
_CHOICES = {"mov": 1, "cvta": 1, "cvt": 1, "shfl": 1, "selp": 2, "slct": 2, "min": 2, "max": 2}
"""Opcode → of how many sources the result is one, unchanged."""

_NUMBER, _ANY = "", "*"
"""Stand for no array and for any, where an array's name would."""
_LOCAL_NAME = re.compile(r"E(?=(\d+))")


class SharedArray(NamedTuple):
    """A variable in shared memory."""

    name: str
    """In the CUDA source, where the symbol tells it."""
    start: int
    """Bytes from the start of the block's shared memory …"""
    end: int
    """… to behind its last byte."""


def accessed_arrays(kernel: Kernel) -> Mapping[int, str]:
    """Return the symbol of the shared array that an access goes to, by program counter.

    Accesses that may go to several arrays or to another space are left out, and all of them where
    a kernel has one array only.
    """
    shared = frozenset(variable.name for variable in kernel.shared)
    if len(shared) <= 1:
        return {}
    flows = [flow for instruction in kernel.instructions for flow in _flows(instruction)]
    stems: dict[str, str] = {}
    defined = {result for result, _ in flows}

    def stem(operand: Operand) -> str | None:
        if isinstance(operand, Symbol):
            return operand.name if operand.name in shared else _NUMBER
        if isinstance(operand, Register) and operand.name in defined:
            return stems.get(operand.name)
        return _NUMBER

    changed = True
    while changed:
        changed = False
        for result, sources in flows:
            found = _sum([stem(source) for source in sources])
            before = stems.get(result)
            if found is not None and before not in (found, _ANY):
                stems[result] = found if before is None else _ANY
                changed = True
    arrays = {}
    for instruction in kernel.instructions:
        base = _base(instruction)
        array = None if base is None else stem(base)
        if array in shared:
            arrays[instruction.pc] = array
    return arrays


def name_of(symbol: str) -> str:
    """Return the CUDA name of a variable: ``As`` of ``_ZZ4gemmPfE2As``, a plain one as it is."""
    for begin in _LOCAL_NAME.finditer(symbol if symbol.startswith("_Z") else ""):
        start = begin.end() + len(begin[1])
        name, rest = symbol[start : start + int(begin[1])], symbol[start + int(begin[1]) :]
        if name.isidentifier() and re.fullmatch(r"(_\d|__\d+_)?", rest):
            return name
    return symbol


def _sum(stems: Sequence[str | None]) -> str | None:
    """Return what a sum stems from; None: not known yet."""
    if None in stems:
        return None
    arrays = [stem for stem in stems if stem]
    if not arrays:
        return _NUMBER
    return arrays[0] if len(arrays) == 1 else _ANY


def _flows(instruction: Instruction) -> Iterator[tuple[str, Sequence[Operand]]]:
    """Yield each register that an instruction writes, with what it is a sum of."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in _WITHOUT_RESULT or not operands:
        return
    sources = tuple(part for operand in operands[1:] for part in _parts(operand))
    for result in _parts(operands[0]):
        if not isinstance(result, Register) or result.type[0] == "f":
            continue
        if opcode in _FROM_MEMORY:
            yield result.name, ()
        elif opcode in _CHOICES and not isinstance(operands[1], Vector):
            for source in sources[: _CHOICES[opcode]]:
                yield result.name, (source,)
        else:
            yield result.name, sources


def _parts(operand: Operand) -> Iterator[Operand]:
    match operand:
        case Pair(first=first, second=second):
            yield from _parts(first)
            yield from _parts(second)
        case Vector(items=items):
            for item in items:
                yield from _parts(item)
        case _:
            yield operand


def _base(instruction: Instruction) -> Operand | None:
    """Return the base of the address in shared memory that an instruction accesses, if it may."""
    if instruction.opcode not in _ACCESSES:
        return None
    if instruction.opcode != "cp" and not _ELSEWHERE.isdisjoint(instruction.modifiers):
        return None
    address = next((o for o in instruction.operands if isinstance(o, Address)), None)
    return None if address is None else address.base
