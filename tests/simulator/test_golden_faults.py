"""One fault planted in a golden kernel at a time: each is found, at its line."""

from __future__ import annotations

import pytest

from tests.simulator.golden_faults import (
    FAULTS,
    LAUNCHES,
    SUITE,
    Fault,
    arguments,
    dynamic_shared_bytes,
)
from tests.simulator.golden_kernels import Program, compiled, launch


def _findings(text: str, kernel: str) -> set[tuple[str, int]]:
    grid, block = LAUNCHES[kernel]
    report = launch(
        compiled("suite.cu") if text == SUITE else Program(text, "suite.cu"),
        kernel,
        arguments(kernel),
        grid=grid,
        block=block,
        dynamic_shared_bytes=dynamic_shared_bytes(kernel),
        count=False,
    )
    return {(hazard.kind, hazard.line) for hazard in report.hazards}


@pytest.mark.parametrize("kernel", LAUNCHES)
def test_nothing_is_found_in_a_right_kernel(kernel: str) -> None:
    assert _findings(SUITE, kernel) == set()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_planted_fault_is_found_at_its_line(fault: Fault) -> None:
    assert SUITE.count(fault.old) == 1
    text = SUITE.replace(fault.old, fault.new)
    lines = text.splitlines()
    expected = {
        (kind, next(number for number, line in enumerate(lines, 1) if piece in line))
        for kind, piece in fault.found
    }
    assert _findings(text, fault.kernel) == expected
