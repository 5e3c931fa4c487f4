"""What the NVIDIA driver tells of this machine's first GPU, asked without CuPy and a context."""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci.devices.errors import NoGpuError
from kernels.spec import ARCHITECTURES

NEEDED_CUDA = 13000
"""Oldest CUDA version, as cuDriverGetVersion writes it, that loads cubins of NVRTC 13."""

_FMA_LANES_PER_SM = 128
"""float32 units of a multiprocessor, from 8.6 on and on 9.0."""
_FMA_LANES_OF = {(7, 5): 64, (8, 0): 64}
"""Capability → float32 units of a multiprocessor, where it is another number.

Source: CUDA C++ Programming Guide, table of throughputs of native arithmetic instructions."""

_CLOCK_KHZ, _SM_COUNT, _L2_BYTES, _MAJOR, _MINOR = 13, 16, 38, 75, 76
"""CUdevice_attribute of the driver interface."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuFacts:
    """A GPU as found; nothing of it is set by flopwatch."""

    name: str
    """As the driver gives it: ``NVIDIA H200``."""
    uuid: str
    """``GPU-`` and 36 characters; what NVML and the lock know it by."""
    driver: str
    """Version of the driver, ``580.159.04``; empty if the system does not tell."""
    cuda: int
    """CUDA version of the driver: 13000 is 13.0."""
    capability: tuple[int, int]
    sm_count: int
    max_sm_clock_hz: int
    l2_bytes: int

    @property
    def float32_flop_per_s(self) -> float:
        """Return the peak of multiply-adds outside the tensor cores, at the highest clock."""
        lanes = _FMA_LANES_OF.get(self.capability, _FMA_LANES_PER_SM)
        return float(self.sm_count * lanes * 2 * self.max_sm_clock_hz)


def gpu_facts() -> GpuFacts:
    """Return what the driver tells of its first GPU.

    Raises:
        NoGpuError: There is none, or its driver is older than CUDA 13.
    """
    driver = _Driver()
    cuda = driver.number("cuDriverGetVersion")
    version = driver_version()
    if cuda < NEEDED_CUDA:
        raise NoGpuError(
            f"the NVIDIA driver {version} knows CUDA {cuda // 1000}.{cuda % 1000 // 10}, expected "
            "13.0 or newer (update the driver to 580 or newer)"
        )
    if driver.number("cuDeviceGetCount") == 0:
        raise NoGpuError("the NVIDIA driver shows no GPU (is CUDA_VISIBLE_DEVICES empty?)")
    device = driver.number("cuDeviceGet", 0)
    return GpuFacts(
        name=driver.name(device),
        uuid=driver.uuid(device),
        driver=version,
        cuda=cuda,
        capability=(driver.attribute(_MAJOR, device), driver.attribute(_MINOR, device)),
        sm_count=driver.attribute(_SM_COUNT, device),
        max_sm_clock_hz=1000 * driver.attribute(_CLOCK_KHZ, device),
        l2_bytes=driver.attribute(_L2_BYTES, device),
    )


def driver_version() -> str:
    """Return the version of the NVIDIA kernel driver, empty if the system does not tell."""
    version = Path("/sys/module/nvidia/version")
    return version.read_text(encoding="utf-8").strip() if version.exists() else ""


def runnable(capability: tuple[int, int]) -> tuple[str, ...]:
    """Return the architectures whose cubins a GPU runs, best first.

    The GPU's own one leads, plain before architecture-specific; older ones of its generation
    follow, which run too (CUDA C++ Programming Guide, binary compatibility).
    """
    major, minor = capability
    own = f"sm_{major}{minor}"
    older = [f"sm_{major}{lower}" for lower in range(minor - 1, -1, -1)]
    return tuple(arch for arch in (own, f"{own}a", *older) if arch in ARCHITECTURES)


def native(capability: tuple[int, int], declared: Sequence[str]) -> str | None:
    """Return the architecture a GPU runs a stage as, None if the stage declares none it can."""
    return next((arch for arch in runnable(capability) if arch in declared), None)


class _Driver:
    """The few calls of libcuda that need no context."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NoGpuError(
                "this machine has no NVIDIA driver (libcuda.so.1 is absent)"
            ) from error
        self._call("cuInit", 0)

    def number(self, function: str, *arguments: int) -> int:
        """Return the one number a function gives."""
        value = ctypes.c_int()
        self._call(function, ctypes.byref(value), *arguments)
        return value.value

    def attribute(self, attribute: int, device: int) -> int:
        return self.number("cuDeviceGetAttribute", attribute, device)

    def name(self, device: int) -> str:
        text = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", text, len(text), device)
        return text.value.decode(errors="replace")

    def uuid(self, device: int) -> str:
        raw = (ctypes.c_ubyte * 16)()
        self._call("cuDeviceGetUuid_v2", ctypes.byref(raw), device)
        return f"GPU-{uuid.UUID(bytes=bytes(raw))}"

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status != 0:
            raise NoGpuError(
                f"{function} of the NVIDIA driver answered error {status}, expected 0 "
                "(nvidia-smi tells whether the GPU is well)"
            )
