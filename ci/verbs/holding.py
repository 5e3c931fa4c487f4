"""Holds the GPU for the time of a run, so that nothing else is timed with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ci.devices.driver import gpu_facts
from ci.measure.lock import exclusive_gpu
from ci.measure.nvml import GpuWatch


@contextmanager
def held_gpu(device: str) -> Iterator[GpuWatch | None]:
    """Give the GPU as its management library shows it; None on the simulator, which is not held.

    Raises:
        SetupError: Another run holds the GPU, or another process computes on it.
    """
    if device != "cuda":
        yield None
        return
    uuid = gpu_facts().uuid
    watch = GpuWatch(uuid)
    with exclusive_gpu(uuid, watch):
        yield watch
