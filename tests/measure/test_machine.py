"""What a record says of the GPU it ran on."""

from __future__ import annotations

import pytest

from ci.devices.driver import GpuFacts
from ci.measure import machine
from ci.measure.messages import Surveyed

H200 = GpuFacts(
    name="NVIDIA H200",
    uuid="GPU-3d0c63d6-0000-0000-0000-000000000000",
    driver="580.159.04",
    cuda=13000,
    capability=(9, 0),
    sm_count=132,
    max_sm_clock_hz=1_980_000_000,
    l2_bytes=60 << 20,
)
SURVEYED = Surveyed(copy_bytes_per_s=4.3e12, cublas="13.1.0")


@pytest.fixture(autouse=True)
def cupy_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another wheel stand for CuPy's, which GPU machines alone have."""
    monkeypatch.setattr(machine, "_GPU_WHEELS", {"cupy": "numpy"})


@pytest.mark.parametrize(
    ("runner", "name"),
    [("", "nvidia-h200-0"), ("2", "nvidia-h200-2"), ("Lab B/4", "nvidia-h200-lab-b-4")],
)
def test_model_and_runner_slot_name_the_machine(
    monkeypatch: pytest.MonkeyPatch, runner: str, name: str
) -> None:
    monkeypatch.setenv(machine.RUNNER_VARIABLE, runner)
    made = machine.cuda_machine(
        architectures=("sm_90",), origin="checkout", facts=H200, surveyed=SURVEYED
    )
    assert made.name == name
    assert made.device == "cuda"


def test_the_machine_tells_its_versions_its_code_and_its_roofs() -> None:
    made = machine.cuda_machine(
        architectures=("sm_80",), origin="checkout", facts=H200, surveyed=SURVEYED
    )
    assert made.architectures == ("sm_80", "sm_90")
    assert made.versions["driver"] == "580.159.04"
    assert made.versions["driver cuda"] == "13.0"
    assert made.versions["cublas"] == "13.1.0"
    assert made.versions["nvdisasm"][0].isdigit()
    assert made.peaks["float32_flop_per_s"] == pytest.approx(66.9e12, rel=1e-3)
    assert made.peaks["copy_bytes_per_s"] == 4.3e12
