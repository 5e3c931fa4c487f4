"""The GPU as a device: cubins loaded and launched through CuPy, buffers between guard bands."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, overload

import cupy
import numpy as np

from ci.devices.cublas import WORKSPACE_BYTES, Cublas, Mathematics, column_major
from ci.devices.driver import gpu_facts, native, runnable
from ci.devices.errors import LaunchError, NotEmulatedError, StepLimitError
from ci.devices.guards import damage, guarded
from ci.devices.prepared import (
    DeviceArgument,
    Enqueueable,
    PlacedBuffer,
    PreparedLaunch,
    PreparedSteps,
    Stream,
)
from ci.devices.protocol import Argument, Buffer, Execution, StepLaunch
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
_NAN_BYTE = 0xFF
"""Repeated, it is NaN in every float type."""

Refusal = (cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError)
"""What CuPy raises for an error of the driver or the runtime."""


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
        self._kernels: dict[tuple[bytes, str], Any] = {}
        self._broken = ""
        self._pedantic: tuple[Cublas, object] | None = None

    @property
    def architecture(self) -> str:
        """Return the architecture whose cubins this GPU takes first."""
        return runnable(self.facts.capability)[0]

    def tile(self, built: BuiltStage) -> Mapping[str, int]:
        """Return the tile of the code this GPU runs."""
        return self._cubin(built).tile

    def run(self, built: BuiltStage, steps: Sequence[StepLaunch], *, count: bool) -> Execution:
        """Execute the launches of a stage; see ``ci.devices.protocol.Device.run``.

        Nothing is counted. A guard band is looked at after the last launch, and what happened to
        it is told of the last kernel that has the buffer.
        """
        del count
        buffers = {a.name: a for step in steps for a in step.arguments if isinstance(a, Buffer)}
        placed = {name: self.place(buffer) for name, buffer in buffers.items()}
        users = {}
        for step, launch in zip(
            steps, self.prepare_steps(built, steps, placed).launches, strict=True
        ):
            self.finish(launch)
            expression = self._cubin(built).kernels[step.variant].expression
            users.update({a.name: expression for a in step.arguments if isinstance(a, Buffer)})
        findings = [
            finding
            for name, buffer in buffers.items()
            for finding in self._bring_back(buffer, placed[name], users[name])
        ]
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
        # Of scratch memory only the guard bands are carried over, at both ends of the memory.
        carried = argument.data[:0] if argument.scratch else argument.data
        host, start = guarded(carried, argument.misalignment_bytes)
        inside = argument.data.nbytes - carried.nbytes
        try:
            with self.stream:
                memory = cupy.empty(host.size + inside, dtype=np.uint8)
                memory[:start].set(host[:start], self.stream)
                memory[start : start + inside].fill(_NAN_BYTE)
                memory[start + inside :].set(host[start:], self.stream)
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

    def prepare_steps(
        self, built: BuiltStage, steps: Sequence[StepLaunch], placed: Mapping[str, PlacedBuffer]
    ) -> PreparedSteps:
        """Return the launches of a stage on buffers in place; see ``prepare``.

        Args:
            built: The compiled stage.
            steps: Its launches.
            placed: Buffer name → its place.
        """
        return PreparedSteps(
            launches=tuple(
                self.prepare(
                    built,
                    step.variant,
                    step.launch,
                    [placed[a.name] if isinstance(a, Buffer) else a for a in step.arguments],
                )
                for step in steps
            )
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

    def empty(self, shape: Sequence[int], storage: np.dtype[np.generic]) -> Any:  # noqa: ANN401
        """Return a CuPy array that holds nothing yet."""
        return cupy.empty(tuple(shape), dtype=storage)

    def run_in_place(
        self, built: BuiltStage, steps: Sequence[StepLaunch], arrays: Mapping[str, Any]
    ) -> None:
        """Execute the launches of a stage on CuPy arrays where they are, and wait for the end.

        Args:
            built: The compiled stage.
            steps: Its launches; of a buffer only the name counts.
            arrays: Buffer name → CuPy array, on which other streams may still work.

        Raises:
            LaunchError: The launch was refused, or the kernel faulted.
            StepLimitError: The kernel does not end.
        """
        cupy.cuda.Device().synchronize()
        placed = {
            name: PlacedBuffer(name=name, array=array, memory=array, start=0)
            for name, array in arrays.items()
        }
        for launch in self.prepare_steps(built, steps, placed).launches:
            self.finish(launch)

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
        key = (cubin.data, symbol)
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
        length = argument.data.nbytes
        if argument.scratch:
            memory = np.concatenate(
                [at.memory[: at.start].get(), at.memory[at.start + length :].get()]
            )
            found = damage(memory, at.start, 0)
        else:
            memory = at.memory.get()
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
