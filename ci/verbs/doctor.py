"""``flopwatch doctor``: what this machine can and cannot do, and why."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

from ci import origin
from ci.devices.errors import NoGpuError
from ci.devices.opening import usable_gpu
from ci.errors import CiError
from ci.measure.errors import MeasureError
from ci.measure.machine import versions
from ci.static.disassembly import nvdisasm_path
from ci.static.errors import StaticError
from ci.verbs.context import cache_folder
from kernels.errors import KernelError
from kernels.nvrtc import toolchain


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """One thing that was looked at."""

    name: str
    good: bool
    told: str
    needed: bool = True
    """Whether the gate without a GPU needs it."""


def run() -> int:
    """Print one line a thing; 2 if the gate cannot run here."""
    gpu = _gpu()
    looks = [
        _look("flopwatch", _origin),
        _look("wheels", _wheels),
        _look("compiler", toolchain),
        _look("disassembler", lambda: str(nvdisasm_path())),
        _git(),
        gpu,
        Look(
            name="processors",
            good=True,
            told=f"{len(os.sched_getaffinity(0))} worker processes at a time",
        ),
        Look(name="compile cache", good=True, told=str(cache_folder())),
    ]
    width = max(len(look.name) for look in looks)
    for look in looks:
        mark = "ok" if look.good else ("missing" if look.needed else "no")
        sys.stdout.write(f"{look.name:{width}}  {mark:7}  {look.told}\n")
    able = all(look.good for look in looks if look.needed)
    sys.stdout.write(
        f"gate and measure run here, {'on' if gpu.good else 'without'} a GPU\n"
        if able
        else "gate and measure cannot run here: see what is missing\n"
    )
    return 0 if able else 2


def _look(name: str, ask: Callable[[], str]) -> Look:
    try:
        return Look(name=name, good=True, told=ask())
    except (CiError, MeasureError, StaticError, KernelError) as error:
        return Look(name=name, good=False, told=str(error))


def _origin() -> str:
    home, kind = origin.loaded_from()
    return f"{kind} in {home}"


def _wheels() -> str:
    return ", ".join(f"{name} {version}" for name, version in versions().items())


def _git() -> Look:
    path = shutil.which("git")
    return Look(
        name="git",
        good=path is not None,
        told=path or "not found: only folders can be compared (apt-get install git)",
        needed=False,
    )


def _gpu() -> Look:
    try:
        facts = usable_gpu()
    except NoGpuError as error:
        told = f"{error}: kernels run on the simulator, nothing is timed"
        return Look(name="GPU", good=False, told=told, needed=False)
    return Look(
        name="GPU",
        good=True,
        told=f"{facts.name}, {facts.uuid}, driver {facts.driver}, {facts.sm_count} SMs, "
        f"{facts.float32_flop_per_s / 1e12:.1f} TFLOP/s float32 at "
        f"{facts.max_sm_clock_hz / 1e6:.0f} MHz",
        needed=False,
    )
