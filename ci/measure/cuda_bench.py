"""Timing on the GPU: replays of CUDA graphs between events, operands in one block of memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ci.check.launch import output_of, prepare
from ci.check.plan import plain
from ci.check.references import trusted_reference
from ci.devices.baselines import Baselines, OnOperands
from ci.devices.cuda import CudaDevice, Refusal
from ci.devices.driver import native
from ci.devices.prepared import Enqueueable, PlacedBuffer, PreparedSteps
from ci.measure.batch import event_tick
from ci.measure.bench import BenchError, Placed, Replay, Routine
from ci.measure.contents import doublings, drawn, unfilled
from kernels.build import BuiltStage, build_stage
from kernels.dtypes import numbers
from kernels.operands import Matrix
from kernels.spec import Case, CudaStage, Stage, Suite

_ALIGNMENT_BYTES = 512
"""Operands start at multiples of it, as an allocator would place them."""
_TEMPLATES_BYTES = 4 << 30
"""Operands kept on the GPU to be copied again, at most about so many bytes."""
_KEPT_BYTES = 1 << 30
"""Operand sets whose memory is kept from one case to the next, at most."""
_NAN_BYTE = 0xFF
"""Repeated, it is NaN in every float type."""
_TICK_TIMES = 64
_TICK_STEP_BYTES = 1 << 16


_PrepareOn = Callable[[Mapping[str, PlacedBuffer]], Enqueueable]
"""Operands in place → the launch on them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Template:
    """One operand set, filled, from which all others are copied."""

    matrices: Mapping[str, Matrix]
    """Operand → the same in host memory."""
    scalars: Mapping[str, float]
    block: Any = field(repr=False)
    """CuPy array of bytes with all operands."""
    starts: Mapping[str, int]
    """Operand → its first byte in the block."""

    @property
    def operand_bytes(self) -> int:
        """Return the bytes of the operands themselves."""
        return sum(matrix.buffer().nbytes for matrix in self.matrices.values())

    def laid_into(self, arena: Any, offset: int) -> dict[str, PlacedBuffer]:  # noqa: ANN401
        """Return the operands of the set that lies in ``arena`` from byte ``offset`` on."""
        placed = {}
        for name, matrix in self.matrices.items():
            data = matrix.buffer()
            start = offset + self.starts[name]
            array = arena[start : start + data.nbytes].view(data.dtype)
            placed[name] = PlacedBuffer(name=name, array=array, memory=arena, start=start)
        return placed


class _OnGpu:
    """A launch on one operand set."""

    def __init__(
        self, device: CudaDevice, prepared: Enqueueable, written: PlacedBuffer, dtype: str
    ) -> None:
        self._device = device
        self._written = written
        self._dtype = dtype
        self.prepared = prepared

    def launch(self) -> None:
        if isinstance(self.prepared, PreparedSteps):
            for launch in self.prepared.launches:
                self._device.finish(launch)
        else:
            self.prepared.enqueue(self._device.stream)
            self._device.stream.synchronize()

    def poison(self) -> None:
        array = self._written.array
        array.data.memset_async(_NAN_BYTE, array.nbytes, self._device.stream)
        self._device.stream.synchronize()

    def output(self) -> NDArray[np.generic]:
        return numbers(self._written.fetch(), self._dtype)

    def agrees_with(self, other: Placed) -> bool:
        if not isinstance(other, _OnGpu):
            return False
        mine, theirs = (self._bits(each._written.array) for each in (self, other))  # noqa: SLF001
        with self._device.stream:
            return bool(cupy.array_equal(mine, theirs))

    @staticmethod
    def _bits(array: Any) -> Any:  # noqa: ANN401
        """Return the elements as whole numbers, of which NaN equals itself."""
        return array.view(f"u{array.itemsize}")


