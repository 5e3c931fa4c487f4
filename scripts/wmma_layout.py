"""Reads the layout of wmma fragments off a GPU, or off the compiler's machine code.

``python -m scripts.wmma_layout record --out FOLDER`` on a machine with a GPU writes
``wmma-layout.json``; ``… derive --out FOLDER`` writes the same without one, from what NVRTC makes
for sm_80. ``tests/simulator/test_ops_wmma.py`` replays the files on the simulator.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernels.nvrtc import compile_text, toolchain
from scripts.wmma.forms import WARP, Form, Run, all_forms, places, program
from scripts.wmma.machine_code import Warp, disassembled

FILE = "wmma-layout.json"
_OPTIONS = ("--std=c++17",)
_SECTOR_BYTES = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """What one form shows."""

    places: list[list[int]]
    """For each lane, which elements of the matrix it holds, counted row by row."""
    requests: int | None
    """Accesses of the warp to global memory; None where only a profiler could tell."""
    sectors: int | None


def registers_of(form: Form) -> int:
    """Return the 32-bit registers of a lane's fragment."""
    rows, columns = form.shape
    held = rows * columns * form.width_bytes // WARP // 4
    # Operands a and b in half precision take eight registers, whatever they need.
    return 8 if form.kind == "f16" and form.use != "c" else held


def show_all(run: Run) -> dict[str, list[list[int]]]:
    """Return the places of every form."""
    return {form.name: places(form, registers_of(form), run) for form in all_forms()}


def derive() -> dict[str, Shown]:
    """Read every form off the machine code."""
    cubin = compile_text(program(), "wmma.cu", arch="sm_80", options=_OPTIONS, expressions=[])
    code = disassembled(cubin.data)
    traffic: dict[str, tuple[int, int]] = {}

    def run(kernel: str, memory: NDArray[np.uint8], registers: NDArray[np.uint8]) -> None:
        warp = Warp(memory, registers)
        warp.run(code[kernel])
        sectors = sum(len(np.unique(a // _SECTOR_BYTES)) for _, a in warp.accesses)
        traffic[kernel] = len(warp.accesses), sectors

    return {
        name: Shown(places=found, requests=traffic[name][0], sectors=traffic[name][1])
        for name, found in show_all(run).items()
    }


def record() -> tuple[dict[str, Shown], str]:
    """Read every form off the GPU; return also which one that is."""
    cupy = importlib.import_module("cupy")
    from ci.devices.cuda import CudaDevice  # noqa: PLC0415

    facts = CudaDevice().facts
    architecture = f"sm_{facts.capability[0]}{facts.capability[1]}"
    cubin = compile_text(program(), "wmma.cu", arch=architecture, options=_OPTIONS, expressions=[])
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin.data)
        file.flush()
        module = cupy.RawModule(path=file.name)
        kernels = {form.name: module.get_function(form.name) for form in all_forms()}

    def run(kernel: str, memory: NDArray[np.uint8], registers: NDArray[np.uint8]) -> None:
        there = [cupy.asarray(memory), cupy.asarray(registers)]
        kernels[kernel]((1,), (WARP,), tuple(there))
        cupy.cuda.Device().synchronize()
        memory[:], registers[:] = (array.get() for array in there)

    shown = {n: Shown(places=p, requests=None, sectors=None) for n, p in show_all(run).items()}
    return shown, f"{facts.name}, driver {facts.driver}, {architecture}"


def write(path: Path, origin: str, shown: Mapping[str, Shown]) -> None:
    """Write a file with one line a form."""
    day = datetime.now(UTC).date().isoformat()
    head = json.dumps({"origin": origin, "compiler": toolchain(), "date": day})
    lines = [
        f"{json.dumps(name)}: "
        + json.dumps(
            {"requests": form.requests, "sectors": form.sectors, "places": form.places},
            separators=(",", ":"),
        )
        for name, form in shown.items()
    ]
    forms = ",\n".join(lines)
    path.write_text(f'{{"about": {head},\n"forms": {{\n{forms}\n}}}}\n', encoding="utf-8")


def read(path: Path) -> dict[str, Shown]:
    """Return the forms of a file."""
    forms = json.loads(path.read_text(encoding="utf-8"))["forms"]
    return {name: Shown(**form) for name, form in forms.items()}


def main(words: Sequence[str] | None = None) -> int:
    """Record or derive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("record", "derive"))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.verb == "record":
        shown, origin = record()
    else:
        shown, origin = derive(), "machine code for sm_80"
    write(options.out / FILE, origin, shown)
    print(f"{len(shown)} forms, {origin}, written to {options.out / FILE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
