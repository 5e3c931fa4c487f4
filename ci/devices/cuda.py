"""The GPU as a device: cubins loaded and launched through CuPy, buffers between guard bands."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, overload

import cupy
import numpy as np
from numpy.typing import NDArray

from ci.devices.cublas import WORKSPACE_BYTES, Cublas, Mathematics, column_major
from ci.devices.driver import gpu_facts, native, runnable
from ci.devices.errors import LaunchError, NotEmulatedError, StepLimitError
from ci.devices.guards import damage, guarded
from ci.devices.protocol import Argument, Buffer, Execution
from ci.results.model import Finding
from kernels.build import BuiltStage, Cubin
from kernels.operands import Floats
from kernels.spec import Launch, Layout

LAUNCH_LIMIT_S = 20.0
"""A launch that takes longer hangs: the slowest stage at the largest size takes 0.05 s."""
_STATIC_SHARED_LIMIT = 48 * 1024
"""Bytes of dynamic shared memory a kernel gets unasked."""
_NOT_READY = 600
"""cudaErrorNotReady."""
_COPIED_BYTES = 1 << 30

Refusal = (cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError)
"""What CuPy raises for an error of the driver or the runtime."""


class Stream(Protocol):
    """A CuPy stream, as far as it is used here."""

    ptr: int

    def __enter__(self) -> object:
        """Make it the current one."""

    def __exit__(self, *arguments: object) -> None:
        """Make the one before it current again."""

    def synchronize(self) -> None:
        """Wait for everything on it."""

    def begin_capture(self) -> None:
        """Record what is enqueued from now on, without running it."""

    def end_capture(self) -> Any:  # noqa: ANN401
        """Return the recorded graph, which ``launch`` puts on a stream."""


class Enqueueable(Protocol):
    """A launch, or a product of cuBLAS, of which everything is decided."""

    def enqueue(self, stream: Stream) -> None:
        """Put it on a stream, which may be capturing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedBuffer:
    """A buffer in device memory, between guard bands."""

    name: str
    array: Any = field(repr=False)
    """CuPy array of the buffer's elements."""
    memory: Any = field(repr=False)
    """CuPy array of bytes: guard band, elements, guard band."""
    start: int
    """Bytes before the elements in ``memory``."""

    @property
    def address(self) -> int:
        """Return the device address of element 0."""
        return int(self.array.data.ptr)

    def fetch(self) -> NDArray[np.generic]:
        """Return a copy of the elements in host memory."""
        copied: NDArray[np.generic] = self.array.get()
        return copied


