"""Calls of what the CUDA runtime provides inside kernels: printf, assert, trap; malloc is refused.

Source: CUDA C++ Programming Guide, "Formatted Output", "Assertion", "Trap function".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.body import callee_of
from ci.simulator.errors import StopLaunchError
from ci.simulator.forms import I8, U4, Form, UnsupportedError
from ci.simulator.memory import LOCAL_WINDOW, SHARED_WINDOW, spread_to
from ci.simulator.ops.param import as_type
from ci.simulator.printf import formatted
from ci.simulator.ptx import Operand, Vector

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Fetch, Mask, Step
    from ci.simulator.lanes import Lanes

ASSERTION = "failed assertion"
TRAP = "trap"

_TEXT_MAX_BYTES = 4096


def _call(code: Code, form: Form) -> Step:
    """Decode the call of a function without a body in the module."""
    form.flag("uni")
    results, _, arguments = form.operands(3)
    name = callee_of(form.instruction)
    if name == "vprintf":
        return _print(code, form, results, arguments)
    if name == "__assertfail":
        return _fail(code, form, arguments)
    raise UnsupportedError(form.instruction.text)


def _arguments(code: Code, arguments: Operand, sizes: tuple[int, ...]) -> list[Fetch]:
    """Return functions that read the arguments of a call as int64.

    Raises:
        UnsupportedError: They do not have these sizes in bytes.
    """
    items = arguments.items if isinstance(arguments, Vector) else ()
    slots = [code.read_param(item) for item in items]
    if tuple(code.slots[slot].itemsize for slot in slots) != sizes:
        raise UnsupportedError(str(arguments))
    return [_reader(code, slot) for slot in slots]


def _reader(code: Code, slot: int) -> Fetch:
    return lambda: as_type(code.slots[slot], U4 if code.slots[slot].itemsize == 4 else I8)


def _print(code: Code, form: Form, results: Operand, arguments: Operand) -> Step:
    template, values = _arguments(code, arguments, (8, 8))
    items = results.items if isinstance(results, Vector) else ()
    slots = [code.written_param(item) for item in items]
    lanes, text = code.lanes, form.instruction.text
    if any(code.slots[slot].itemsize != 4 for slot in slots):
        raise UnsupportedError(text)

    def step(mask: Mask) -> None:
        active = np.argwhere(lanes.spread(mask))
        shape = (lanes.blocks, lanes.threads)
        at, where = spread_to(template(), shape), spread_to(values(), shape)
        counts = np.zeros(shape, np.int32)
        for block, thread in active.tolist():
            if lanes.output.full:
                lanes.output.dropped += 1
                continue
            reader = Bytes(lanes, block, thread)
            pattern = reader.text(int(at[block, thread]))
            line, count = formatted(pattern, reader, int(where[block, thread]))
            counts[block, thread] = count
            lanes.output.add(line)
        for slot in slots:
            code.slots[slot] = counts.view("V4")

    return step


def _fail(code: Code, form: Form, arguments: Operand) -> Step:
    message, file, line, function, _ = _arguments(code, arguments, (8, 8, 4, 8, 8))
    lanes, pc = code.lanes, form.instruction.pc

    def step(mask: Mask) -> None:
        here = lanes.spread(mask)
        block, thread = divmod(int(here.argmax()), lanes.threads)
        reader = Bytes(lanes, block, thread)

        def at(fetch: Fetch) -> int:
            return int(spread_to(fetch(), here.shape)[block, thread])

        where = f"{reader.text(at(file))}:{at(line)}, in {reader.text(at(function))}"
        story = f"assertion {reader.text(at(message))} at {where}, failed"
        lanes.report(ASSERTION, pc, here, story)
        raise StopLaunchError

    return step


def _trap(code: Code, form: Form) -> Step:
    form.operands(0)
    lanes, pc = code.lanes, form.instruction.pc

    def step(mask: Mask) -> None:
        lanes.report(TRAP, pc, lanes.spread(mask), "trap reached")
        raise StopLaunchError

    return step


class Bytes:
    """The memory that one thread sees, byte by byte, at generic addresses."""

    def __init__(self, lanes: Lanes, block: int, thread: int) -> None:
        """Look from a thread of a block of the slice."""
        self._lanes = lanes
        self._block = block
        self._thread = thread

    def read(self, address: int, count: int) -> bytes:
        """Return up to ``count`` bytes: fewer where the memory ends, none where there is none."""
        lanes = self._lanes
        if SHARED_WINDOW <= address < LOCAL_WINDOW:
            row, start = lanes.shared.row_of(self._block, 0), address - SHARED_WINDOW
        elif LOCAL_WINDOW <= address < 2 * LOCAL_WINDOW:
            row, start = lanes.local.row_of(self._block, self._thread), address - LOCAL_WINDOW
        else:
            return lanes.memory.peek(address, count)
        return bytes(row[start : start + count])

    def text(self, address: int) -> str:
        """Return the string that ends with a zero byte."""
        return self.read(address, _TEXT_MAX_BYTES).split(b"\0")[0].decode("utf-8", "replace")


DECODERS: dict[str, Callable[[Code, Form], Step]] = {"call": _call, "trap": _trap}
"""Opcode → decoder."""
