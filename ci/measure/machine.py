"""What this machine is and has, as far as a record must say it."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from importlib import metadata

from ci.devices.driver import GpuFacts, runnable
from ci.measure.errors import SetupError
from ci.measure.messages import Surveyed
from ci.results.model import Machine
from ci.static.disassembly import nvdisasm_version

_WHEELS = {
    "nvrtc": "nvidia-cuda-nvrtc",
    "cuda runtime headers": "nvidia-cuda-runtime",
    "cuda-bindings": "cuda-bindings",
    "numpy": "numpy",
}
_GPU_WHEELS = {"cupy": "cupy-cuda13x"}
RUNNER_VARIABLE = "FLOPWATCH_RUNNER"
"""Environment variable that tells two runners of one GPU model apart."""


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


def cuda_machine(
    *, architectures: tuple[str, ...], origin: str, facts: GpuFacts, surveyed: Surveyed
) -> Machine:
    """Return the machine of a run on a GPU: its model and the runner's slot name it.

    A host's name does not: runners come and go, and a history belongs to the kind of machine.

    Args:
        architectures: What was compiled.
        origin: Where flopwatch was loaded from.
        facts: What the driver tells of the GPU.
        surveyed: What was measured on it.

    Raises:
        SetupError: A wheel that is needed is not installed.
    """
    own = runnable(facts.capability)[0]
    return Machine(
        name=cuda_machine_name(facts),
        device="cuda",
        versions={
            **versions(),
            **_wheel_versions(_GPU_WHEELS),
            "cublas": surveyed.cublas,
            "driver": facts.driver or "unknown",
            "driver cuda": f"{facts.cuda // 1000}.{facts.cuda % 1000 // 10}",
        },
        architectures=tuple(dict.fromkeys((*architectures, own))),
        origin=origin,
        peaks={
            "float32_flop_per_s": facts.float32_flop_per_s,
            "copy_bytes_per_s": surveyed.copy_bytes_per_s,
        },
    )


def cuda_machine_name(facts: GpuFacts) -> str:
    """Return the name of a machine with a GPU: model and runner slot, ``nvidia-h200-0``."""
    return f"{_slug(facts.name)}-{_slug(os.environ.get(RUNNER_VARIABLE, '')) or '0'}"


def _slug(text: str) -> str:
    """Return a name as folders take it: lower case, digits, hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def versions() -> dict[str, str]:
    """Return component → version of everything that can change a figure.

    Raises:
        SetupError: A wheel is not installed.
        StaticError: The disassembler is not installed.
    """
    return {
        "flopwatch": own_version(),
        "python": platform.python_version(),
        **_wheel_versions(_WHEELS),
        "nvdisasm": nvdisasm_version(),
    }


def _wheel_versions(wheels: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for component, wheel in wheels.items():
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
