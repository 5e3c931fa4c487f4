"""Reads the profiler's tables in ``tests/data/ncu-h200``."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

GOLDEN = Path(__file__).parents[1] / "data" / "ncu-h200"

_COUNTERS = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "global_load_requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "global_load_sectors",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "global_store_requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "global_store_sectors",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": "shared_load_wavefronts",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": "shared_load_conflicts",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": "shared_store_wavefronts",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": "shared_store_conflicts",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One launch that was profiled."""

    kernel: str
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    counters: Mapping[str, int]
    """Field of Counts → value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """One warp's load from shared memory."""

    width_bytes: int
    address: NDArray[np.int64]
    """(1, 32) byte offsets."""
    active: NDArray[np.bool_]
    """(1, 32)."""


def launches(table: str) -> dict[int, Measured]:
    """Return the launches of ``suite.csv`` or ``holdout.csv`` by their ID."""
    found: dict[int, Measured] = {}
    counters: dict[int, dict[str, int]] = {}
    with (GOLDEN / table).open(newline="") as file:
        for row in csv.DictReader(file):
            launch = int(row["ID"])
            values = counters.setdefault(launch, {})
            found[launch] = Measured(
                kernel=row["Kernel Name"],
                block=_triple(row["Block Size"]),
                grid=_triple(row["Grid Size"]),
                counters=values,
            )
            if row["Metric Name"] in _COUNTERS:
                value = int(row["Metric Value"].replace(",", ""))
                values[_COUNTERS[row["Metric Name"]]] = value
    return found


def patterns(file: str) -> list[Pattern]:
    """Return the loads of ``patterns.json`` or ``holdout_patterns.json``, in launch order."""
    return [
        Pattern(
            width_bytes=width_bytes,
            address=np.maximum(np.array([offsets], dtype=np.int64), 0),
            active=np.array([offsets]) >= 0,
        )
        for width_bytes, offsets, *_ in json.loads((GOLDEN / file).read_text())
    ]


def _triple(text: str) -> tuple[int, int, int]:
    x, y, z = (int(part) for part in text.strip("()").split(","))
    return x, y, z
