"""Which plain loads only begin a loop of compare-and-swaps, told from a kernel's text.

``old = *p; do { seen = old; old = atomicCAS(p, seen, f(seen)); } while (old != seen);`` is how
CUDA's headers write the atomics that a GPU lacks, and how its Programming Guide writes new ones.
The load is no atomic, but what others swap in meanwhile only costs another turn: it meets no
atomic operation in a race, though it does meet plain stores.

A load is such a first look if a compare-and-swap compares with what it loaded, only moved until
then, and both addresses are made from the same variables and parameters. A load that decides
whether to swap, and is not compared, is none: nothing repeats that decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci.simulator.pointers import registers_of
from ci.simulator.ptx import Address, Register, Symbol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ci.simulator.ptx import Instruction, Kernel, Operand

_MOVES = frozenset({"mov", "cvt"})
_LOADS = frozenset({"ld", "ldu"})


def first_looks(kernel: Kernel) -> frozenset[int]:
    """Return the program counters of the loads that only begin a loop of compare-and-swaps."""
    swaps = [i for i in kernel.instructions if i.opcode == "atom" and "cas" in i.modifiers]
    if not swaps:
        return frozenset()
    flow = _Flow(kernel)
    found: set[int] = set()
    for swap in swaps:
        address, compared = swap.operands[-3:-1]
        loads = [load for load in flow.made_by(compared, _MOVES) if load.opcode in _LOADS]
        origins = flow.origins(address) if loads else set()
        found |= {load.pc for load in loads if flow.origins(load.operands[1]) == origins}
    return frozenset(found)


class _Flow:
    """Which instructions write each register."""

    def __init__(self, kernel: Kernel) -> None:
        self._writers: dict[str, list[Instruction]] = {}
        for instruction in kernel.instructions:
            for register in registers_of(instruction.operands[0]) if instruction.operands else ():
                self._writers.setdefault(register.name, []).append(instruction)

    def made_by(self, operand: Operand, through: frozenset[str] | None) -> Iterator[Instruction]:
        """Yield the instructions that an operand's value may come from.

        Args:
            operand: A source.
            through: Opcodes whose own sources are looked at as well; None: all but loads.
        """
        waiting, seen = [operand], set[str]()
        while waiting:
            for register in registers_of(waiting.pop()):
                if register.name in seen:
                    continue
                seen.add(register.name)
                for writer in self._writers.get(register.name, ()):
                    yield writer
                    opcode = writer.opcode
                    if opcode in through if through is not None else opcode not in _LOADS:
                        waiting.extend(writer.operands[1:])

    def origins(self, address: Operand) -> set[str]:
        """Return the variables and parameters that an address is made from."""
        if not isinstance(address, Address):
            return set()
        base = address.base
        if isinstance(base, Symbol):
            return {base.name}
        found = set()
        for writer in self.made_by(base, None):
            # A parameter of a function is a register.
            names = (Register, Symbol) if "param" in writer.modifiers else Symbol
            for operand in writer.operands[1:]:
                named = operand.base if isinstance(operand, Address) else operand
                if isinstance(named, names):
                    found.add(named.name)
        return found
