"""How a built stage becomes a simulator device: with what its machine code tells of accesses."""

from __future__ import annotations

from pathlib import Path

from ci.devices.simulator import SimulatorDevice
from ci.static.disassembly import disassemble, machine_accesses
from kernels.build import WIDTHS_ARCH, BuiltStage

SASS_FOLDER = "sass"
"""Folder of disassembled cubins in the compile cache."""


def simulator_for(built: BuiltStage, cache: Path) -> SimulatorDevice:
    """Return a simulator that counts what a stage's machine code would do.

    Args:
        built: The stage; without a cubin of ``WIDTHS_ARCH`` it counts as if nothing was merged.
        cache: Folder of the compile cache.
    """
    cubin = built.cubins.get(WIDTHS_ARCH)
    if cubin is None:
        return SimulatorDevice({})
    found = machine_accesses(disassemble(cubin.data, cache / SASS_FOLDER))
    return SimulatorDevice(
        {variant: found[kernel.symbol] for variant, kernel in cubin.kernels.items()}
    )
