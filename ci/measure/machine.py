"""What this machine is and has, as far as a record must say it."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

from ci.measure.errors import SetupError
from ci.results.model import Machine

_WHEELS = {
    "nvrtc": "nvidia-cuda-nvrtc",
    "cuda runtime headers": "nvidia-cuda-runtime",
    "cuda-bindings": "cuda-bindings",
    "nvdisasm": "nvidia-cuda-nvdisasm",
    "numpy": "numpy",
}


def simulator_machine(*, architectures: tuple[str, ...], origin: str) -> Machine:
    """Return the machine of a run without a GPU. It is the same everywhere: counts are exact.

    Raises:
        SetupError: A wheel that compiling needs is not installed.
    """
    return Machine(
        name="simulator",
        device="simulator",
        versions=versions(),
        architectures=architectures,
        origin=origin,
    )


def versions() -> dict[str, str]:
    """Return component → version of everything that can change a figure.

    Raises:
        SetupError: A wheel is not installed.
    """
    found = {"flopwatch": own_version(), "python": platform.python_version()}
    for component, wheel in _WHEELS.items():
        try:
            found[component] = metadata.version(wheel)
        except metadata.PackageNotFoundError as error:
            msg = (
                f"the package {wheel} is not installed in {sys.prefix} "
                "(pip install --editable . in the checkout brings everything)"
            )
            raise SetupError(msg) from error
    return found


def own_version() -> str:
    """Return flopwatch's version, ``uninstalled`` where it runs from a bare checkout."""
    try:
        return metadata.version("flopwatch")
    except metadata.PackageNotFoundError:
        return "uninstalled"
