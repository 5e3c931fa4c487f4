"""The noise ledger pools what stored gates tell of each case."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ci.gate.ledger import NoiseEntry, noise_ledger
from ci.results.model import GateRun
from tests.timed import gate_run, rounds

CASE = "sgemm/01_naive[M=64,N=64,K=64]"
SAME = "a" * 40


def _entry(*runs: GateRun, machine: str = "h200", method_version: int = 1) -> NoiseEntry:
    return noise_ledger(runs, machine=machine, method_version=method_version)[CASE]


def _gate(estimates: list[float], *, day: int = 1) -> GateRun:
    started = f"2025-{1 + day // 28:02}-{1 + day % 28:02}T00:00:00+00:00"
    return gate_run(rounds(CASE, estimates), started=started)


def test_the_variance_is_that_within_gates_whatever_the_change() -> None:
    rng = np.random.default_rng(3)
    screens = rng.normal(0, 0.003, (5, 4))
    runs = [_gate((0.1 * n + row).tolist(), day=n) for n, row in enumerate(screens)]
    entry = _entry(*runs)
    assert entry.degrees_of_freedom == 15
    assert entry.variance == pytest.approx(screens.var(axis=1, ddof=1).mean())
    assert entry.gates == 5


def test_an_entry_is_usable_from_four_gates_on() -> None:
    runs = [_gate([0.0, 0.01, 0.0, 0.01], day=n) for n in range(4)]
    assert math.isnan(_entry(*runs[:3]).usable_variance)
    assert _entry(*runs).usable_variance == pytest.approx(1e-4 / 3)


def test_only_the_screen_counts_unless_both_sides_are_one_commit() -> None:
    """Suspects have more rounds because they looked slow, and their effect is not the point."""
    estimates = np.random.default_rng(1).normal(0.02, 0.004, 12).tolist()
    assert _entry(_gate(estimates)).degrees_of_freedom == 3
    equal = gate_run(rounds(CASE, estimates), head=SAME)
    assert _entry(equal).degrees_of_freedom == 11


def test_only_the_last_thirty_gates_count() -> None:
    loud = [_gate([0.0, 0.1, 0.0, 0.1], day=n) for n in range(5)]
    quiet = [_gate([0.0, 0.01, 0.0, 0.01], day=5 + n) for n in range(30)]
    entry = _entry(*quiet, *loud)
    assert entry.variance == pytest.approx(1e-4 / 3)
    assert entry.degrees_of_freedom == 90
    assert entry.gates == 35


def test_other_machines_and_methods_do_not_count() -> None:
    mine = _gate([0.0, 0.01, 0.0, 0.01])
    elsewhere = gate_run(rounds(CASE, [0.0, 0.5, 0.0, 0.5]), machine="a100")
    otherwise = gate_run(rounds(CASE, [0.0, 0.5, 0.0, 0.5]), method_version=2)
    assert _entry(mine, elsewhere, otherwise) == _entry(mine)


def test_a_gate_that_ended_in_the_screen_tells_no_noise() -> None:
    entry = _entry(_gate([0.0, 0.01]))
    assert entry.degrees_of_freedom == 0
    assert math.isnan(entry.usable_variance)


def test_a_case_undecided_in_more_than_one_gate_of_fifty_is_in_quarantine() -> None:
    noisy = [0.008 + (0.02 if n % 4 in (0, 3) else -0.02) for n in range(24)]
    runs = [_gate([0.0, 1e-3, 0.0, 1e-3], day=n) for n in range(50)]
    undecided = [_gate(noisy, day=60), _gate(noisy, day=61)]
    cut_short = _gate(noisy[:10], day=62)
    assert _entry(*runs, *undecided).undecided == 2
    assert _entry(*runs, *undecided).quarantined
    assert not _entry(*runs, undecided[0], cut_short).quarantined
    assert not _entry(*runs[:10], *undecided).quarantined
