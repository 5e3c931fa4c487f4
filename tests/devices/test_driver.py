"""Which cubins a GPU takes, and its peak; asking for a GPU where there is none is refused."""

from __future__ import annotations

import pytest

from ci.devices.driver import GpuFacts, gpu_facts, native, runnable
from ci.devices.errors import NoGpuError
from ci.devices.opening import open_cuda
from kernels.spec import ARCHITECTURES


@pytest.mark.parametrize(
    ("capability", "architectures"),
    [
        ((9, 0), ("sm_90", "sm_90a")),
        ((8, 9), ("sm_89", "sm_86", "sm_80")),
        ((8, 6), ("sm_86", "sm_80")),
        ((7, 5), ("sm_75",)),
        ((10, 0), ("sm_100a",)),
        ((10, 3), ("sm_103a",)),
        ((12, 1), ("sm_120",)),
    ],
)
def test_a_gpu_runs_its_own_code_and_older_code_of_its_generation(
    capability: tuple[int, int], architectures: tuple[str, ...]
) -> None:
    assert runnable(capability) == architectures


def test_a_stage_runs_as_plain_code_unless_it_declares_the_specific_one_only() -> None:
    assert native((9, 0), ARCHITECTURES) == "sm_90"
    assert native((9, 0), ("sm_90a",)) == "sm_90a"
    assert native((8, 0), ("sm_90a",)) is None


def test_the_peak_of_an_h200_is_its_units_times_its_clock() -> None:
    facts = GpuFacts(
        name="NVIDIA H200",
        uuid="GPU-0",
        driver="580.159.04",
        cuda=13000,
        capability=(9, 0),
        sm_count=132,
        max_sm_clock_hz=1_980_000_000,
        l2_bytes=60 << 20,
    )
    assert facts.float32_flop_per_s == pytest.approx(66.9e12, rel=1e-3)


def test_a_machine_without_a_driver_says_so() -> None:
    try:
        gpu_facts()
    except NoGpuError as error:
        assert "NVIDIA driver" in str(error)  # noqa: PT017
        with pytest.raises(NoGpuError):
            open_cuda()
    else:
        pytest.skip("this machine has a GPU")
