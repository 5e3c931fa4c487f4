"""Opens the GPU where there is one; nothing else makes a process load CuPy."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, cast

from ci.devices.cublas import library_path
from ci.devices.driver import GpuFacts, gpu_facts
from ci.devices.errors import NoGpuError

if TYPE_CHECKING:
    from ci.devices.cuda import CudaDevice


def usable_gpu() -> GpuFacts:
    """Return the facts of the GPU if kernels can be run on it, without loading CuPy.

    Raises:
        NoGpuError: There is none, its driver is too old, or a package is not installed.
    """
    facts = gpu_facts()
    if importlib.util.find_spec("cupy") is None:
        raise NoGpuError(
            f"{facts.name} is here, but CuPy is not installed "
            "(pip install 'cupy-cuda13x==14.2.*' nvidia-cublas nvidia-ml-py)"
        )
    library_path()
    return facts


def open_cuda() -> CudaDevice:
    """Return the GPU as a device, for the rest of this process.

    Raises:
        NoGpuError: As for ``usable_gpu``.
    """
    usable_gpu()
    module = importlib.import_module("ci.devices.cuda")
    return cast("CudaDevice", module.CudaDevice())
