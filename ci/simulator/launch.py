"""A launch: arguments checked and laid out, slices of blocks executed, findings collected."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ci.simulator.arrays import SharedArray, name_of
from ci.simulator.counters import LaunchCounters
from ci.simulator.errors import LaunchError, StopLaunchError
from ci.simulator.forms import I8, U4
from ci.simulator.global_shadow import GlobalShadow
from ci.simulator.hazards import SharedShadow
from ci.simulator.machine import Machine, quiet
from ci.simulator.memory import ALIGNMENT_BYTES, GlobalMemory
from ci.simulator.merging import MergedAccess, merged_accesses
from ci.simulator.printf import Output
from ci.simulator.program import Program
from ci.simulator.report import Buffer, Counts, MachineAccesses, Place, Report
from ci.simulator.sampling import Sample, SampledCounters, choose
from ci.simulator.sink import HazardSink
from ci.simulator.specials import SPECIALS, Position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ci.simulator.memory import Region
    from ci.simulator.ptx import Kernel, Module, Variable

STEP_LIMIT = 5_000_000
"""Instructions a slice may take by default: some ten seconds of a loop that never ends."""

THREADS_MAX = 1024
GRID_MAX = (2**31 - 1, 65535, 65535)
BLOCK_MAX = (1024, 1024, 64)
SHARED_MAX_BYTES = 232448
LOCAL_MAX_BYTES = 512 * 1024
LOCAL_MAX_BYTES_IN_ALL = 1 << 28
"""Of the threads of one block: what is held in memory at a time."""
VARIABLES_MAX_BYTES = 1 << 28

_SLICE_THREADS = 16384
"""Enough lanes to amortise a NumPy call, few enough for their values to stay in the cache."""
_DYNAMIC_ALIGNMENT = 16

Triple = tuple[int, int, int]


def run(
    module: Module,
    kernel: str,
    *,
    grid: Triple,
    block: Triple,
    arguments: Sequence[Buffer | np.generic],
    dynamic_shared_bytes: int = 0,
    accesses: MachineAccesses | None = None,
    count: bool = True,
    sample: bool = False,
    constants: Mapping[str, bytes] | None = None,
    step_limit: int = STEP_LIMIT,
) -> Report:
    """Execute one launch and return what was seen; buffers are written in place.

    Args:
        module: The parsed PTX.
        kernel: Symbol of one of its kernels.
        grid: Blocks in x, y, z.
        block: Threads of a block in x, y, z.
        arguments: One per parameter, scalars of exactly the parameter's size.
        dynamic_shared_bytes: Size of ``extern __shared__`` memory.
        accesses: Which accesses the kernel's machine code has.
        count: Whether to count memory traffic, which costs time.
        sample: Whether to execute only some blocks of a large grid and count what all would do;
            results are then incomplete, and the report says how good the figures are.
        constants: Contents of ``__constant__`` and ``__device__`` variables by name, for this
            launch and the module's following ones.
        step_limit: Instructions a slice of the launch may take.

    Raises:
        LaunchError: A kernel cannot be launched like this.
        NotEmulatedError: It reached an instruction that is not emulated.
        StepLimitError: It did not end within the step limit.
    """
    if kernel not in module.kernels:
        known = ", ".join(module.kernels) or "none"
        msg = f"no kernel {kernel}: the module has {known}"
        raise LaunchError(msg)
    code, accesses = module.kernels[kernel], accesses or MachineAccesses()
    counters: LaunchCounters | None = None
    chosen = choose(grid) if sample else None
    if chosen is not None:
        merged, blocks = _merged(code, accesses), math.prod(grid)
        counters = SampledCounters(code, merged, chosen, blocks, local=accesses.local)
        program = Program(code, counters)
    else:
        if count or sample:
            counters = LaunchCounters(_merged(code, accesses), local=accesses.local)
        program = _program(code)
    launch = _Launch(program, grid, block, dynamic_shared_bytes)
    launch.place_arguments(arguments)
    launch.place_variables(constants or {})
    try:
        with quiet():
            return launch.execute(counters, step_limit, chosen)
    finally:
        launch.write_back()


@functools.lru_cache(maxsize=16)
def _program(kernel: Kernel) -> Program:
    """Return the decoded kernel, which launches of one kernel share one after the other."""
    return Program(kernel)


@functools.lru_cache(maxsize=16)
def _merged(kernel: Kernel, accesses: MachineAccesses) -> Mapping[int, MergedAccess]:
    return merged_accesses(kernel.instructions, accesses)


class _Launch:
    """One launch of a program."""

    def __init__(self, program: Program, grid: Triple, block: Triple, dynamic_bytes: int) -> None:
        self._program = program
        self._kernel = program.kernel
        self._lanes = program.lanes
        self._lanes.memory = GlobalMemory(self._lanes)
        self._lanes.output = Output()
        self._grid, self._block = grid, block
        self._written: list[tuple[Buffer, Region]] = []
        self._addresses: dict[str, int] = {}
        self._arguments: dict[str, Region] = {}
        self._variables: dict[str, Region] = {}
        self._before: dict[str, bytes] = {}
        self._threads = math.prod(block)
        self._check_extents()
        self._dynamic_bytes = dynamic_bytes
        self._shared_bytes = self._place_shared(dynamic_bytes)
        self._lanes.shared.arrays = self._shared_arrays()
        self._local_bytes = self._place_local()

    def _fail(self, what: str) -> LaunchError:
        return LaunchError(f"{self._kernel.name}: {what}")

    def _check_extents(self) -> None:
        for name, got, most in (("grid", self._grid, GRID_MAX), ("block", self._block, BLOCK_MAX)):
            if any(not 1 <= extent <= limit for extent, limit in zip(got, most, strict=True)):
                raise self._fail(f"expected a {name} of 1 to {most} in x, y, z, got {got}")
        if self._threads > THREADS_MAX:
            raise self._fail(f"expected at most {THREADS_MAX} threads a block, got {self._threads}")

    def _place_shared(self, dynamic_bytes: int) -> int:
        """Lay out shared memory, dynamic variables behind the static ones; return its size."""
        end = 0
        static = [v for v in self._kernel.shared if not v.dynamic]
        for variable in static:
            end = self._place(variable, end)
        dynamic = [v for v in self._kernel.shared if v.dynamic]
        if dynamic or dynamic_bytes:
            align = max([_DYNAMIC_ALIGNMENT, *(v.align_bytes for v in dynamic)])
            end = -(-end // align) * align
            self._addresses |= {variable.name: end for variable in dynamic}
        if dynamic_bytes < 0 or end + dynamic_bytes > SHARED_MAX_BYTES:
            raise self._fail(
                f"expected at most {SHARED_MAX_BYTES} bytes of shared memory, "
                f"got {end} static and {dynamic_bytes} dynamic ones"
            )
        return end + dynamic_bytes

    def _shared_arrays(self) -> dict[int, SharedArray]:
        """Return what each access may touch; a dynamic array goes on to the end."""
        found = {}
        for variable in self._kernel.shared:
            start = self._addresses[variable.name]
            end = self._shared_bytes if variable.dynamic else start + variable.size_bytes
            found[variable.name] = SharedArray(name_of(variable.name), start, end)
        return {pc: found[symbol] for pc, symbol in self._program.arrays.items()}

    def _place_local(self) -> int:
        end = 0
        for variable in self._kernel.local:
            end = self._place(variable, end)
        if end > LOCAL_MAX_BYTES:
            raise self._fail(f"expected at most {LOCAL_MAX_BYTES} bytes of local memory, got {end}")
        if end * self._threads > LOCAL_MAX_BYTES_IN_ALL:
            raise self._fail(
                f"expected at most {LOCAL_MAX_BYTES_IN_ALL} bytes of local memory for the threads "
                f"of a block, got {end * self._threads}"
            )
        return end

    def _place(self, variable: Variable, end: int) -> int:
        start = -(-end // variable.align_bytes) * variable.align_bytes
        self._addresses[variable.name] = start
        return start + variable.size_bytes

    def place_arguments(self, arguments: Sequence[Buffer | np.generic]) -> None:
        """Fill the parameter block.

        Raises:
            LaunchError: Arguments and parameters do not match.
        """
        parameters = self._kernel.parameters
        if len(arguments) != len(parameters):
            raise self._fail(f"expected {len(parameters)} arguments, got {len(arguments)}")
        end = max((p.offset + p.size_bytes for p in parameters), default=0)
        block = np.zeros(-(-(end + 1) // _DYNAMIC_ALIGNMENT) * _DYNAMIC_ALIGNMENT, np.uint8)
        for number, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
            if isinstance(argument, Buffer):
                region = self._place_buffer(argument)
                self._arguments[parameter.name] = region
                content = np.int64(region.address).tobytes()
            else:
                content = argument.tobytes()
            if len(content) != parameter.size_bytes:
                raise self._fail(
                    f"argument {number}: expected {parameter.size_bytes} bytes, got {len(content)}"
                )
            block[parameter.offset : parameter.offset + len(content)] = list(content)
            self._addresses[parameter.name] = parameter.offset
        self._lanes.parameters = block

    def _place_buffer(self, buffer: Buffer) -> Region:
        data = buffer.data
        if data.ndim != 1 or not data.flags.c_contiguous or not data.flags.writeable:
            raise self._fail(
                f"{buffer.name}: expected a one-dimensional, contiguous, writeable array, "
                f"got shape {data.shape}"
            )
        if not 0 <= buffer.misalignment_bytes < ALIGNMENT_BYTES:
            raise self._fail(
                f"{buffer.name}: expected a misalignment of 0 to {ALIGNMENT_BYTES - 1} bytes, "
                f"got {buffer.misalignment_bytes}"
            )
        for other, _ in self._written:
            if np.may_share_memory(other.data, data):
                raise self._fail(f"{buffer.name} and {other.name} share memory")
        content = data.view(np.uint8) if data.size else np.zeros(0, np.uint8)
        region = self._lanes.memory.add(buffer.name, content, buffer.misalignment_bytes)
        if buffer.written is not None:
            region.begin_unwritten(buffer.written)
        self._written.append((buffer, region))
        return region

    def place_variables(self, constants: Mapping[str, bytes]) -> None:
        """Make regions of the module's variables.

        Raises:
            LaunchError: A content does not fit its variable, or the variables do not fit memory.
        """
        state, variables = self._kernel.state, self._kernel.variables
        total = sum(variable.size_bytes for variable in variables.values())
        if total > VARIABLES_MAX_BYTES:
            raise self._fail(
                f"expected at most {VARIABLES_MAX_BYTES} bytes of variables, got {total}"
            )
        for name, variable in variables.items():
            if name in constants:
                state.contents[name] = constants[name]
            content = state.contents.get(name, variable.initial)
            if len(content) > variable.size_bytes:
                raise self._fail(
                    f"variable {name}: expected {variable.size_bytes} bytes, got {len(content)}"
                )
            whole = np.frombuffer(content.ljust(variable.size_bytes, b"\0"), np.uint8)
            number = state.numbers.setdefault(name, len(state.numbers))
            region = self._lanes.memory.add_variable(number, name, whole)
            self._addresses[name] = region.address
            self._variables[name] = region
        self._addresses |= {f.name: f.address for f in self._kernel.functions.values()}
        for name in variables.keys() - state.contents.keys():
            self._resolve(variables[name])
        self._before = {n: region.content.tobytes() for n, region in self._variables.items()}

    def _resolve(self, variable: Variable) -> None:
        """Put the addresses into a variable that is initialised with some."""
        content = self._variables[variable.name].content
        for link in variable.links:
            if link.symbol not in self._addresses:
                raise self._fail(
                    f"variable {variable.name} is initialised with the address of {link.symbol}, "
                    "which the module does not define"
                )
            address = (self._addresses[link.symbol] + link.addend) % (1 << 8 * link.width_bytes)
            whole = address.to_bytes(link.width_bytes, "little")
            content[link.offset : link.offset + link.width_bytes] = list(whole)

    def write_back(self) -> None:
        """Copy what the launch wrote into the buffers, and keep it for the module's variables."""
        for buffer, region in self._written:
            if buffer.data.size:
                buffer.data.view(np.uint8)[:] = region.content
            written = region.written()
            if buffer.written is not None and written is not None:
                buffer.written[:] = written
        for name, region in self._variables.items():
            content = region.content.tobytes()
            if content != self._before.get(name):
                self._kernel.state.contents[name] = content

    def execute(
        self, counters: LaunchCounters | None, step_limit: int, sample: Sample | None
    ) -> Report:
        """Execute the blocks, all of them or a sample, slice by slice."""
        program, lanes = self._program, self._lanes
        instructions = self._kernel.instructions
        sink = HazardSink(
            lambda pc: instructions[pc].place,
            lambda block: _triple(
                block if sample is None else int(sample.numbers[block]), self._grid
            ),
            lambda linear: _triple(linear, self._block),
        )
        lanes.sink = sink
        lanes.shadow = SharedShadow(self._shared_bytes, sink)
        lanes.globals = GlobalShadow(sink)
        for region in self._watched():
            lanes.globals.watch(region)
        lanes.counters = counters
        machine = Machine(program, step_limit)
        stopped = False
        try:
            for numbers in self._slices(sample):
                sink.first_block = int(numbers[0]) if sample is None else 0
                self._begin_slice(numbers)
                machine.run_slice()
                lanes.shadow.end_slice()
        except StopLaunchError:
            stopped = True
            lanes.shadow.end_slice()
        lines = {} if lanes.counters is None else self._by_line(lanes.counters.report())
        return Report(
            hazards=tuple(sorted(sink.hazards(), key=lambda h: (h.file, h.line, h.kind))),
            lines=lines,
            totals=sum(lines.values(), Counts()),
            stopped=stopped,
            output=lanes.output.lines(),
            sampling=counters.sampled() if isinstance(counters, SampledCounters) else None,
        )

    def _blocks_at_once(self) -> int:
        threads = _SLICE_THREADS
        if self._local_bytes:
            threads = min(threads, LOCAL_MAX_BYTES_IN_ALL // self._local_bytes)
        return max(1, threads // self._threads)

    def _watched(self) -> list[Region]:
        """Return the regions that the kernel may write."""
        written = self._program.written
        watched = [region for name, region in self._arguments.items() if name in written]
        for name, variable in self._kernel.variables.items():
            if variable.space == "global":
                watched.append(self._variables[name])
        return watched

    def _slices(self, sample: Sample | None) -> Iterator[NDArray[np.int64]]:
        """Yield the linear numbers of the blocks that are executed together."""
        if sample is not None:
            yield sample.numbers
            return
        blocks, at_once = math.prod(self._grid), self._blocks_at_once()
        for first in range(0, blocks, at_once):
            yield np.arange(first, min(first + at_once, blocks))

    def _begin_slice(self, numbers: NDArray[np.int64]) -> None:
        program, lanes = self._program, self._lanes
        lanes.begin_slice(len(numbers), self._threads, self._shared_bytes, self._local_bytes)
        program.begin_slice(self._local_bytes)
        position = Position(
            blocks=numbers,
            threads=lanes.threads,
            grid=self._grid,
            block=self._block,
            shared_bytes=self._shared_bytes,
            dynamic_shared_bytes=self._dynamic_bytes,
        )
        slots = program.code.slots
        for name, slot in program.code.symbols.items():
            slots[slot] = np.full((1, 1), self._addresses.get(name, 0), I8)
        for name, slot in program.code.specials.items():
            slots[slot] = SPECIALS[name](position).astype(U4)

    def _by_line(self, counts: Mapping[int, Counts]) -> dict[Place, Counts]:
        lines: dict[Place, Counts] = {}
        for pc, each in counts.items():
            place = self._kernel.instructions[pc].place
            lines[place] = lines.get(place, Counts()) + each
        return dict(sorted(lines.items()))


def _triple(linear: int, extents: Triple) -> Triple:
    x, y, _ = extents
    return linear % x, linear // x % y, linear // (x * y)
