"""How registers depend on the block: what can be told of all blocks of a box from a few of them.

A register is the same in every block, affine in the block's index (a sum of its coordinates times
factors that no block changes), or unknown. Where addresses are affine and every comparison that
steers the kernel has affine operands, the outcome at the corners of a box of blocks holds for all
blocks inside: an affine function that is negative at the corners is negative between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci.simulator.ptx import (
    Address,
    Immediate,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from ci.simulator.specials import SPECIALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ci.simulator.ptx import Instruction, Kernel

SAME, AFFINE, UNKNOWN = range(3)

_NO_RESULT = frozenset(("st", "red", "cp", "bar", "barrier", "bra", "brx", "ret", "exit", "trap"))
_MEMORY = frozenset(["ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "wmma", "stmatrix"])
_COPIES = frozenset(("mov", "cvta", "neg", "add", "sub", "cvt"))
_ALL_BITS = 64
_LEAVES = frozenset(("bra", "brx", "ret", "exit", "call"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Join:
    """An ``or`` of something affine whose low bits are zero with something all blocks share."""

    operand: int
    """Index of the shared source among the operands."""
    bits: int
    """It adds if the shared source has no bit but so many low ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dependence:
    """What the text of a kernel tells of how its blocks differ."""

    comparisons: frozenset[int]
    """Program counters of comparisons whose outcome must be the same throughout a box."""
    joins: Mapping[int, Join]
    """Program counter of an ``or`` that adds, under a condition."""
    obstacle: str
    """Why a box cannot be told from its corners, with the source line; empty: it can."""


def dependence(kernel: Kernel) -> Dependence:
    """Return how a kernel's blocks can differ."""
    if kernel.functions:
        return Dependence(comparisons=frozenset(), joins={}, obstacle="the kernel calls functions")
    levels = _Levels()
    while levels.pass_over(kernel.instructions):
        pass
    obstacles = (_obstacle(instruction, levels) for instruction in kernel.instructions)
    found = next((each for each in obstacles if each), "")
    return Dependence(comparisons=frozenset(levels.comparisons), joins=levels.joins, obstacle=found)


class _Levels:
    """The highest level, and the fewest trailing zero bits, that definitions give a register."""

    def __init__(self) -> None:
        self._of: dict[str, int] = {}
        self._zeros: dict[str, int] = {}
        self.comparisons: set[int] = set()
        self.joins: dict[int, Join] = {}

    def pass_over(self, instructions: Sequence[Instruction]) -> bool:
        """Take in every instruction once; return whether anything changed."""
        changed = False
        for instruction in instructions:
            if instruction.opcode in _NO_RESULT:
                continue
            level, zeros = self._result(instruction), self._trailing_zeros(instruction)
            if instruction.guard is not None and self.of(instruction.guard.register) > SAME:
                level = UNKNOWN
            for register in _registers(instruction.operands[:1]):
                if level > self._of.get(register.name, SAME):
                    self._of[register.name] = level
                    changed = True
                if zeros < self._zeros.get(register.name, _ALL_BITS):
                    self._zeros[register.name] = zeros
                    changed = True
        return changed

    def of(self, operand: Operand) -> int:
        """Return the level of an operand."""
        if isinstance(operand, Special):
            return _level_of_special(operand.name)
        if isinstance(operand, Immediate | Symbol | Sink):
            return SAME
        return max((self._of.get(r.name, SAME) for r in _registers([operand])), default=SAME)

    def _result(self, instruction: Instruction) -> int:
        """Return the level of what an instruction computes."""
        opcode, sources = instruction.opcode, instruction.operands[1:]
        levels = [self.of(source) for source in sources]
        highest = max(levels, default=SAME)
        if opcode in ("ld", "ldu", "ldmatrix", "wmma", "atom"):
            known = opcode == "ld" and {"param", "const"} & set(instruction.modifiers)
            return highest if known and highest == SAME else UNKNOWN
        if highest in (SAME, UNKNOWN):
            return highest
        if opcode == "setp":
            if instruction.modifiers[-1][0] in "su" and not isinstance(sources[0], Vector):
                self.comparisons.add(instruction.pc)
                return SAME
            return UNKNOWN
        if opcode == "or":
            return self._joined(instruction, levels)
        return AFFINE if _keeps_affine(instruction, levels) else UNKNOWN

    def _joined(self, instruction: Instruction, levels: Sequence[int]) -> int:
        """Return the level of an ``or``, which the compiler likes to write for a sum."""
        if sorted(levels) != [SAME, AFFINE] or instruction.modifiers[-1] not in ("b32", "b64"):
            return UNKNOWN
        shared = levels.index(SAME)
        bits = self._zeros_of(instruction.operands[2 - shared])
        self.joins[instruction.pc] = Join(operand=1 + shared, bits=bits)
        return AFFINE if bits else UNKNOWN

    def _zeros_of(self, operand: Operand) -> int:
        """Return how many low bits of an operand are known to be zero."""
        if isinstance(operand, Immediate):
            return (operand.bits & -operand.bits).bit_length() - 1 if operand.bits else _ALL_BITS
        if isinstance(operand, Register):
            return self._zeros.get(operand.name, _ALL_BITS)
        return 0

    def _trailing_zeros(self, instruction: Instruction) -> int:
        opcode, sources = instruction.opcode, instruction.operands[1:]
        zeros = [self._zeros_of(source) for source in sources]
        if opcode == "shl" and isinstance(sources[1], Immediate):
            return min(zeros[0] + sources[1].bits, _ALL_BITS)
        if opcode in ("mul", "mad") and "hi" not in instruction.modifiers:
            return min(zeros[0] + zeros[1], *zeros[2:], _ALL_BITS)
        return min(zeros, default=0) if opcode in _COPIES else 0


