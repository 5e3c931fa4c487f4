"""The form of an instruction: its types, its modifiers, and what decoders turn it into."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ci.simulator.errors import NotEmulatedError

if TYPE_CHECKING:
    from ci.simulator.ptx import Immediate, Instruction, Operand

Array = NDArray[Any]
Mask = NDArray[np.bool_] | None
"""Active lanes, broadcastable to (blocks, threads); None: all of them."""
Step = Callable[[Mask], None]
"""An instruction, decoded: acts on the slots for the active lanes."""
Fetch = Callable[[], Array]

BOOL = np.dtype(np.bool_)
I4, I8, U4, U8 = (np.dtype(name) for name in ("i4", "i8", "u4", "u8"))
F2, F4, F8 = (np.dtype(name) for name in ("f2", "f4", "f8"))
KINDS = {"b": "u", "u": "u", "s": "i", "f": "f"}
"""First letter of a PTX type → NumPy's kind; untyped bits are read as unsigned."""


class UnsupportedError(Exception):
    """A form of an instruction that the simulator does not execute."""


def dtype_of(kind: str) -> np.dtype[Any]:
    """Return the NumPy type of a PTX type such as ``s32``; ``b32`` reads as unsigned.

    Raises:
        UnsupportedError: There is none.
    """
    if kind == "pred":
        return BOOL
    if kind[:1] in KINDS and kind[1:] in ("8", "16", "32", "64") and kind != "f8":
        return np.dtype(f"{KINDS[kind[0]]}{int(kind[1:]) // 8}")
    if kind in ("f16x2", "bf16x2"):
        return U4
    if kind == "bf16":
        return np.dtype("u2")
    raise UnsupportedError(kind)


def unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the unsigned integer type of the same width."""
    return np.dtype(f"u{dtype.itemsize}")


def not_emulated(instruction: Instruction) -> NotEmulatedError:
    """Return the error of reaching an instruction that is not emulated."""
    place = instruction.place
    return NotEmulatedError(instruction.text, place.file, place.line)


class Form:
    """The dotted parts of an instruction, taken one by one so that none is overlooked."""

    def __init__(self, instruction: Instruction) -> None:
        """Begin with all modifiers still to be taken."""
        self.instruction = instruction
        self._left = list(instruction.modifiers)

    def flag(self, *names: str) -> str:
        """Take the first of ``names`` that is there and return it, else an empty string."""
        for name in names:
            if name in self._left:
                self._left.remove(name)
                return name
        return ""

    def one_of(self, *names: str) -> str:
        """Take one of ``names``.

        Raises:
            UnsupportedError: None of them is there.
        """
        found = self.flag(*names)
        if not found:
            raise UnsupportedError(" ".join(names))
        return found

    def last(self) -> str:
        """Take the last part, which is the type.

        Raises:
            UnsupportedError: There is no part left.
        """
        if not self._left:
            raise UnsupportedError(self.instruction.text)
        return self._left.pop()

    def drop(self, *prefixes: str) -> None:
        """Take every part that begins with one of ``prefixes``: hints without an effect here."""
        self._left = [part for part in self._left if not part.startswith(prefixes)]

    def operands(self, *counts: int) -> tuple[Operand, ...]:
        """Return the operands, once every modifier is taken.

        Raises:
            UnsupportedError: Modifiers are left over, or there are not ``counts`` operands.
        """
        if self._left or len(self.instruction.operands) not in counts:
            raise UnsupportedError(self.instruction.text)
        return self.instruction.operands


def literal(operand: Immediate, dtype: np.dtype[Any]) -> Array:
    """Return a literal as a (1, 1) array of ``dtype``.

    Raises:
        UnsupportedError: It is not a literal of that kind.
    """
    if operand.kind == "int" and dtype.kind != "f":
        if dtype == BOOL:
            return np.full((1, 1), operand.bits != 0)
        bits = operand.bits & (1 << 8 * dtype.itemsize) - 1
        return np.full((1, 1), bits, unsigned(dtype)).view(dtype)
    if operand.kind == "f32" and dtype in (F4, U4, I4):
        return np.full((1, 1), operand.bits, U4).view(dtype)
    if operand.kind == "f64" and dtype in (F8, U8, I8):
        return np.full((1, 1), operand.bits, U8).view(dtype)
    if operand.kind == "f64" and dtype == F4:
        return np.full((1, 1), operand.bits, U8).view(F8).astype(F4)
    raise UnsupportedError(f"a literal of {operand.kind} as {dtype}")
