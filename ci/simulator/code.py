"""What a decoder works with: the slots of registers, and operands as arrays.

A register is a slot in a list. It holds an array of shape (b, t), b in {1, blocks} and t in
{1, threads}: values that do not depend on the block or the thread stay small, and broadcasting
does the rest. Arrays in slots are never changed in place, so that several slots may share one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import BOOL, I8, U4, UnsupportedError, literal, unsigned
from ci.simulator.operands import PARAM
from ci.simulator.ptx import Immediate, Negated, Operand, Register, Sink, Special, Symbol
from ci.simulator.retries import first_looks
from ci.simulator.specials import SPECIALS, TIMES
from ci.simulator.storage import storage_types

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ci.simulator.forms import Array, Fetch, Mask, Step
    from ci.simulator.lanes import Lanes
    from ci.simulator.ptx import Kernel

NOTHING = np.zeros((0, 0), np.bool_)
"""Stands for no value."""


def is_param(operand: Operand) -> bool:
    """Return whether an operand is a variable in a function's ``.param`` space."""
    return isinstance(operand, Register) and operand.type.startswith(PARAM)


class Code:
    """The slots of one kernel, shared by the decoded instructions and the machine."""

    def __init__(self, kernel: Kernel, lanes: Lanes) -> None:
        """Give every register of the kernel its type of storage.

        Args:
            kernel: The kernel whose instructions will be decoded.
            lanes: The state of a launch, which steps refer to.
        """
        self.lanes = lanes
        self.slots: list[Array] = []
        """Slot number → value."""
        self.specials: dict[str, int] = {}
        """Special register → slot, filled by the machine for each slice."""
        self.symbols: dict[str, int] = {}
        """Variable → slot with its address, filled by the machine for each launch."""
        self.wide: list[Array] = []
        """Slot number → float64 of ``wide_of``, where an instruction asked for it."""
        self.wide_of: list[Array] = []
        self._registers: dict[str, int] = {}
        self.registers = 0
        """Bit set of the slots of registers, without variables in ``.param`` space."""
        self._constants: dict[tuple[int, np.dtype[Any]], int] = {}
        self._storage = storage_types(kernel)
        self.first_looks = first_looks(kernel)
        """Program counters of plain loads that may meet atomic operations."""
        self.unread: set[int] = set()
        """Program counters of instructions whose result nobody reads."""
        self.used = 0
        """Bit set of the register slots that the instruction being decoded reads."""
        self.defined = 0
        """Bit set of those it writes."""

    def _slot(self, value: Array) -> int:
        self.slots.append(value)
        self.wide.append(value)
        self.wide_of.append(NOTHING)
        return len(self.slots) - 1

    def slot_of(self, register: Register) -> int:
        """Return the slot of a register, whose first value is zero."""
        slot = self._registers.get(register.name)
        if slot is None:
            slot = self._slot(np.zeros((1, 1), self._storage_of(register)))
            self._registers[register.name] = slot
            self.registers |= 0 if is_param(register) else 1 << slot
        return slot

    def _storage_of(self, register: Register) -> np.dtype[Any]:
        # What no instruction names is a decoder's own, such as the carry.
        return self._storage.get(register.name, BOOL)

    def read_param(self, operand: Operand) -> int:
        """Return the slot of a variable in a function's ``.param`` space, which is read.

        Raises:
            UnsupportedError: The operand is none.
        """
        slot = self._param(operand)
        self.used |= 1 << slot
        return slot

    def written_param(self, operand: Operand) -> int:
        """Return the slot of a variable in ``.param`` space, which is written as a whole.

        Raises:
            UnsupportedError: The operand is none.
        """
        slot = self._param(operand)
        self.defined |= 1 << slot
        return slot

    def _param(self, operand: Operand) -> int:
        if isinstance(operand, Register) and is_param(operand):
            return self.slot_of(operand)
        raise UnsupportedError(str(operand))

    def constant(self, value: Array) -> int:
        """Return a slot that holds a (1, 1) constant."""
        key = (int(value.view(unsigned(value.dtype))[0, 0]), value.dtype)
        if key not in self._constants:
            self._constants[key] = self._slot(value)
        return self._constants[key]

    def source(self, operand: Operand, dtype: np.dtype[Any]) -> tuple[int, np.dtype[Any]]:
        """Return the slot of a source operand and the type its slot holds.

        Args:
            operand: Register, literal or special register.
            dtype: What the instruction reads it as; literals take this type.

        Raises:
            UnsupportedError: The operand cannot be read as that.
        """
        if isinstance(operand, Register):
            slot = self.slot_of(operand)
            self.used |= 1 << slot
            return slot, self._storage_of(operand)
        if isinstance(operand, Immediate):
            return self.constant(literal(operand, dtype)), dtype
        if isinstance(operand, Special) and operand.name in SPECIALS:
            if operand.name not in self.specials:
                self.specials[operand.name] = self._slot(np.zeros((1, 1), U4))
            return self.specials[operand.name], U4
        raise UnsupportedError(str(operand))

    def fetch(self, operand: Operand, dtype: np.dtype[Any]) -> Fetch:
        """Return a function that reads an operand as ``dtype``.

        A register wider than the type gives its low bits.
        """
        slots = self.slots
        if isinstance(operand, Negated):
            inner = self.fetch(operand.register, BOOL)
            return lambda: ~inner()
        if isinstance(operand, Symbol):
            address = self.symbol(operand.name)
            offset = operand.offset
            return lambda: (slots[address] + offset).astype(dtype)
        if isinstance(operand, Special):
            return self._special(operand, dtype)
        slot, held = self.source(operand, dtype)
        if held == dtype:
            return lambda: slots[slot]
        if BOOL in (held, dtype) or held.itemsize < dtype.itemsize or held.kind == "V":
            raise UnsupportedError(f"{held} read as {dtype}")
        if held.itemsize == dtype.itemsize:
            return lambda: slots[slot].view(dtype)
        bits, narrow = unsigned(held), unsigned(dtype)
        return lambda: slots[slot].view(bits).astype(narrow).view(dtype)

    def _special(self, operand: Special, dtype: np.dtype[Any]) -> Fetch:
        slots, lanes, bits = self.slots, self.lanes, unsigned(dtype)
        if operand.name not in TIMES:
            slot, _ = self.source(operand, dtype)
            return lambda: slots[slot].astype(bits).view(dtype)
        shift, ones = TIMES[operand.name], (1 << 8 * dtype.itemsize) - 1
        return lambda: np.full((1, 1), lanes.tick() >> shift & ones, bits).view(dtype)

    def symbol(self, name: str) -> int:
        """Return the slot with the address of a variable or function."""
        if name not in self.symbols:
            self.symbols[name] = self._slot(np.zeros((1, 1), I8))
        return self.symbols[name]

    def store(self, operand: Operand, dtype: np.dtype[Any]) -> Callable[[Array], None]:
        """Return a function that writes an array of ``dtype`` to a destination.

        A narrower integer is extended to the register by its sign.

        Raises:
            UnsupportedError: The destination is no register, or does not hold such values.
        """
        if isinstance(operand, Sink):
            return lambda _: None
        if not isinstance(operand, Register):
            raise UnsupportedError(str(operand))
        slots, slot, held = self.slots, self.slot_of(operand), self._storage_of(operand)
        self.defined |= 1 << slot

        def direct(value: Array) -> None:
            slots[slot] = value

        def viewed(value: Array) -> None:
            slots[slot] = value.view(held)

        extended = np.dtype(f"{'i' if dtype.kind == 'i' else 'u'}{held.itemsize}")
        bits = dtype if dtype.kind in "iu" else unsigned(dtype)

        def widened(value: Array) -> None:
            slots[slot] = value.view(bits).astype(extended).view(held)

        if held == dtype:
            return direct
        if BOOL in (held, dtype) or held.itemsize < dtype.itemsize or held.kind == "V":
            raise UnsupportedError(f"{dtype} written to {held}")
        return viewed if held.itemsize == dtype.itemsize else widened

    def held(self, operand: Operand, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the type a register holds its bits in if that has the width of ``dtype``."""
        if isinstance(operand, Register):
            held = self._storage_of(operand)
            if held.itemsize == dtype.itemsize and held != BOOL and held.kind != "V":
                return held
        return dtype

    def compute(
        self,
        function: Callable[..., Array],
        result: np.dtype[Any],
        destination: Operand,
        sources: Sequence[tuple[Operand, np.dtype[Any]]],
    ) -> Step:
        """Return the step that writes ``function`` of the sources to the destination.

        Args:
            function: Takes one array per source, of its type; returns one of type ``result``.
            result: What the function returns.
            destination: Where it goes.
            sources: Operands, and as what to read them.
        """
        store = self.store(destination, result)
        fetches = [self.fetch(operand, dtype) for operand, dtype in sources]
        places = self.direct([(destination, result), *sources])
        if places is not None:
            step = _direct_step(self.slots, function, places[0], places[1:])
            if step is not None:
                return step
        return lambda _: store(function(*[fetch() for fetch in fetches]))

    def direct(self, operands: Sequence[tuple[Operand, np.dtype[Any]]]) -> list[int] | None:
        """Return the operands' slots if each holds its type as it is, else None."""
        places = [self._direct(operand, dtype) for operand, dtype in operands]
        found = [place for place in places if place is not None]
        return found if len(found) == len(places) else None

    def _direct(self, operand: Operand, dtype: np.dtype[Any]) -> int | None:
        if isinstance(operand, Register):
            return self.slot_of(operand) if self._storage_of(operand) == dtype else None
        if isinstance(operand, Immediate):
            return self.constant(literal(operand, dtype))
        if isinstance(operand, Special) and dtype == U4 and operand.name in SPECIALS:
            return self.source(operand, dtype)[0]
        return None


def _direct_step(
    slots: list[Array], function: Callable[..., Array], d: int, sources: Sequence[int]
) -> Step | None:
    """Return a step on slots alone: nearly every instruction, so it must cost little."""

    def unary(_: Mask) -> None:
        slots[d] = function(slots[a])

    def binary(_: Mask) -> None:
        slots[d] = function(slots[a], slots[b])

    def ternary(_: Mask) -> None:
        slots[d] = function(slots[a], slots[b], slots[c])

    a, b, c = (*sources, 0, 0)[:3]
    return {1: unary, 2: binary, 3: ternary}.get(len(sources))
