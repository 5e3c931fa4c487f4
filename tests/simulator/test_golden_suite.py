"""Counters of whole kernels against Nsight Compute on an H200."""

from __future__ import annotations

import numpy as np
import pytest

from ci.simulator import Buffer, Counts, run
from tests.simulator.golden_kernels import (
    arguments_of,
    compiled,
    launch,
    shared_accesses,
    static_widths,
)
from tests.simulator.ncu_golden import launches, patterns

_SUITE = launches("suite.csv")
_HOLDOUT = launches("holdout.csv")
_SIDE = 256
_UNPADDED = 15
_FIRST_PATTERN = 16
_DYNAMIC_SHARED_BYTES = {"mm_cpasync": 16_384}


def _values(counts: Counts, names: list[str]) -> dict[str, int]:
    return {name: getattr(counts, name) for name in names}


@pytest.mark.parametrize("number", range(_FIRST_PATTERN), ids=lambda n: f"{n}-{_SUITE[n].kernel}")
def test_a_suite_kernel_counts_what_the_profiler_counted(number: int) -> None:
    measured = _SUITE[number]
    program = compiled("suite.cu", *(["-DPAD0"] if number == _UNPADDED else []))
    report = launch(
        program,
        measured.kernel,
        arguments_of(measured.kernel, _SIDE),
        grid=measured.grid,
        block=measured.block,
        dynamic_shared_bytes=_DYNAMIC_SHARED_BYTES.get(measured.kernel, 0),
    )
    assert len(measured.counters) == 8
    assert _values(report.totals, list(measured.counters)) == measured.counters
    assert report.hazards == ()
    assert sum(report.lines.values(), Counts()) == report.totals


@pytest.mark.parametrize("number", range(72, 78), ids=lambda n: _HOLDOUT[n].kernel)
def test_a_holdout_kernel_counts_what_the_profiler_counted(number: int) -> None:
    measured = _HOLDOUT[number]
    pitch = int(measured.kernel[1:])
    arguments = [np.zeros(32 * pitch, np.float32), np.zeros(32, np.float32)]
    report = launch(
        compiled("holdout.cu"), measured.kernel, arguments, grid=measured.grid, block=measured.block
    )
    assert len(measured.counters) == 5
    assert _values(report.totals, list(measured.counters)) == measured.counters
    assert report.hazards == ()


@pytest.mark.parametrize("number", range(0, 72, 7))
def test_a_holdout_pattern_executed_counts_what_the_profiler_counted(number: int) -> None:
    measured, pattern = _HOLDOUT[number], patterns("holdout_patterns.json")[number]
    offsets = np.where(pattern.active, pattern.address, -1).astype(np.int32)[0]
    arguments = [offsets, np.zeros(8 * pattern.width_bytes, np.float32)]
    report = launch(
        compiled("holdout.cu"),
        measured.kernel,
        arguments,
        grid=measured.grid,
        block=measured.block,
        dynamic_shared_bytes=4096,
    )
    assert _values(report.totals, list(measured.counters)) == measured.counters


def test_without_the_widths_of_the_machine_code_a_tiled_product_shows_a_third_too_many() -> None:
    measured = next(m for m in _SUITE.values() if m.kernel == "mm_tiled16")
    buffers = [
        Buffer(name="operand", data=argument) if isinstance(argument, np.ndarray) else argument
        for argument in arguments_of(measured.kernel, _SIDE)
    ]
    report = run(
        compiled("suite.cu").module,
        measured.kernel,
        grid=measured.grid,
        block=measured.block,
        arguments=buffers,
    )
    wavefronts = measured.counters["shared_load_wavefronts"]
    assert 3 * report.totals.shared_load_wavefronts == 4 * wavefronts


# ptxas peels the first round of mm_cpasync's loop, which the PTX does not show.
_PEELED = {"mm_cpasync"}
_KERNELS = [
    *(("suite.cu", _SUITE[number].kernel) for number in range(_FIRST_PATTERN - 1)),
    *(("holdout.cu", kernel) for kernel in sorted({m.kernel for m in _HOLDOUT.values()})),
]


@pytest.mark.parametrize(("source", "kernel"), [k for k in _KERNELS if k[1] not in _PEELED])
def test_merged_accesses_are_those_of_the_machine_code(source: str, kernel: str) -> None:
    program = compiled(source)
    assert static_widths(program, kernel) == shared_accesses(program, kernel)
