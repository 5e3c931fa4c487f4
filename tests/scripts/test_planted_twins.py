"""The kernels of the planted faults' second part are right as long as nothing is planted."""

from __future__ import annotations

import pytest

from ci.results.model import Status
from scripts.planted.catalogue import Planted
from scripts.planted.own import OWN
from scripts.planted.twins import KERNELS, TWINS, check_twin


def test_every_kernel_is_declared_and_broken_at_least_once() -> None:
    on_disk = {path.relative_to(KERNELS).as_posix() for path in KERNELS.rglob("*.cu")}
    assert set(TWINS) == on_disk == {planted.source for planted in OWN}


@pytest.mark.parametrize("source", TWINS)
def test_a_kernel_without_a_fault_is_right_and_gives_no_finding(source: str) -> None:
    checked = check_twin(KERNELS, source)
    assert checked.status is Status.PASSED, checked.reason
    assert len(checked.subchecks) >= 4


@pytest.mark.parametrize("planted", OWN, ids=lambda planted: planted.name)
def test_an_edit_changes_one_place(planted: Planted) -> None:
    assert (KERNELS / planted.source).read_text(encoding="utf-8").count(planted.old) == 1
