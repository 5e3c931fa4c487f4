"""Counters of whole kernels against Nsight Compute on an H200."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ci.simulator import Buffer, Counts, run
from ci.simulator.merging import merged_accesses
from tests.simulator.golden_kernels import Program, arguments_of, compiled, launch
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


def _static_widths(program: Program, kernel: str) -> Counter[str]:
    """Return the shared-memory accesses of a kernel's PTX after merging, named as in SASS."""
    instructions = program.module.kernels[kernel].instructions
    plan = merged_accesses(instructions, program.widths(kernel))
    found: Counter[str] = Counter()
    for instruction in instructions:
        merged = plan.get(instruction.pc)
        if instruction.opcode not in {"ld", "st"} or "shared" not in instruction.modifiers:
            continue
        if merged is None:
            components = {"v2": 2, "v4": 4}.get(instruction.modifiers[-2], 1)
            width = components * int(instruction.modifiers[-1][1:])
        elif merged.first == instruction.pc:
            width = 8 * merged.width_bytes
        else:
            continue
        name = "LDS" if instruction.opcode == "ld" else "STS"
        found[name if width <= 32 else f"{name}.{width}"] += 1
    return found


# ptxas peels the first round of mm_cpasync's loop, which the PTX does not show.
_PEELED = {"mm_cpasync"}
_KERNELS = [
    *(("suite.cu", _SUITE[number].kernel) for number in range(_FIRST_PATTERN - 1)),
    *(("holdout.cu", kernel) for kernel in sorted({m.kernel for m in _HOLDOUT.values()})),
]


@pytest.mark.parametrize(("source", "kernel"), [k for k in _KERNELS if k[1] not in _PEELED])
def test_merged_accesses_are_those_of_the_machine_code(source: str, kernel: str) -> None:
    program = compiled(source)
    machine_code = {
        opcode: count
        for opcode, count in program.disassembly[kernel].items()
        if opcode.split(".")[0] in {"LDS", "STS"}
    }
    assert _static_widths(program, kernel) == machine_code
