"""A stage and a case on a device: statuses, reasons, merged findings, counted launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from ci.check.plan import plan
from ci.check.references import REFERENCES
from ci.check.run import check_case, check_stage
from ci.devices.errors import DeviceError, LaunchError, NotEmulatedError, StepLimitError
from ci.devices.protocol import Execution, StepLaunch
from ci.results.model import Counters, Finding, Status
from kernels.build import BuiltStage
from tests.check.numpy_gemm import BUILT, LADDER, STAGE, Call, NumpyDevice, right

LAUNCHES = len(plan(LADDER.problem, REFERENCES["gemm_float64"], STAGE, STAGE.tile))
SIZE = {"M": 33, "N": 17, "K": 5}

RACE = Finding(
    kind="read-after-write race",
    kernel="tile<16, 8, 4>",
    file="product/01_tile.cu",
    line=17,
    count=2,
    example="As[3] by thread 5 of block 0",
    subcheck="",
)


def without_beta(call: Call) -> None:
    call.beta = np.float32(0)
    right(call)


@dataclass
class RefusingDevice:
    """Runs some launches, then raises."""

    error: DeviceError
    launches_before: int = 0
    name: str = "refusing"

    def tile(self, built: BuiltStage) -> Mapping[str, int]:
        """Return the stage's own tile."""
        return built.tile

    def run(self, built: BuiltStage, steps: Sequence[StepLaunch], *, count: bool) -> Execution:
        """Run a launch, or raise; see ``ci.devices.protocol.Device.run``."""
        if self.launches_before == 0:
            raise self.error
        self.launches_before -= 1
        return NumpyDevice().run(built, steps, count=count)


REFUSALS = [
    (NotEmulatedError("wgmma at 7"), Status.NOT_EMULATED),
    (LaunchError("2048 threads a block"), Status.LAUNCH_ERROR),
    (StepLimitError("did not end"), Status.TIMEOUT),
]


def test_a_right_stage_passes_with_one_subcheck_a_launch() -> None:
    device = NumpyDevice()
    checked = check_stage(device, BUILT, LADDER, STAGE)
    assert (checked.status, checked.reason, checked.findings) == (Status.PASSED, "", ())
    assert len(checked.subchecks) == len(device.launches) == LAUNCHES
    assert all(count for _, _, count in device.launches)
    assert checked.counters == Counters(global_load_elements=LAUNCHES)
    assert {variant for variant, _, _ in device.launches} == {
        f"A={a},B={b}" for a in ("row", "column") for b in ("row", "column")
    }


def test_a_wrong_stage_is_incorrect_and_says_how_often_and_what() -> None:
    checked = check_stage(NumpyDevice(without_beta), BUILT, LADDER, STAGE)
    failed = [subcheck for subcheck in checked.subchecks if not subcheck.passed]
    assert (checked.status, checked.counters) == (Status.INCORRECT, None)
    assert checked.reason.startswith(f"{len(failed)} of {LAUNCHES} sub-checks failed, the first M=")
    assert "this is the result with beta = 0 instead of 1" in checked.reason


def test_a_finding_makes_right_numbers_incorrect() -> None:
    checked = check_stage(NumpyDevice(findings=(RACE,)), BUILT, LADDER, STAGE)
    assert all(subcheck.passed for subcheck in checked.subchecks)
    assert checked.status is Status.INCORRECT
    assert checked.reason == (
        "read-after-write race at product/01_tile.cu:17: As[3] by thread 5 of block 0"
    )


def test_findings_of_all_launches_are_merged_by_kind_and_line() -> None:
    other = replace(RACE, line=18)
    checked = check_stage(NumpyDevice(findings=(RACE, other, RACE)), BUILT, LADDER, STAGE)
    assert [(f.line, f.count) for f in checked.findings] == [(17, 4 * LAUNCHES), (18, 2 * LAUNCHES)]
    assert {f.subcheck for f in checked.findings} == {checked.subchecks[0].name}
    assert checked.reason.startswith("2 findings, the first ")


@pytest.mark.parametrize(("error", "status"), REFUSALS)
def test_a_device_that_cannot_go_on_decides_the_status(error: DeviceError, status: Status) -> None:
    checked = check_stage(RefusingDevice(error, launches_before=3), BUILT, LADDER, STAGE)
    assert checked.status is status
    assert len(checked.subchecks) == 3
    assert checked.reason.startswith("M=")
    assert checked.reason.endswith(f": {error}")
    case = check_case(RefusingDevice(error), BUILT, LADDER, STAGE, SIZE)
    assert (case.status, case.reason, case.subcheck) == (status, str(error), None)


def test_a_case_is_counted_in_plain_layouts_with_beta_zero() -> None:
    device = NumpyDevice()
    case = check_case(device, BUILT, LADDER, STAGE, SIZE)
    assert (case.status, case.reason) == (Status.PASSED, "")
    assert case.counters is not None
    assert [(variant, count) for variant, _, count in device.launches] == [("A=row,B=row", True)]
    assert case.subcheck is not None
    assert case.subcheck.name == (
        "M=33 N=17 K=5 A=row B=row C=row lda=5 ldb=17 ldc=17 alpha=1 beta=0 random"
    )


def test_a_wrong_case_is_incorrect_with_the_detail_as_reason() -> None:
    def nothing(call: Call) -> None:
        del call

    case = check_case(NumpyDevice(nothing), BUILT, LADDER, STAGE, SIZE)
    assert case.status is Status.INCORRECT
    assert case.reason.startswith("M=33 N=17 K=5")
    assert case.reason.endswith("these elements were not written, they still hold poison")


def test_a_case_outside_the_domain_is_skipped_with_the_stages_reason() -> None:
    stage = replace(STAGE, domain=lambda size: f"M={size['M']} is odd" if size["M"] % 2 else None)
    device = NumpyDevice()
    case = check_case(device, BUILT, LADDER, stage, SIZE)
    assert (case.status, case.reason) == (Status.SKIPPED, "M=33 is odd")
    assert device.launches == []


def test_a_stage_that_takes_no_size_of_the_plan_is_skipped() -> None:
    stage = replace(STAGE, domain=lambda _: "nothing fits")
    checked = check_stage(NumpyDevice(), BUILT, LADDER, stage)
    assert checked.status is Status.SKIPPED
    assert checked.reason
