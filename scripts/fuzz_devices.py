"""Runs random kernels, and stages at random shapes, on two devices and looks for a difference.

``python -m scripts.fuzz_devices --device cuda --seconds 60 --out FOLDER`` compares the GPU, the
simulator and NumPy; with ``--device simulator`` the simulator and NumPy. It prints each
disagreement with its seed and the smallest program that still shows it, writes ``fuzz.json``, and
returns 1 if there is one.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ci.devices.errors import DeviceError
from ci.devices.protocol import Buffer, Device, StepLaunch
from ci.devices.simulator import SimulatorDevice
from kernels.build import BuiltKernel, BuiltStage, Cubin
from kernels.nvrtc import compile_text
from kernels.spec import Launch
from scripts.fuzz.program import BLOCKS, THREADS, Program, evaluate, generate, inputs, source
from scripts.fuzz.shapes import ShapeFuzz
from scripts.golden.model import Bits

_OPTIONS = ("--std=c++17", "--fmad=false")
"""Contracted sums would leave the rounding to the compiler's taste."""
_BATCH = 25
"""Kernels of one compilation."""
_STAGES = 4
"""Stages that run at a random shape after each batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Disagreement:
    """A program whose results differ."""

    seed: int
    devices: str
    """Which two differ."""
    argument: str
    """The first array that differs, with the place and both values; or what went wrong."""
    source: str
    """The smallest program with a difference."""


def main(words: Sequence[str] | None = None) -> int:
    """Fuzz for a while; 1 if devices disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "simulator"), required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    devices: list[Device] = [SimulatorDevice({})]
    architecture = ""
    if options.device == "cuda":
        cuda = importlib.import_module("ci.devices.cuda").CudaDevice()
        architecture = cuda.architecture
        devices.append(cuda)
    fuzz = KernelFuzz(devices, architecture)
    shapes = ShapeFuzz(devices, architecture)
    deadline = time.monotonic() + options.seconds
    seed = options.seed
    while time.monotonic() < deadline:
        fuzz.run(range(seed, seed + _BATCH))
        seed += _BATCH
        shapes.run(seed, _STAGES, deadline)
    document = {
        "devices": [device.name for device in devices],
        "seeds": [options.seed, seed],
        "kernels": seed - options.seed,
        "shapes": shapes.launches,
        "not_emulated": sorted(shapes.not_emulated),
        "disagreements": [asdict(each) for each in fuzz.found] + shapes.found,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    (options.out / "fuzz.json").write_text(text, encoding="utf-8")
    count = len(fuzz.found) + len(shapes.found)
    print(f"{document['kernels']} kernels, {shapes.launches} shapes, {count} disagreements")
    return int(count > 0)


class KernelFuzz:
    """Runs programs on devices and keeps those that disagree."""

    def __init__(
        self,
        devices: Sequence[Device],
        architecture: str = "",
        spoil: Callable[[str], str] = str,
    ) -> None:
        """Start with nothing found.

        Args:
            devices: What runs the kernels.
            architecture: Of the machine code; empty if no device needs any.
            spoil: Applied to the PTX before it runs; a test plants a wrong instruction with it.
        """
        self._devices, self._architecture, self._spoil = devices, architecture, spoil
        self.found: list[Disagreement] = []

    def run(self, seeds: Sequence[int]) -> None:
        """Run the programs of some seeds, compiled together."""
        programs = {seed: generate(seed) for seed in seeds}
        built = self._build(programs)
        for seed, program in programs.items():
            if self._difference(built, seed, program):
                self._report(seed, program)

    def _report(self, seed: int, program: Program) -> None:
        smallest = shrink(
            program, lambda p: bool(self._difference(self._build({seed: p}), seed, p))
        )
        difference = self._difference(self._build({seed: smallest}), seed, smallest)
        devices, argument = difference or ("nothing", "it agrees when run again")
        text = source(smallest, f"fuzz_{seed}")
        found = Disagreement(seed=seed, devices=devices, argument=argument, source=text)
        self.found.append(found)
        print(f"seed {seed}: {devices}: {argument}\n{text}", flush=True)

    def _build(self, programs: Mapping[int, Program]) -> BuiltStage:
        text = "".join(source(program, f"fuzz_{seed}") for seed, program in programs.items())
        ptx = compile_text(text, "fuzz.cu", arch="compute_80", options=_OPTIONS, expressions=())
        kernels = {
            str(seed): BuiltKernel(
                variant=str(seed), expression=f"fuzz_{seed}", symbol=f"fuzz_{seed}"
            )
            for seed in programs
        }
        cubins = {}
        if self._architecture:
            arch = self._architecture
            machine = compile_text(text, "fuzz.cu", arch=arch, options=_OPTIONS, expressions=())
            cubins[arch] = Cubin(arch=arch, data=machine.data, log="", kernels=kernels, tile={})
        return BuiltStage(
            ladder="fuzz", stage="fuzz", source_digest="", text=text,
            ptx=self._spoil(ptx.data.decode()), ptx_kernels=kernels, cubins=cubins, tile={},
        )  # fmt: skip

    def _difference(self, built: BuiltStage, seed: int, program: Program) -> tuple[str, str] | None:
        """Return which devices differ and where; None if they agree."""
        results = {"numpy": evaluate(program, inputs(seed))}
        launch = Launch(grid=(BLOCKS, 1, 1), block=(THREADS, 1, 1), dynamic_shared_bytes=0)
        for device in self._devices:
            given = inputs(seed)
            buffers = tuple(Buffer(name=name, data=data) for name, data in given.items())
            step = StepLaunch(variant=str(seed), launch=launch, arguments=buffers)
            try:
                execution = device.run(built, [step], count=False)
            except DeviceError as error:
                return device.name, str(error)
            if execution.findings:
                return device.name, str(execution.findings[0])
            results[device.name] = given
        names = list(results)
        for one, other in itertools.pairwise(names):
            place = first_difference(results[one], results[other])
            if place:
                return f"{one} and {other}", place
        return None


def first_difference(one: Mapping[str, Bits], other: Mapping[str, Bits]) -> str:
    """Return array, place and both values of the first difference; a NaN equals a NaN."""
    for name, mine in one.items():
        theirs = other[name]
        differs = mine.view(np.uint32) != theirs.view(np.uint32)
        if mine.dtype.kind == "f":
            differs &= ~(np.isnan(mine) & np.isnan(theirs))
        if differs.any():
            at = int(np.argmax(differs))
            return f"{name}[{at}]: {mine[at]!r} and {theirs[at]!r}, {differs.sum()} differ"
    return ""


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Return a program that still fails, and no longer without any one of its statements."""
    position = 0
    while position < len(program):
        shorter = program[:position] + program[position + 1 :]
        if fails(shorter):
            program = shorter
        else:
            position += 1
    return program


if __name__ == "__main__":
    sys.exit(main())
