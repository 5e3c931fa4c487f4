"""What every running verb needs first: the checkout, the device, the selection, the cache."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci import origin
from ci.devices.driver import driver_version, gpu_facts
from ci.devices.errors import NoGpuError
from ci.devices.opening import usable_gpu
from ci.errors import UsageError
from ci.measure.machine import cuda_machine, simulator_machine
from ci.measure.session import Plan
from ci.measure.sides import Git, Side
from ci.measure.survey import survey
from ci.results.model import Machine, RunRecord
from ci.select import selector
from kernels.build import WIDTHS_ARCH
from kernels.spec import ARCHITECTURES


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What the user asked of a verb that runs kernels."""

    suite: str
    device: str
    arch: str
    selection: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What a verb that runs kernels works with."""

    here: Path
    """Root of the checkout in use."""
    suite: Path
    """The suite's folder, relative to a checkout's root."""
    plan: Plan
    machine: Machine


def prepare(request: Request) -> Context:
    """Return the context of a run, or refuse it before anything is started.

    Raises:
        OriginError: Parts of flopwatch come from different places.
        UsageError: The device is not here, or an argument does not fit.
        SetupError: A wheel is missing.
    """
    _, loaded = origin.loaded_from()
    device = choose_device(request.device)
    architectures = choose_architectures(request.arch)
    here = checkout_root()
    suite = Path(request.suite)
    if suite.is_absolute():
        here, suite = suite.parent, Path(suite.name)
    return Context(
        here=here,
        suite=suite,
        plan=Plan(
            device=device,
            architectures=architectures,
            cache=cache_folder(),
            selects=selector(request.selection),
            selection=request.selection,
        ),
        machine=describe_machine(device, architectures, loaded),
    )


def require_suite(sides: Sequence[Side]) -> None:
    """Refuse a suite's folder that holds no ladder on any side.

    Raises:
        UsageError: It is not there, or is no suite. One that broke at head is a verdict instead.
    """
    if not any(list(side.suite.glob("*/ladder.py")) for side in sides):
        side = sides[0]
        msg = (
            f"{side.suite} ({side.revision.described}) holds no */ladder.py "
            "(start flopwatch in a checkout, or name the suite's folder with --suite)"
        )
        raise UsageError(msg)


def require_results(record: RunRecord) -> None:
    """Refuse to go on where one side was run and nothing came of it.

    Raises:
        UsageError: The suite does not load, or the selection names no case of this device.
    """
    if record.error:
        raise UsageError(record.error)
    if not record.cases:
        msg = f"-k '{record.selection}' selects no case that runs here (flopwatch list shows them)"
        raise UsageError(msg)


def choose_device(asked: str) -> str:
    """Return the device to run on.

    Raises:
        UsageError: ``cuda`` was asked for and cannot be had.
    """
    if asked == "simulator":
        return asked
    try:
        usable_gpu()
    except NoGpuError as error:
        if asked == "cuda":
            msg = (
                f"--device cuda: this machine has no NVIDIA GPU that can be used: {error} "
                "(--device simulator runs without one)"
            )
            raise UsageError(msg) from error
        if driver_version():
            note(f"kernels run on the simulator: {error}")
        return "simulator"
    return "cuda"


def describe_machine(device: str, architectures: tuple[str, ...], origin: str) -> Machine:
    """Return the machine that records name.

    Raises:
        SetupError: The GPU cannot be opened, or a wheel is missing.
    """
    if device == "simulator":
        return simulator_machine(architectures=architectures, origin=origin)
    return cuda_machine(
        architectures=architectures, origin=origin, facts=gpu_facts(), surveyed=survey()
    )


def choose_architectures(asked: str) -> tuple[str, ...]:
    """Return the architectures to compile for.

    The one the simulator takes its access widths from is always among them.

    Raises:
        UsageError: An architecture is not known.
    """
    if asked == "all":
        return ARCHITECTURES
    named = tuple(dict.fromkeys((*asked.split(","), WIDTHS_ARCH)))
    unknown = [arch for arch in named if arch not in ARCHITECTURES]
    if unknown:
        msg = f"--arch {unknown[0]}: expected all, or some of {', '.join(ARCHITECTURES)}"
        raise UsageError(msg)
    return named


def checkout_root() -> Path:
    """Return the root of the checkout that holds the current folder, or the folder itself."""
    top = Git(Path.cwd()).ask("rev-parse", "--show-toplevel")
    return Path(top) if top else Path.cwd()


def cache_folder() -> Path:
    """Return the folder of the compile cache, by the XDG convention."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "flopwatch"


def ledger_folder() -> Path:
    """Return the folder of the timed gates kept on this machine, by the XDG convention."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    return Path(base) / "flopwatch/gate-runs"


def note(text: str) -> None:
    """Tell the user something, on standard error: standard output is data."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