DeviceArgument = PlacedBuffer | np.generic | NDArray[np.void]
"""A placed buffer, a scalar of exactly the parameter's type, or a struct by value: a
0-dimensional array, as a tensor map is (``ci.devices.tensor_maps``)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedLaunch:
    """A launch of which everything is decided: enqueueing allocates nothing and waits for none."""

    kernel: Any = field(repr=False)
    launch: Launch
    arguments: tuple[Any, ...] = field(repr=False)

    def enqueue(self, stream: Stream) -> None:
        """Put the launch on a stream, which may be capturing."""
        with stream:
            self.kernel(
                self.launch.grid,
                self.launch.block,
                self.arguments,
                shared_mem=self.launch.dynamic_shared_bytes,
            )


class CudaDevice:
    """The first GPU of this process. A kernel that faults leaves it unusable until the end."""

    name = "cuda"

    def __init__(self) -> None:
        """Open the GPU.

        Raises:
            NoGpuError: There is none that can be used.
        """
        self.facts = gpu_facts()
        self.stream: Stream = cupy.cuda.Stream(non_blocking=True)
        self._kernels: dict[tuple[str, str], Any] = {}
        self._broken = ""
        self._pedantic: tuple[Cublas, object] | None = None

    @property
    def architecture(self) -> str:
        """Return the architecture whose cubins this GPU takes first."""
        return runnable(self.facts.capability)[0]

    def tile(self, built: BuiltStage) -> Mapping[str, int]:
        """Return the tile of the code this GPU runs."""
        return self._cubin(built).tile

    def run(
        self,
        built: BuiltStage,
        variant: str,
        launch: Launch,
        arguments: Sequence[Argument],
        *,
        count: bool,
    ) -> Execution:
        """Execute one launch; see ``ci.devices.protocol.Device.run``. Nothing is counted."""
        del count
        placed = [self.place(argument) for argument in arguments]
        self.finish(self.prepare(built, variant, launch, placed))
        expression = self._cubin(built).kernels[variant].expression
        findings = []
        for argument, at in zip(arguments, placed, strict=True):
            if isinstance(argument, Buffer) and isinstance(at, PlacedBuffer):
                findings += self._bring_back(argument, at, expression)
        return Execution(findings=tuple(findings), counters=None, lines=())

    @overload
    def place(self, argument: Buffer) -> PlacedBuffer: ...

    @overload
    def place(self, argument: np.generic) -> np.generic: ...

    def place(self, argument: Argument) -> PlacedBuffer | np.generic:
        """Return an argument as launches on this device take it; a buffer is copied there.

        Raises:
            LaunchError: A kernel has made this process's GPU unusable, or its memory is full.
        """
        self._require_whole()
        if not isinstance(argument, Buffer):
            return argument
        host, start = guarded(argument.data, argument.misalignment_bytes)
        try:
            with self.stream:
                memory = cupy.empty(host.size, dtype=np.uint8)
                memory.set(host, self.stream)
                self.stream.synchronize()
        except (*Refusal, cupy.cuda.memory.OutOfMemoryError) as error:
            raise LaunchError(f"{argument.name}: cannot be placed on the GPU: {error}") from error
        end = start + argument.data.nbytes
        array = memory[start:end].view(argument.data.dtype)
        return PlacedBuffer(name=argument.name, array=array, memory=memory, start=start)

    def prepare(
        self,
        built: BuiltStage,
        variant: str,
        launch: Launch,
        arguments: Sequence[DeviceArgument],
    ) -> PreparedLaunch:
        """Return a launch that only needs to be enqueued.

        Args:
            built: The compiled stage.
            variant: Which instantiation, such as ``A=row,B=column``.
            launch: Grid, block and dynamic shared memory.
            arguments: In the entry's parameter order, as ``place`` returns them.

        Raises:
            NotEmulatedError: The stage has no code for this GPU.
            LaunchError: The code cannot be loaded, or wants more shared memory than there is.
        """
        self._require_whole()
        cubin = self._cubin(built)
        symbol = cubin.kernels[variant].symbol
        wanted = launch.dynamic_shared_bytes
        try:
            kernel = self._kernel(cubin, symbol)
            if wanted > _STATIC_SHARED_LIMIT:
                kernel.max_dynamic_shared_size_bytes = wanted
        except Refusal as error:
            raise LaunchError(
                f"{cubin.kernels[variant].expression}: the driver refuses it with {wanted} bytes "
                f"of dynamic shared memory: {error}"
            ) from error
        return PreparedLaunch(
            kernel=kernel,
            launch=launch,
            arguments=tuple(a.array if isinstance(a, PlacedBuffer) else a for a in arguments),
        )

    def finish(self, prepared: PreparedLaunch) -> None:
        """Launch and wait for the end.

        Raises:
            LaunchError: The launch was refused, or the kernel faulted.
            StepLimitError: The kernel does not end.
        """
        self._require_whole()
        done = cupy.cuda.Event(disable_timing=True)
        try:
            prepared.enqueue(self.stream)
        except Refusal as error:
            launch = prepared.launch
            raise LaunchError(
                f"the driver refuses grid {launch.grid}, block {launch.block}, "
                f"{launch.dynamic_shared_bytes} bytes of dynamic shared memory: {error}"
            ) from error
        try:
            done.record(self.stream)
            deadline = time.monotonic() + LAUNCH_LIMIT_S
            while _pending(done):
                if time.monotonic() > deadline:
                    self._broken = f"a kernel did not end within {LAUNCH_LIMIT_S:.0f} s"
                    raise StepLimitError(self._broken)
                time.sleep(0)
            self.stream.synchronize()
        except Refusal as error:
            self._broken = f"a kernel faulted: {error}"
            raise LaunchError(self._broken) from error

    def cublas(
        self, stream: Stream, mathematics: Mathematics = Mathematics.DEFAULT
    ) -> tuple[Cublas, object]:
        """Return a cuBLAS handle on a stream, and its workspace: keep both.

        Raises:
            NoGpuError: cuBLAS is not installed.
            LaunchError: cuBLAS refuses.
        """
        workspace = cupy.empty(WORKSPACE_BYTES, dtype=np.uint8)
        return Cublas(stream.ptr, int(workspace.data.ptr), mathematics), workspace

    def multiply(self, a: Floats, b: Floats) -> Floats:
        """Return ``a @ b`` ([M, K] by [K, N]) by cuBLAS in pedantic float32.

        Raises:
            LaunchError: A kernel has made this process's GPU unusable, or its memory is full.
        """
        if self._pedantic is None:
            self._pedantic = self.cublas(self.stream, Mathematics.PEDANTIC)
        (rows, inner), columns = a.shape, b.shape[1]
        product = column_major(
            {"M": rows, "N": columns, "K": inner},
            dict.fromkeys("ABC", Layout.ROW),
            {"A": inner, "B": columns, "C": columns},
        )
        result = np.empty((rows, columns), dtype=np.float32)
        placed = {
            name: self.place(Buffer(name=name, data=np.ascontiguousarray(data).reshape(-1)))
            for name, data in (("A", a), ("B", b), ("C", result))
        }
        addresses = {name: at.address for name, at in placed.items()}
        self._pedantic[0].sgemm(product, alpha=1.0, beta=0.0, **addresses)
        self.stream.synchronize()
        result[...] = placed["C"].fetch().reshape(result.shape)
        return result

    def replay_times(self, launches: Sequence[Enqueueable], replays: int) -> tuple[float, ...]:
        """Return the seconds a launch of each replay of a graph that holds all ``launches``.

        One replay before is not timed: the first after an idle gap is slow.
        """
        with self.stream:
            self.stream.begin_capture()
            for launch in launches:
                launch.enqueue(self.stream)
            graph = self.stream.end_capture()
            graph.launch(self.stream)
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            times_s = []
            for _ in range(replays):
                begin.record(self.stream)
                graph.launch(self.stream)
                end.record(self.stream)
                end.synchronize()
                times_s.append(cupy.cuda.get_elapsed_time(begin, end) / 1000 / len(launches))
        return tuple(times_s)

    def copy_bytes_per_s(self) -> float:
        """Return the measured rate of a copy in device memory, bytes read and written."""
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        times_s = []
        with self.stream:
            source = cupy.ones(_COPIED_BYTES // 4, dtype=np.float32)
            target = cupy.empty_like(source)
            for _ in range(8):
                begin.record(self.stream)
                target.data.copy_from_device_async(source.data, source.nbytes, self.stream)
                end.record(self.stream)
                end.synchronize()
                times_s.append(cupy.cuda.get_elapsed_time(begin, end) / 1000)
        return float(2 * _COPIED_BYTES / min(times_s))

    def _require_whole(self) -> None:
        if self._broken:
            raise LaunchError(f"{self._broken}; nothing more can run in this process")

    def _cubin(self, built: BuiltStage) -> Cubin:
        arch = native(self.facts.capability, tuple(built.cubins))
        if arch is None:
            raise NotEmulatedError(
                f"{built.ladder}/{built.stage} was compiled for {', '.join(built.cubins) or 'none'}"
                f", this GPU runs {', '.join(runnable(self.facts.capability))}"
            )
        return built.cubins[arch]

    def _kernel(self, cubin: Cubin, symbol: str) -> Any:  # noqa: ANN401
        key = (hashlib.sha256(cubin.data).hexdigest(), symbol)
        if key not in self._kernels:
            with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
                file.write(cubin.data)
                file.flush()
                kernel = cupy.RawModule(path=file.name).get_function(symbol)
                # CuPy reads the file when something is asked of the kernel.
                _ = kernel.num_regs
            self._kernels[key] = kernel
        return self._kernels[key]

    def _bring_back(self, argument: Buffer, at: PlacedBuffer, expression: str) -> list[Finding]:
        """Copy a buffer back in place, and return what happened to its guard bands."""
        memory = at.memory.get()
        length = argument.data.nbytes
        argument.data.view(np.uint8)[:] = memory[at.start : at.start + length]
        found = damage(memory, at.start, length)
        if found is None:
            return []
        return [
            Finding(
                kind="out-of-bounds write",
                kernel=expression,
                file="",
                line=0,
                count=found.words,
                example=f"{argument.name} at {found.place}",
                subcheck="",
            )
        ]


def _pending(event: Any) -> bool:  # noqa: ANN401
    """Return whether the work before an event still runs; a fault counts as an end."""
    try:
        status = cupy.cuda.runtime.eventQuery(event.ptr)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        status = error.status
    return bool(status == _NOT_READY)
