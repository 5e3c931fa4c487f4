"""Which opcodes the simulator executes, as the table in the documentation."""

from __future__ import annotations

from ci.simulator.body import ENDS_RUN
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

_GROUPS = {
    "integers": (integer, carry),
    "bits": (bits,),
    "floating point": (floating,),
    "comparison": (comparison,),
    "moves and conversions": (convert,),
    "memory": (access, copies),
    "atomics": (atomic,),
    "barriers and ordering": (sync,),
    "within a warp": (warp,),
    "matrices": (matrix, wmma),
    "system": (system,),
}


def coverage() -> dict[str, list[str]]:
    """Return the opcodes that are executed, by group."""
    groups = {
        group: sorted({opcode for room in rooms for opcode in room.DECODERS})
        for group, rooms in _GROUPS.items()
    }
    return {**groups, "control flow": sorted(ENDS_RUN)}


def coverage_table() -> str:
    """Return the table as Markdown."""
    lines = [f"| {group} | {' '.join(opcodes)} |" for group, opcodes in coverage().items()]
    return "\n".join(["| group | opcodes |", "| --- | --- |", *lines]) + "\n"
