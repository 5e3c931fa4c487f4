"""Launches small CUDA kernels and says at which lines hazards were found."""

from __future__ import annotations

from typing import Any

import numpy as np

from ci.simulator import Buffer, Report, run
from tests.simulator.cuda_text import module_of

MARK = "// FOUND"
"""Ends the line of a source at which a hazard must be found."""
HEAD = 'extern "C" __global__ void '

Argument = np.ndarray[Any, Any] | np.generic | Buffer


def launched(
    source: str,
    *arguments: Argument,
    grid: int = 1,
    block: int = 32,
    dynamic_shared_bytes: int = 0,
) -> Report:
    """Run the kernel ``k`` of a CUDA text; arrays are named ``p0``, ``p1`` and so on."""
    return run(
        module_of(source),
        "k",
        grid=(grid, 1, 1),
        block=(block, 1, 1),
        arguments=[
            Buffer(name=f"p{number}", data=argument)
            if isinstance(argument, np.ndarray)
            else argument
            for number, argument in enumerate(arguments)
        ],
        dynamic_shared_bytes=dynamic_shared_bytes,
        count=False,
    )


def seen(report: Report) -> set[tuple[str, int]]:
    """Return kind and line of each hazard."""
    assert {hazard.file for hazard in report.hazards} <= {"k.cu"}
    return {(hazard.kind, hazard.line) for hazard in report.hazards}


def planted(source: str, *kinds: str) -> set[tuple[str, int]]:
    """Return what must be found: these kinds at each marked line."""
    lines = [n for n, line in enumerate(source.splitlines(), 1) if line.rstrip().endswith(MARK)]
    assert lines
    return {(kind, line) for kind in kinds for line in lines}


def ints(count: int) -> np.ndarray[Any, Any]:
    """Return zeros for a kernel to write."""
    return np.zeros(count, np.int32)
