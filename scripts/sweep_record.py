"""The record of a size sweep: square products on the CPU, by stages and by cuBLAS."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ci.results import codec
from ci.results.store import write_text

SIZES = (256, 512, 1024, 2048, 4096)
CPU = "CPU"
CUBLAS = "cuBLAS"
PLACE = Path("tables") / "size_sweep.json"
"""Below the folder of records; run records lie one folder deeper."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepRow:
    """One routine at one size."""

    size: int
    """M = N = K."""
    routine: str
    """``CPU``, the id of a stage, or ``cuBLAS``."""
    seconds: float
    """Median of the samples (s)."""
    samples: int
    error: float
    """Largest difference from the CPU's result, over what the tolerance accepts of both: at most 1.
    0 for the CPU itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeSweep:
    """All of them, from one process on one machine."""

    started: str
    """UTC, ISO 8601."""
    commit: str
    gpu: str
    cpu: str
    """Model and number of threads."""
    cpu_library: str
    """What multiplies on the CPU, with its version."""
    float32_flop_per_s: float
    """Peak of the GPU outside the tensor cores, at the highest clock."""
    rows: tuple[SweepRow, ...]


def save(records: Path, sweep: SizeSweep) -> Path:
    """Write a sweep below the folder of records and return its path.

    Raises:
        RecordError: The sweep breaks its own declaration, such as a NaN.
        OSError: The folder cannot be written.
    """
    path = records / PLACE
    write_text(path, json.dumps(codec.encode(sweep), indent=1, allow_nan=False) + "\n")
    return path


def load(records: Path) -> SizeSweep | None:
    """Return the sweep below the folder of records; None if there is none.

    Raises:
        RecordError: The file is no sweep.
    """
    path = records / PLACE
    if not path.is_file():
        return None
    document = codec.parse(path.read_text(encoding="utf-8"), str(path))
    return codec.decode(document, SizeSweep, str(path))
