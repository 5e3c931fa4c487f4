"""The kernels that compute-sanitizer and the simulator are compared on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.simulator.golden_faults import (
    FAULTS,
    LAUNCHES,
    SUITE,
    arguments,
    dynamic_shared_bytes,
)

_EXTRA = Path(__file__).with_name("extra.cu")
_RIGHT = "right"
_UNWRITTEN = frozenset({"unwritten_global"})
"""Kernels whose first array is allocated and never written."""

Argument = NDArray[Any] | np.generic


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Subject:
    """A kernel and its launch."""

    name: str
    """Unique among the subjects."""
    text: str
    file: str
    """What the compiler calls the text, and the findings too."""
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    dynamic_shared_bytes: int
    unwritten: bool
    """Whether the first array is to be left as allocated."""
    planted: bool
    """Whether something is wrong with it."""


def subjects() -> tuple[Subject, ...]:
    """Return all subjects, right ones first."""
    found = (*_golden(), *_extra())
    return tuple(sorted(found, key=lambda subject: subject.planted))


def _golden() -> Iterator[Subject]:
    """Give the golden kernels as they are, and with each planted fault."""
    texts = [(f"{kernel} as it is", kernel, SUITE) for kernel in LAUNCHES]
    texts += [
        (f"{fault.kernel}: {fault.name}", fault.kernel, SUITE.replace(fault.old, fault.new))
        for fault in FAULTS
    ]
    for name, kernel, text in texts:
        grid, block = LAUNCHES[kernel]
        yield Subject(
            name=name,
            text=text,
            file="suite.cu",
            kernel=kernel,
            grid=grid,
            block=block,
            arguments=tuple(arguments(kernel)),
            dynamic_shared_bytes=dynamic_shared_bytes(kernel),
            unwritten=False,
            planted=text != SUITE,
        )


def _extra() -> Iterator[Subject]:
    text = _EXTRA.read_text(encoding="utf-8")
    for part in text.split("__global__ void ")[1:]:
        kernel = part.split("(")[0]
        yield Subject(
            name=kernel.replace("_", " "),
            text=text,
            file="extra.cu",
            kernel=kernel,
            grid=(2 if kernel == "race_between_blocks" else 1, 1, 1),
            block=(64, 1, 1),
            arguments=(np.arange(64, dtype=np.float32), np.zeros(64, np.float32)),
            dynamic_shared_bytes=0,
            unwritten=kernel in _UNWRITTEN,
            planted=not kernel.startswith(_RIGHT),
        )
