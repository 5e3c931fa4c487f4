"""Loads and stores in every space.

Source: PTX ISA, "Data Movement and Conversion Instructions": ld, ldu, st.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.code import is_param
from ci.simulator.forms import I8, U4, Fetch, Form, UnsupportedError, dtype_of
from ci.simulator.memory import GLOBAL_WINDOW, LOCAL_WINDOW, SHARED_WINDOW
from ci.simulator.ops.param import load_param, store_param
from ci.simulator.ptx import Address, Operand, Register, Vector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Mask, Step
    from ci.simulator.lanes import Lanes

    Read = Callable[[Array, Mask], list[Array]]
    Write = Callable[[Array, Mask, list[Array]], None]

DType = np.dtype[Any]

HINTS = ("L1::", "L2::", "level::", "evict")
"""Modifiers about caches."""
ORDERING = ("weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
_WEAK = ("", "weak")
RELEASES = ("release", "acq_rel")
SCOPES = ("cta", "cluster", "gpu", "sys")
CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified")
SPACES = ("global", "shared", "local", "const", "param")


def address_of(code: Code, operand: Operand) -> Fetch:
    """Return a function that gives the (b, t) addresses of a memory operand as int64.

    Raises:
        UnsupportedError: The operand is no address.
    """
    if not isinstance(operand, Address):
        raise UnsupportedError(str(operand))
    offset = operand.offset
    base = operand.base
    if is_param(base):
        raise UnsupportedError(str(operand))
    if isinstance(base, Register) and base.type[-2:] == "32":
        narrow = code.fetch(base, U4)
        return lambda: narrow().astype(I8) + offset
    fetch = code.fetch(base, I8)
    return (lambda: fetch() + offset) if offset else fetch


def items_of(operand: Operand) -> tuple[Operand, ...]:
    """Return the elements of an operand that may be a vector."""
    return operand.items if isinstance(operand, Vector) else (operand,)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shape:
    """What the modifiers of a load or store say."""

    space: str
    """Empty: the address tells."""
    dtype: DType
    count: int
    """Elements."""
    order: str
    """One of ``ORDERING``, or empty."""

    @property
    def is_strong(self) -> bool:
        """Return whether threads may meet in it without a race."""
        return self.order not in _WEAK


def _common(form: Form) -> _Shape:
    """Take the modifiers of a load or store."""
    dtype = dtype_of(form.last())
    form.drop(*HINTS)
    order = form.flag(*ORDERING)
    form.flag(*SCOPES)
    form.flag(*CACHES)
    form.flag(*CACHES)
    space = form.flag(*SPACES)
    count = int((form.flag("v2", "v4") or "v1")[1:])
    if space == "const":
        # Constant variables are regions of global memory.
        space = "global"
    return _Shape(space=space, dtype=dtype, count=count, order=order)


class Windows:
    """Sorts generic addresses by the space they point to."""

    def __init__(self, lanes: Lanes) -> None:
        """Look at the addresses of ``lanes``."""
        self._lanes = lanes

    def parts(self, address: Array, mask: Mask) -> list[tuple[str, Array, Mask]]:
        """Return (space, addresses in the space, mask) for every space that lanes reach."""
        active = self._lanes.reduced(mask, address.shape)
        shared = (address >= SHARED_WINDOW) & (address < LOCAL_WINDOW)
        local = (address >= LOCAL_WINDOW) & (address < GLOBAL_WINDOW)
        parts: list[tuple[str, Array, Mask]] = []
        for space, here, start in (
            ("shared", shared, SHARED_WINDOW),
            ("local", local, LOCAL_WINDOW),
            ("global", ~(shared | local), 0),
        ):
            if not (here & active).any():
                continue
            # The usual case, all lanes in one space, keeps its mask and with it its speed.
            whole = bool((here | ~active).all())
            parts.append((space, address - start, mask if whole else self._lanes.both(mask, here)))
        return parts


def _load(code: Code, form: Form) -> Step:
    pc, lanes = form.instruction.pc, code.lanes
    shape = _common(form)
    space, dtype, count = shape.space, shape.dtype, shape.count
    destination, source = form.operands(2, 3)[:2]
    items = items_of(destination)
    if len(items) != count:
        raise UnsupportedError(form.instruction.text)
    held = [code.held(item, dtype) for item in items]
    stores = [code.store(item, kind) for item, kind in zip(items, held, strict=True)]
    if space == "param" and isinstance(source, Address) and is_param(source.base):
        return load_param(code, source, stores, held)
    address = address_of(code, source)
    if space == "param":
        return _load_parameter(lanes, source, address, stores, held)
    looks = pc in code.first_looks
    readers = readers_of(lanes, pc, held, strong=shape.is_strong or looks, first_look=looks)
    read = readers[space] if space else generic_reader(lanes, readers)
    first = stores[0]

    def one(mask: Mask) -> None:
        first(read(address(), mask)[0])

    def several(mask: Mask) -> None:
        for store, value in zip(stores, read(address(), mask), strict=True):
            store(value)

    return one if count == 1 else several


def generic_reader(lanes: Lanes, readers: dict[str, Read]) -> Read:
    """Return a reader of whatever spaces the addresses point to."""
    windows = Windows(lanes)

    def generic(address: Array, mask: Mask) -> list[Array]:
        parts = windows.parts(address, mask)
        space, where, there = parts[0]
        values = readers[space](where, there)
        for space, where, there in parts[1:]:
            found = readers[space](where, there)
            keep = True if there is None else there
            values = [np.where(keep, *pair) for pair in zip(found, values, strict=True)]
        return values

    return generic


def readers_of(
    lanes: Lanes,
    pc: int,
    dtypes: Sequence[DType],
    *,
    strong: bool = False,
    first_look: bool = False,
) -> dict[str, Read]:
    """Return a function of (addresses, mask) for each space, which also tells who watches.

    Args:
        lanes: The slice.
        pc: The instruction.
        dtypes: Types of the elements.
        strong: Whether it meets strong accesses to global memory without a race.
        first_look: Whether it meets atomic operations on shared memory without a race.
    """
    count = len(dtypes)
    width = count * dtypes[0].itemsize

    def from_global(address: Array, mask: Mask) -> list[Array]:
        if lanes.counters is not None:
            lanes.counters.global_access(pc, False, address, mask, width, count)
        return lanes.memory.load(pc, address, mask, dtypes, strong=strong)

    def from_shared(address: Array, mask: Mask) -> list[Array]:
        checked = lanes.shared.check(pc, address, mask, width, "read")
        lanes.pending.read(pc, checked, mask, width, "read")
        lanes.shadow.read(pc, checked, mask, width, first_look=first_look)
        if lanes.counters is not None:
            lanes.counters.shared_access(pc, False, checked, mask, width)
        return lanes.shared.load(checked, dtypes)

    def from_local(address: Array, mask: Mask) -> list[Array]:
        checked = lanes.local.check(pc, address, mask, width, "read")
        if lanes.counters is not None:
            lanes.counters.local_access(pc, False, mask, width)
        lanes.local.check_written(pc, checked, mask, dtypes)
        return lanes.local.load(checked, dtypes)

    return {"global": from_global, "shared": from_shared, "local": from_local}


def _load_parameter(
    lanes: Lanes,
    source: Operand,
    address: Fetch,
    stores: Sequence[Callable[[Array], None]],
    dtypes: Sequence[DType],
) -> Step:
    """Return a step that reads the parameter block, the same for every thread."""
    if not isinstance(source, Address):
        raise UnsupportedError(str(source))

    def step(_: Mask) -> None:
        index = address() // dtypes[0].itemsize
        for element, (store, dtype) in enumerate(zip(stores, dtypes, strict=True)):
            # What lies behind the block is not defined: the last word stands for it.
            store(lanes.parameters.view(dtype).take(index + element, mode="clip"))

    return step


def _store(code: Code, form: Form) -> Step:
    pc, lanes = form.instruction.pc, code.lanes
    shape = _common(form)
    space, dtype, count = shape.space, shape.dtype, shape.count
    destination, source = form.operands(2, 3)[:2]
    items = items_of(source)
    if len(items) != count:
        raise UnsupportedError(form.instruction.text)
    fetches = [code.fetch(item, code.held(item, dtype)) for item in items]
    if space == "param":
        return store_param(code, destination, fetches, dtype.itemsize)
    address = address_of(code, destination)
    writers = writers_of(lanes, pc, count * dtype.itemsize, shape.order)
    write = writers[space] if space else generic_writer(lanes, writers)
    return lambda mask: write(address(), mask, [fetch() for fetch in fetches])


def generic_writer(lanes: Lanes, writers: dict[str, Write]) -> Write:
    """Return a writer to whatever spaces the addresses point to."""
    windows = Windows(lanes)

    def generic(address: Array, mask: Mask, values: list[Array]) -> None:
        for space, where, there in windows.parts(address, mask):
            writers[space](where, there, values)

    return generic


def writers_of(lanes: Lanes, pc: int, width: int, order: str = "") -> dict[str, Write]:
    """Return a function of (addresses, mask, values) for each space."""
    strong, releases = order not in _WEAK, order in RELEASES

    def to_global(address: Array, mask: Mask, values: list[Array]) -> None:
        if lanes.counters is not None:
            lanes.counters.global_access(pc, True, address, mask, width, len(values))
        if releases:
            lanes.globals.fence(lanes.spread(mask), for_all=True)
        lanes.memory.store(pc, address, mask, values, strong=strong)

    def to_shared(address: Array, mask: Mask, values: list[Array]) -> None:
        checked = lanes.shared.check(pc, address, mask, width, "write")
        lanes.pending.write(pc, checked, mask, width)
        lanes.shadow.write(pc, checked, mask, width, values)
        if lanes.counters is not None:
            lanes.counters.shared_access(pc, True, checked, mask, width)
        lanes.shared.store(checked, mask, values)

    def to_local(address: Array, mask: Mask, values: list[Array]) -> None:
        checked = lanes.local.check(pc, address, mask, width, "write")
        if lanes.counters is not None:
            lanes.counters.local_access(pc, True, mask, width)
        lanes.local.mark(checked, mask, values)
        lanes.local.store(checked, mask, values)

    return {"global": to_global, "shared": to_shared, "local": to_local}


DECODERS: dict[str, Callable[[Code, Form], Step]] = {"ld": _load, "ldu": _load, "st": _store}
"""Opcode → decoder."""
