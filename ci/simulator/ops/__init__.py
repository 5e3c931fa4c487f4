"""What each PTX instruction does: decoders from an instruction to a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci.simulator.ops import (
    access,
    atomic,
    bits,
    carry,
    comparison,
    convert,
    copies,
    floating,
    integer,
    matrix,
    sync,
    system,
    warp,
    wmma,
)
from ci.simulator.ops.rounding import FLOATS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Form, Step
    from ci.simulator.ptx import Instruction

_INTEGER = integer.DECODERS | bits.DECODERS | carry.DECODERS
_ANY_TYPE: dict[str, Callable[[Code, Form], Step]] = {
    opcode: decoder
    for room in (access, atomic, comparison, convert, copies, matrix, sync, system, warp, wmma)
    for opcode, decoder in room.DECODERS.items()
}


def decoder_of(instruction: Instruction) -> Callable[[Code, Form], Step] | None:
    """Return the decoder for an instruction, None if it is not emulated."""
    opcode = instruction.opcode
    if opcode in _ANY_TYPE:
        return _ANY_TYPE[opcode]
    floats = bool(instruction.modifiers) and instruction.modifiers[-1] in FLOATS
    return (floating.DECODERS if floats else _INTEGER).get(opcode)
