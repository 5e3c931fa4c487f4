"""Calls of device functions: passing parameters, a stack for each path of calls, returning.

A function's registers are slots as a kernel's are. Lanes that arrived by different calls have
different paths and so never run together. Only a function that is already on its own path, by
recursion, would overwrite what its callers still need: that is set aside in the new frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.body import callee_of
from ci.simulator.errors import StepLimitError
from ci.simulator.flow import bits, entries_of
from ci.simulator.forms import I8, UnsupportedError, not_emulated
from ci.simulator.ptx import Register, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Fetch, Mask
    from ci.simulator.ptx import Function, Instruction, Kernel, Operand

DEPTH_MAX = 256
"""Calls in calls. A GPU's stack of 1 KiB a thread, the default, ends long before."""

_FRAME_ALIGNMENT = 16

Path = tuple[int, ...]
"""The calls that lanes are inside: program counter of the call and of the function, each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Callee:
    """A function, decoded."""

    name: str
    formals: tuple[int, ...]
    """Slots."""
    returns: tuple[int, ...]
    registers: int
    """All its register slots, as a bit set."""
    local: tuple[tuple[int, int], ...]
    """Slot of the address of each local variable, and its place in the frame."""
    local_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Site:
    """A call, decoded."""

    instruction: Instruction
    results: tuple[int, ...]
    """Slots that take what the function returns."""
    arguments: tuple[int, ...]
    callee: Fetch | None
    """Gives the address of the function; None: it is named."""
    entries: dict[int, int]
    """Address of a function that may be meant → its first instruction."""


@dataclass(kw_only=True, slots=True)
class _Frame:
    """One path of calls that lanes are inside."""

    needed: int
    """Registers of all the callers that are still needed after the return."""
    local_end: int
    saved: dict[int, Array] = field(default_factory=dict)
    """Slot → what it held before the call, for a function that is on its own path."""


class Calls:
    """The calls and functions of a kernel, and who is inside which."""

    def __init__(self, kernel: Kernel, code: Code) -> None:
        """Prepare for a kernel, whose registers are the slots of ``code``."""
        self._kernel = kernel
        self._code = code
        self._local_bytes = 0
        self._sites: dict[int, _Site] = {}
        self._callees: dict[int, _Callee] = {}
        self._frames: dict[Path, _Frame] = {}
        self.path: Path = ()
        """Where the running lanes are."""

    def begin_slice(self, local_bytes: int) -> None:
        """Forget all calls; the kernel's own local variables take ``local_bytes``."""
        self._local_bytes = -(-local_bytes // _FRAME_ALIGNMENT) * _FRAME_ALIGNMENT
        self._frames.clear()
        self.path = ()

    def add_call(self, instruction: Instruction) -> None:
        """Take in a call of functions of the module.

        One that passes what none of them takes has no entries, and is refused when it is reached.
        """
        kernel, code = self._kernel, self._code
        results, target, arguments = instruction.operands[:3]
        starts = entries_of(instruction, kernel)
        entries = {
            f.address: f.start
            for f in kernel.functions.values()
            if f.start in starts and _fits(results, f.returns) and _fits(arguments, f.formals)
        }
        try:
            self._sites[instruction.pc] = _Site(
                instruction=instruction,
                results=tuple(code.written_param(each) for each in _items(results)),
                arguments=tuple(code.read_param(each) for each in _items(arguments)),
                callee=None if callee_of(instruction) else code.fetch(target, I8),
                entries=entries,
            )
        except UnsupportedError:
            self._sites[instruction.pc] = _Site(
                instruction=instruction, results=(), arguments=(), callee=None, entries={}
            )

    def add_function(self, function: Function, registers: int) -> None:
        """Take in a function, of which ``registers`` are the slots, as a bit set."""
        places, end = [], 0
        for variable in function.local:
            start = -(-end // variable.align_bytes) * variable.align_bytes
            places.append((self._code.symbol(variable.name), start))
            end = start + variable.size_bytes
        code = self._code
        formals = tuple(code.slot_of(each) for each in function.formals)
        returns = tuple(code.slot_of(each) for each in function.returns)
        for slot in formals + returns:
            registers |= 1 << slot
        self._callees[function.start] = _Callee(
            name=function.name,
            formals=formals,
            returns=returns,
            registers=registers,
            local=tuple(places),
            local_bytes=-(-end // _FRAME_ALIGNMENT) * _FRAME_ALIGNMENT,
        )

    def needed(self, path: Path) -> int:
        """Return the registers that lanes on a path still need after their returns."""
        return self._frames[path].needed if path else 0

    def enter(
        self, call: Instruction, mask: Mask, needed: int, *, alone: bool
    ) -> list[tuple[int, Mask]]:
        """Pass the arguments of a call.

        Args:
            call: The instruction.
            mask: Lanes that call.
            needed: Registers that they need behind the call.
            alone: Whether no other lane is live.

        Returns:
            First instruction and lanes of each function that is called.

        Raises:
            NotEmulatedError: An address is that of no function that takes these arguments.
            StepLimitError: Calls go too deep.
        """
        site = self._sites[call.pc]
        called = list(self._called(site, mask))
        values = [self._code.slots[slot] for slot in site.arguments]
        if len(self.path) >= 2 * DEPTH_MAX:
            place = site.instruction.place
            msg = f"{place.file}:{place.line}: {self._kernel.name} has not ended after calls "
            raise StepLimitError(f"{msg}{DEPTH_MAX} deep: a recursion that never ends")
        for entry, lanes in called:
            self._push(site, entry, lanes, values, needed, whole=alone and len(called) == 1)
        return called

    def _called(self, site: _Site, mask: Mask) -> Iterator[tuple[int, Mask]]:
        if site.callee is None:
            if not site.entries:
                raise not_emulated(site.instruction)
            yield next(iter(site.entries.values())), mask
            return
        addresses = site.callee()
        lanes = self._code.lanes
        active = lanes.reduced(mask, addresses.shape)
        wanted = np.unique(addresses[active]).tolist()
        for address in wanted:
            if address not in site.entries:
                raise not_emulated(site.instruction)
            here = addresses == address
            yield site.entries[address], mask if len(wanted) == 1 else lanes.both(mask, here)

    def _push(
        self,
        site: _Site,
        entry: int,
        mask: Mask,
        values: Sequence[Array],
        needed: int,
        *,
        whole: bool,
    ) -> None:
        """Begin a call of one function."""
        slots, callee = self._code.slots, self._callees[entry]
        path = (*self.path, site.instruction.pc, entry)
        outer = self._frames[self.path] if self.path else None
        needed |= outer.needed if outer else 0
        start = outer.local_end if outer else self._local_bytes
        frame = self._frames.get(path)
        if frame is None:
            frame = _Frame(needed=needed, local_end=start + callee.local_bytes)
            self._frames[path] = frame
        if entry in self.path[1::2]:
            for slot in [*bits(callee.registers & needed), *(slot for slot, _ in callee.local)]:
                before = frame.saved.get(slot)
                value = slots[slot]
                frame.saved[slot] = value if before is None else _chosen(mask, value, before)
        assign = list(zip(callee.formals, values, strict=True))
        assign += [(slot, np.full((1, 1), start + at, I8)) for slot, at in callee.local]
        for slot, value in assign:
            slots[slot] = value if whole else _chosen(mask, value, slots[slot])
        self._code.lanes.local.grow(frame.local_end)

    def leave(self, mask: Mask, *, whole: bool) -> tuple[Path, int]:
        """Hand back the results of the running function.

        Args:
            mask: Lanes that return.
            whole: Whether no other lane is live.

        Returns:
            Path and program counter where they go on.
        """
        slots, frame = self._code.slots, self._frames[self.path]
        site, callee = self._sites[self.path[-2]], self._callees[self.path[-1]]
        results = [slots[slot] for slot in callee.returns]
        back = [*frame.saved.items(), *zip(site.results, results, strict=True)]
        for slot, value in back:
            slots[slot] = value if whole else _chosen(mask, value, slots[slot])
        return self.path[:-2], site.instruction.pc + 1

    def forget(self, inside: Sequence[Path]) -> None:
        """Drop the frames in which no lane is any more, of those that ``inside`` lists."""
        alive = {path[:end] for path in inside for end in range(2, len(path) + 1, 2)}
        for path in [path for path in self._frames if path not in alive]:
            del self._frames[path]


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else ()


def _fits(actual: Operand, formal: Sequence[Register]) -> bool:
    given = [o.type if isinstance(o, Register) else "" for o in _items(actual)]
    return given == [register.type for register in formal]


def _chosen(mask: Mask, value: Array, other: Array) -> Array:
    if mask is None:
        return value
    return np.where(mask, value, other)