def _level_of_special(name: str) -> int:
    if name.startswith("%ctaid"):
        return AFFINE
    return SAME if name in SPECIALS else UNKNOWN


def _keeps_affine(instruction: Instruction, levels: Sequence[int]) -> bool:
    """Return whether an affine source makes an affine result; none is unknown."""
    kind, modifiers = instruction.modifiers[-1], set(instruction.modifiers)
    whole = not any(isinstance(operand, Vector) for operand in instruction.operands)
    if not whole or not _is_wide(kind) or modifiers & {"cc", "sat", "hi"}:
        return False
    rule = _RULES.get(instruction.opcode)
    return rule is not None and rule(instruction, levels)


def _is_wide(kind: str) -> bool:
    return kind[0] in "bsu" and kind[1:] in ("32", "64")


def _inserts(instruction: Instruction, levels: Sequence[int]) -> bool:
    """Return whether a ``bfi`` shifts something affine in above low bits all blocks share."""
    position, length = instruction.operands[3:]
    if not isinstance(position, Immediate) or not isinstance(length, Immediate):
        return False
    width = int(instruction.modifiers[-1][1:])
    return position.bits + length.bits == width and max(levels[1:]) == SAME


_RULES: Mapping[str, Callable[[Instruction, Sequence[int]], bool]] = {
    **dict.fromkeys(("mov", "cvta", "neg", "add", "sub"), lambda _, __: True),
    **dict.fromkeys(("mul", "mad"), lambda _, levels: min(levels[:2]) == SAME),
    "cvt": lambda instruction, _: _is_wide(instruction.modifiers[-2]),
    "shl": lambda _, levels: bool(levels[1] == SAME),
    "selp": lambda _, levels: bool(levels[2] == SAME),
    "bfi": _inserts,
}
"""Opcode → whether it keeps an affine source affine, where another can be affine too."""


def _obstacle(instruction: Instruction, levels: _Levels) -> str:
    """Return why an instruction may do other things inside a box than at its corners."""
    place = f"{instruction.place.file}:{instruction.place.line}"
    guard = instruction.guard
    matters = instruction.opcode in _LEAVES or instruction.opcode in _MEMORY
    if matters and guard is not None and levels.of(guard.register) > SAME:
        return f"the condition at {place} may differ within a part of the grid"
    if instruction.opcode == "brx" and levels.of(instruction.operands[0]) > SAME:
        return f"where {place} leads may differ within a part of the grid"
    if instruction.opcode not in _MEMORY:
        return ""
    most = SAME if {"shared", "local"} & set(instruction.modifiers[:2]) else AFFINE
    if instruction.opcode == "cp":
        shared, *source = [o for o in instruction.operands if isinstance(o, Address)]
        worst = max(levels.of(shared), *(levels.of(each) - AFFINE for each in source))
        return f"the address at {place} is no sum of block indices" if worst > SAME else ""
    for operand in instruction.operands:
        if isinstance(operand, Address) and levels.of(operand) > most:
            return f"the address at {place} is no sum of block indices"
    return ""


def _registers(operands: Sequence[Operand]) -> Iterator[Register]:
    for operand in operands:
        if isinstance(operand, Register):
            yield operand
        elif isinstance(operand, Negated):
            yield operand.register
        elif isinstance(operand, Vector):
            yield from _registers(operand.items)
        elif isinstance(operand, Pair):
            yield from _registers((operand.first, operand.second))
        elif isinstance(operand, Address):
            yield from _registers((operand.base,))
