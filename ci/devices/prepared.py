"""Launches of which everything is decided, and the buffers they work on, in device memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernels.spec import Launch


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


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedSteps:
    """The launches of a stage, of which everything is decided."""

    launches: tuple[PreparedLaunch, ...]

    def enqueue(self, stream: Stream) -> None:
        """Put the launches on a stream, which may be capturing, in order."""
        for launch in self.launches:
            launch.enqueue(stream)
