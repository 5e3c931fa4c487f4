"""Which scalar shared-memory accesses ptxas merges into vector accesses."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ci.simulator.ptx import Address, Guard, Immediate, Instruction, Pair, Register, Target, Vector

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ci.simulator.report import MachineAccesses

_SCALAR_BYTES = {f"{kind}{bits}": bits // 8 for kind in "busf" for bits in (8, 16, 32, 64)}
_WORD_BYTES = 4
_WIDEST_BYTES = 16
_ELSEWHERE = frozenset({"global", "const", "param", "local"})
_LEAVES = frozenset({"bra", "brx", "ret", "exit"})
_WAITS = frozenset({"call", "trap", "bar", "barrier", "membar", "fence"})
_ATOMIC = frozenset({"atom", "red"})
_ENDS_EVERY_RUN = _WAITS | _ATOMIC | {"cp", "ldmatrix", "stmatrix"}
_ENDS_SOME_RUN = _ENDS_EVERY_RUN | {"ld", "st"}
_WITHOUT_RESULT = _LEAVES | _WAITS | {"st", "red", "cp"}


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


@dataclass(frozen=True, slots=True, eq=False)
class _Access:
    """A scalar access, and those of its series and 16 bytes that every way to it passes."""

    pc: int
    offset: int
    above: tuple[_Access, ...]
    """Since a run ended last, one for each offset, in the order of execution."""


_Open = dict[_Series, dict[int, tuple[_Access, ...]]]
"""Runs that have not ended: series → 16-byte unit of the offsets → its accesses so far."""


def merged_accesses(
    instructions: Sequence[Instruction], machine: MachineAccesses
) -> Mapping[int, MergedAccess]:
    """Return the merged access that an instruction is part of, by program counter.

    Adjacent accesses of one base register and guard become one of 8 or 16 bytes, in place of the
    first, if its offset is naturally aligned and that width occurs in the machine code. A load of
    16 bytes is also made for three of its four words. A run of loads goes on behind branches, with
    loads of one side only too, as long as every way to a load passes the first; it ends at a store
    to shared memory, where the base is redefined, at barriers, atomics on shared memory and copies,
    and where a branch leads back. A run of stores ends at labels, branches, loads from shared
    memory and every atomic.

    Args:
        instructions: A kernel's, in order.
        machine: What its machine code holds.

    Source:
        Fitted to an H200 (``tests/data/ncu-h200``): without merging, a tiled product would show a
        third too many wavefronts; with widths that do not occur, a tree reduction some too few.
        Three of four words, and loads behind branches: read off the machine code that NVRTC 13.0
        makes for sm_90.
    """
    plan: dict[int, MergedAccess] = {}
    for series, accesses in _families(instructions):
        # Words are made of narrower accesses in any kernel.
        allowed = {_WORD_BYTES} | (machine.store if series.store else machine.load)
        for width in sorted(allowed, reverse=True):
            if width > series.scalar_bytes:
                _merge(series, accesses, width, plan)
    return plan


def _merge(
    series: _Series, accesses: Sequence[_Access], width_bytes: int, plan: dict[int, MergedAccess]
) -> None:
    """Add to ``plan`` what fills an aligned access of this width and is not in it yet."""
    size = series.scalar_bytes
    needed = width_bytes // size
    if not series.store and size == _WORD_BYTES and width_bytes == _WIDEST_BYTES:
        needed -= 1
    for first in accesses:
        if first.pc in plan or _holds(first.above, first.offset):
            continue
        start = first.offset - first.offset % width_bytes
        parts = [
            access
            for access in accesses
            if start <= access.offset < start + width_bytes
            and access.pc not in plan
            and (access is first or first in access.above)
        ]
        if len({part.offset for part in parts}) >= needed:
            access = MergedAccess(
                first=first.pc, width_bytes=width_bytes, skew_bytes=first.offset - start
            )
            plan.update(dict.fromkeys((part.pc for part in parts), access))


def _families(instructions: Sequence[Instruction]) -> Iterable[tuple[_Series, list[_Access]]]:
    """Return what may be merged: accesses of a run and 16 bytes that the first one stands above."""
    families: dict[int, tuple[_Series, list[_Access]]] = {}
    entered_from = _entered_from(instructions)
    left_open: dict[int, _Open] = {}
    now_open: _Open = {}
    for instruction in instructions:
        pc = instruction.pc
        if instruction.leader:
            now_open = _common([left_open.get(before, {}) for before in entered_from[pc]])
        access = _scalar_access(instruction)
        for series in _ended(instruction, access, now_open):
            del now_open[series]
        if access is not None:
            series, offset = access
            units = now_open.setdefault(series, {})
            above = units.get(offset // _WIDEST_BYTES, ())
            found = _Access(pc, offset, above)
            families.setdefault((*above, found)[0].pc, (series, []))[1].append(found)
            if not _holds(above, offset):
                units[offset // _WIDEST_BYTES] = (*above, found)
        # Where a load overwrites its own base, the next one of that base is another run.
        for series in _redefined(instruction, now_open):
            del now_open[series]
        if pc + 1 == len(instructions) or instructions[pc + 1].leader:
            left_open[pc] = now_open
    return families.values()


def _entered_from(instructions: Sequence[Instruction]) -> Mapping[int, Sequence[int]]:
    """Return the instructions before each leader: those that branch to it or fall through."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for instruction, following in pairwise(instructions):
        if instruction.opcode in _LEAVES:
            for operand in instruction.operands:
                if isinstance(operand, Target):
                    found[operand.pc].append(instruction.pc)
        goes_on = instruction.guard is not None or instruction.opcode not in _LEAVES
        if following.leader and goes_on:
            found[following.pc].append(instruction.pc)
    return found


def _common(ways: Sequence[_Open]) -> _Open:
    """Return the loads that are open on all ways to a place; those not walked yet have none."""
    if not ways:
        return {}
    first, *others = ways
    found: _Open = {}
    for series, units in first.items():
        if series.store or any(series not in other for other in others):
            continue
        found[series] = {
            unit: _common_start([accesses, *(other[series].get(unit, ()) for other in others)])
            for unit, accesses in units.items()
        }
    return found


def _common_start(ways: Sequence[tuple[_Access, ...]]) -> tuple[_Access, ...]:
    same = [each[0] for each in zip(*ways, strict=False) if len(set(each)) == 1]
    return tuple(same)


def _ended(
    instruction: Instruction, access: tuple[_Series, int] | None, now_open: _Open
) -> set[_Series]:
    """Return which series this instruction ends before it executes."""
    opcode = instruction.opcode
    if opcode not in _ENDS_SOME_RUN:
        return set()
    elsewhere = not _ELSEWHERE.isdisjoint(instruction.modifiers)
    stores = {series for series in now_open if series.store}
    if opcode in _ENDS_EVERY_RUN:
        return stores if elsewhere and opcode in _ATOMIC else set(now_open)
    if opcode == "ld":
        return set() if elsewhere else stores
    if elsewhere:
        return set()
    ended = set(now_open) - stores
    if access is not None:
        series, offset = access
        if _holds(now_open.get(series, {}).get(offset // _WIDEST_BYTES, ()), offset):
            ended.add(series)
    return ended


def _holds(accesses: Sequence[_Access], offset: int) -> bool:
    return any(offset == access.offset for access in accesses)


def _redefined(instruction: Instruction, now_open: _Open) -> set[_Series]:
    """Return which series have a base or guard that this instruction writes."""
    if not now_open or instruction.opcode in _WITHOUT_RESULT or not instruction.operands:
        return set()
    written = _register_names(instruction.operands[0])
    return {
        series
        for series in now_open
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