class _Graphs:
    """A batch as instantiated CUDA graphs, one a part."""

    def __init__(self, graphs: Sequence[Any], stream: Any) -> None:  # noqa: ANN401
        self._graphs = graphs
        self._next = itertools.cycle(graphs)
        self._stream = stream
        for graph in graphs:
            graph.upload(stream)

    def run(self) -> None:
        for graph in self._graphs:
            graph.launch(self._stream)
        self._stream.synchronize()

    def time(self, count: int) -> tuple[float, ...]:
        pairs = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(count)]
        # The untimed replay also hides from the others that the host is still enqueueing them.
        next(self._next).launch(self._stream)
        for begin, end in pairs:
            begin.record(self._stream)
            next(self._next).launch(self._stream)
            end.record(self._stream)
        self._stream.synchronize()
        return tuple(cupy.cuda.get_elapsed_time(*pair) / 1000 for pair in pairs)


class CudaBench:
    """The first GPU of this process."""

    def __init__(self, suites: Sequence[Suite], *, cache: Path) -> None:
        """Open the GPU.

        Args:
            suites: What the cases belong to; no two of their ladders have one name.
            cache: Folder of the compile cache.

        Raises:
            NoGpuError: There is none that can be used.
        """
        self._device = CudaDevice()
        self._suites = {ladder.name: suite for suite in suites for ladder in suite.ladders}
        self._cache = cache
        self._built: dict[tuple[str, str], BuiltStage] = {}
        self._templates: dict[tuple[str, str], _Template] = {}
        self._arena: Any = None
        self._baselines = Baselines(self._device)
        self.l2_bytes = self._device.facts.l2_bytes
        self.tick_s = event_tick(self._short_times())

    def set_bytes(self, routine: Routine) -> int:
        """Return the bytes of one operand set."""
        return self._template(routine.case).operand_bytes

    def place(self, routine: Routine, sets: int) -> Sequence[_OnGpu]:
        """Return the routine on so many operand sets; see ``Bench.place``."""
        template = self._template(routine.case)
        stride = template.block.nbytes
        stream = self._device.stream
        with _explained(f"{sets} operand sets of {stride} bytes"):
            arena = self._arena_of(sets * stride)
            arena.data.copy_from_device_async(template.block.data, stride, stream)
            self._repeat(arena, known=stride, wanted=sets * stride)
            stream.synchronize()
        output = output_of(routine.case.ladder.problem)
        launch_on = self._baseline if routine.baseline else self._stage_launch
        prepare_on = launch_on(routine.case, template)
        placed = []
        for start in range(0, sets * stride, stride):
            operands = template.laid_into(arena, start)
            prepared = prepare_on(operands)
            placed.append(_OnGpu(self._device, prepared, operands[output.name], output.dtype))
        return placed

    def record(self, parts: Sequence[Sequence[Placed]]) -> Replay:
        """Return CUDA graphs of the launches in this order; see ``Bench.record``."""
        stream: Any = self._device.stream
        graphs = []
        for part in parts:
            launches = [each.prepared for each in part if isinstance(each, _OnGpu)]
            with _explained(f"a graph of {len(launches)} launches"):
                stream.begin_capture()
                try:
                    for prepared in launches:
                        prepared.enqueue(stream)
                finally:
                    graphs.append(stream.end_capture())
        with _explained(f"{len(graphs)} graphs"):
            return _Graphs(graphs, stream)

    def drop(self) -> None:
        """Keep the memory for the next case's operands, unless it is much."""
        if self._arena is not None and self._arena.nbytes > _KEPT_BYTES:
            self._arena = None
            cupy.get_default_memory_pool().free_all_blocks()

    def _arena_of(self, size_bytes: int) -> Any:  # noqa: ANN401
        """Return memory for operand sets: the last case's, if it is large enough.

        Where it lies is drawn once a process then, as everything else that differs from one
        process to the next, and no case waits for its allocation.
        """
        if self._arena is None or self._arena.nbytes < size_bytes:
            self._arena = None
            cupy.get_default_memory_pool().free_all_blocks()
            self._arena = cupy.empty(size_bytes, dtype=np.uint8)
        return self._arena

    def _repeat(self, memory: Any, *, known: int, wanted: int) -> None:  # noqa: ANN401
        """Repeat the first ``known`` bytes of a memory in the first ``wanted`` ones."""
        for copy in doublings(known, wanted):
            target = memory.data + copy.target
            target.copy_from_device_async(memory.data, copy.count, self._device.stream)

    def _template(self, case: Case) -> _Template:
        """Return the operands of a problem at a size: one set for all of a ladder's stages."""
        key = (case.ladder.name, case.size.label)
        if key not in self._templates:
            if sum(each.block.nbytes for each in self._templates.values()) > _TEMPLATES_BYTES:
                self._templates.clear()
            self._templates[key] = self._filled(case)
        return self._templates[key]

    def _filled(self, case: Case) -> _Template:
        """Return a problem's operands at a size, random on the GPU; what is not read is NaN."""
        problem = case.ladder.problem
        reference = trusted_reference(problem.reference)
        scalars = {name: levels[0] for name, levels in reference.scalars.items()}
        combination = plain(problem, case.size.as_dict(), scalars)
        matrices = unfilled(problem, combination)
        starts, end = {}, 0
        for name, matrix in matrices.items():
            starts[name] = end
            end += -(-matrix.buffer().nbytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        stream = self._device.stream
        with _explained(f"operands of {end} bytes"):
            block = cupy.empty(end, dtype=np.uint8)
            block.data.memset_async(_NAN_BYTE, end, stream)
            for name, values in drawn(problem, reference, combination).items():
                wanted = matrices[name].buffer().nbytes
                memory = block[starts[name] : starts[name] + wanted]
                known = min(values.nbytes, wanted)
                memory[:known].set(values.view(np.uint8)[:known], stream)
                self._repeat(memory, known=known, wanted=wanted)
            stream.synchronize()
        return _Template(matrices=matrices, scalars=scalars, block=block, starts=starts)

    def _stage_launch(self, case: Case, template: _Template) -> _PrepareOn:
        """Return what prepares the launch of a case's stage."""
        stage = _cuda_stage(case.stage)
        built = self._build(case, stage)
        steps = prepare(
            case.ladder.problem,
            stage,
            self._device.tile(built),
            matrices=template.matrices,
            size=case.size.as_dict(),
            scalars=template.scalars,
        )
        return lambda operands: self._device.prepare_steps(built, steps, operands)

    def _build(self, case: Case, stage: CudaStage) -> BuiltStage:
        key = (case.ladder.name, stage.name)
        if key not in self._built:
            own = native(self._device.facts.capability, stage.architectures)
            if own is None:
                msg = f"{stage.name}: declares no architecture that {self._device.facts.name} runs"
                raise BenchError(msg)
            self._built[key] = build_stage(
                self._suites[case.ladder.name],
                case.ladder,
                stage,
                architectures=(own,),
                cache=self._cache,
            )
        return self._built[key]

    def _baseline(self, case: Case, template: _Template) -> _PrepareOn:
        """Return what prepares the vendor library's routine."""
        return lambda operands: self._baselines.prepare(
            case.ladder.problem.baseline,
            OnOperands(
                size=case.size.as_dict(),
                matrices=template.matrices,
                placed=operands,
                scalars=template.scalars,
            ),
        )

    def _short_times(self) -> list[float]:
        """Return event times of short work of slowly growing length (s)."""
        stream = self._device.stream
        memory = cupy.empty(_TICK_TIMES * _TICK_STEP_BYTES, dtype=np.uint8)
        events = [cupy.cuda.Event() for _ in range(_TICK_TIMES + 1)]
        for number, event in enumerate(events):
            memory.data.memset_async(0, max(1, number * _TICK_STEP_BYTES), stream)
            event.record(stream)
        stream.synchronize()
        return [
            cupy.cuda.get_elapsed_time(before, after) / 1000
            for before, after in itertools.pairwise(events)
        ]


def _cuda_stage(stage: Stage) -> CudaStage:
    if not isinstance(stage, CudaStage):
        msg = f"{stage.name} is a Python callable, expected CUDA source (only that is timed)"
        raise BenchError(msg)
    return stage


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn what CuPy raises into a BenchError that says what was being made."""
    try:
        yield
    except (*Refusal, cupy.cuda.memory.OutOfMemoryError) as error:
        msg = f"{what}: the GPU refuses: {error}"
        raise BenchError(msg) from error
