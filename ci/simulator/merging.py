"""Which scalar shared-memory accesses ptxas merges into vector accesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci.simulator.ptx import Address, Guard, Immediate, Instruction, Pair, Register, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ci.simulator.report import SharedWidths

_SCALAR_BYTES = {f"{kind}{bits}": bits // 8 for kind in "busf" for bits in (8, 16, 32, 64)}
_WORD_BYTES = 4
_WIDEST_BYTES = 16
_CONTROL = frozenset({"bra", "brx", "call", "ret", "exit", "trap", "bar", "barrier"})
_ENDS_EVERY_RUN = _CONTROL | {"membar", "fence", "atom", "red", "cp", "ldmatrix", "stmatrix"}
_WITHOUT_RESULT = _CONTROL | {"membar", "fence", "st", "red", "cp"}


@dataclass(frozen=True, kw_only=True, slots=True)
class MergedAccess:
    """Several scalar instructions that the machine code performs as one."""

    first: int
    """Program counter of the instruction that comes first."""
    width_bytes: int
    """Bytes per lane of the whole."""
    skew_bytes: int
    """How far the first instruction's address lies above the lowest."""


@dataclass(frozen=True, slots=True)
class _Series:
    """What accesses must share to be merged."""

    store: bool
    base: str
    guard: Guard | None
    scalar_bytes: int


def merged_accesses(
    instructions: Sequence[Instruction], widths: SharedWidths
) -> Mapping[int, MergedAccess]:
    """Return the merged access that an instruction is part of, by program counter.

    Within a straight run of code, adjacent accesses of one base register and guard become one of
    8 or 16 bytes if its offset is naturally aligned and that width occurs in the machine code.
    A load of 16 bytes is also made for three of its four words. A run of loads ends at a store,
    a run of stores at a load from shared memory, both where the base is redefined and at labels,
    branches, barriers, atomics and copies.

    Args:
        instructions: A kernel's, in order.
        widths: What its machine code holds.

    Source:
        Fitted to an H200 (``tests/data/ncu-h200``): without merging, a tiled product would show a
        third too many wavefronts; with widths that do not occur, a tree reduction some too few.
        Three of four words: read off the machine code that NVRTC 13.0 makes for sm_90.
    """
    plan: dict[int, MergedAccess] = {}
    for series, offsets in _series(instructions):
        # Words are made of narrower accesses in any kernel.
        allowed = {_WORD_BYTES} | (widths.store if series.store else widths.load)
        for width in sorted(allowed, reverse=True):
            if width > series.scalar_bytes:
                _merge(series, offsets, width, plan)
    return plan


def _merge(
    series: _Series, offsets: dict[int, int], width_bytes: int, plan: dict[int, MergedAccess]
) -> None:
    """Move what fills an aligned access of this width from ``offsets`` into ``plan``."""
    size = series.scalar_bytes
    needed = width_bytes // size
    if not series.store and size == _WORD_BYTES and width_bytes == _WIDEST_BYTES:
        needed -= 1
    for start in sorted({offset - offset % width_bytes for offset in offsets}):
        parts = [part for part in range(start, start + width_bytes, size) if part in offsets]
        if len(parts) < needed:
            continue
        pcs = {offsets.pop(part): part for part in parts}
        first = min(pcs)
        access = MergedAccess(first=first, width_bytes=width_bytes, skew_bytes=pcs[first] - start)
        plan.update(dict.fromkeys(pcs, access))


def _series(instructions: Sequence[Instruction]) -> Iterator[tuple[_Series, dict[int, int]]]:
    """Yield what may be merged: accesses of one run as offset → program counter."""
    open_series: dict[_Series, dict[int, int]] = {}
    for instruction in instructions:
        ended = _ended(instruction, open_series)
        access = _scalar_access(instruction)
        if access is not None:
            series, offset = access
            if series.store and offset in open_series.get(series, {}):
                ended |= {series}
        for series in ended:
            yield series, open_series.pop(series)
        if access is not None:
            series, offset = access
            open_series.setdefault(series, {}).setdefault(offset, instruction.pc)
        # Where a load overwrites its own base, the next one of that base is another run.
        for series in _redefined(instruction, open_series):
            yield series, open_series.pop(series)
    yield from open_series.items()


def _ended(instruction: Instruction, open_series: Mapping[_Series, object]) -> set[_Series]:
    """Return which series this instruction ends before it executes."""
    if instruction.leader or instruction.opcode in _ENDS_EVERY_RUN:
        return set(open_series)
    if instruction.opcode == "st":
        return {series for series in open_series if not series.store}
    generic = not {"global", "const", "param", "local"}.intersection(instruction.modifiers)
    if instruction.opcode == "ld" and generic:
        return {series for series in open_series if series.store}
    return set()


def _redefined(instruction: Instruction, open_series: Mapping[_Series, object]) -> set[_Series]:
    """Return which series have a base or guard that this instruction writes."""
    if not open_series or instruction.opcode in _WITHOUT_RESULT or not instruction.operands:
        return set()
    written = _register_names(instruction.operands[0])
    return {
        series
        for series in open_series
        if series.base in written or (series.guard and series.guard.register.name in written)
    }


def _register_names(operand: object) -> set[str]:
    match operand:
        case Register(name=name):
            return {name}
        case Pair(first=first, second=second):
            return _register_names(first) | _register_names(second)
        case Vector(items=items):
            return set().union(*map(_register_names, items))
        case _:
            return set()


def _scalar_access(instruction: Instruction) -> tuple[_Series, int] | None:
    """Return the series and offset of a scalar shared-memory access, None for anything else."""
    match instruction.opcode, instruction.modifiers, instruction.operands:
        case "ld", ("shared", scalar), (_, Address() as address):
            store = False
        case "st", ("shared", scalar), (Address() as address, _):
            store = True
        case _:
            return None
    if scalar not in _SCALAR_BYTES or isinstance(address.base, Immediate):
        return None
    series = _Series(store, address.base.name, instruction.guard, _SCALAR_BYTES[scalar])
    return series, address.offset
