"""Baselines: every ladder's is known, and each computes on a GPU what its ladder says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import kernels
from ci.check.contents import place_operands
from ci.check.judge import judge, remember
from ci.check.launch import output_of
from ci.check.plan import plain
from ci.check.references import trusted_reference
from ci.devices.baselines import BASELINES, Baselines, OnOperands
from ci.devices.errors import NoBaselineError, NoGpuError
from ci.devices.opening import open_cuda
from ci.devices.protocol import Buffer
from kernels.operands import Matrix
from kernels.spec import Access, Ladder, Role
from kernels.suite import load_suite

if TYPE_CHECKING:
    from ci.devices.cuda import CudaDevice

LADDERS = {ladder.name: ladder for ladder in load_suite(Path(kernels.__file__).parent).ladders}
SIZES = [
    pytest.param(ladder, size.as_dict(), id=f"{ladder.name}[{size.label}]")
    for ladder in LADDERS.values()
    for size in ladder.problem.sizes
    if size.role is Role.CHECK and ladder.problem.baseline not in ("", "copy")
]


@pytest.mark.parametrize("ladder", LADDERS.values(), ids=lambda ladder: ladder.name)
def test_the_baseline_a_ladder_names_is_known(ladder: Ladder) -> None:
    assert ladder.problem.baseline in {"", *BASELINES}


def test_every_baseline_has_a_ladder() -> None:
    assert set(BASELINES) <= {ladder.problem.baseline for ladder in LADDERS.values()}


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    try:
        return open_cuda()
    except NoGpuError as error:
        pytest.skip(str(error))


def replayed(
    device: CudaDevice, ladder: Ladder, size: dict[str, int], matrices: dict[str, Matrix]
) -> None:
    """Run a ladder's baseline from a graph, and bring its result back."""
    problem = ladder.problem
    placed = {
        operand.name: device.place(
            Buffer(
                name=operand.name,
                data=matrices[operand.name].buffer(),
                scratch=operand.access is Access.SCRATCH,
            )
        )
        for operand in problem.operands
    }
    scalars = {
        name: levels[0] for name, levels in trusted_reference(problem.reference).scalars.items()
    }
    on = OnOperands(size=size, matrices=matrices, placed=placed, scalars=scalars)
    try:
        prepared = Baselines(device).prepare(problem.baseline, on)
    except NoBaselineError as error:
        pytest.skip(str(error))
    assert min(device.replay_times([prepared] * 3, 2)) > 0
    output = output_of(problem).name
    matrices[output].buffer()[...] = placed[output].fetch()


@pytest.mark.gpu
@pytest.mark.parametrize(("ladder", "size"), SIZES)
def test_a_baseline_computes_what_its_ladder_says(
    ladder: Ladder, size: dict[str, int], device: CudaDevice
) -> None:
    problem = ladder.problem
    reference = trusted_reference(problem.reference)
    scalars = {name: levels[0] for name, levels in reference.scalars.items()}
    combination = plain(problem, size, scalars)
    matrices = place_operands(problem, reference, combination)
    before = remember(problem, matrices)
    replayed(device, ladder, size, matrices)
    tiles = dict.fromkeys(problem.axes, 32)
    judged = judge(problem, reference, combination, tiles=tiles, matrices=matrices, before=before)
    assert judged.passed, judged.detail


@pytest.mark.gpu
def test_the_copy_moves_every_byte(device: CudaDevice) -> None:
    problem = LADDERS["transpose"].problem
    size = {"R": 127, "C": 65}
    reference = trusted_reference(problem.reference)
    matrices = place_operands(problem, reference, plain(problem, size, {}))
    replayed(device, LADDERS["transpose"], size, matrices)
    np.testing.assert_array_equal(matrices["Y"].buffer(), matrices["X"].buffer())


@pytest.mark.gpu
def test_an_unknown_baseline_is_none_and_named(device: CudaDevice) -> None:
    on = OnOperands(size={}, matrices={}, placed={}, scalars={})
    with pytest.raises(NoBaselineError, match="'rocblas' is unknown, expected one of cublas_sgemm"):
        Baselines(device).prepare("rocblas", on)
    with pytest.raises(NoBaselineError, match="the problem has no baseline"):
        Baselines(device).prepare("", on)
