"""Shared-memory load patterns against Nsight Compute on an H200."""

from __future__ import annotations

import pytest

from ci.simulator.coalescing import Wavefronts, count_wavefronts
from tests.simulator.ncu_golden import Pattern, launches, patterns

_FIRST_PATTERN_LAUNCH = 16
_SUITE = patterns("patterns.json")
_HOLDOUT = patterns("holdout_patterns.json")


def _cost(pattern: Pattern) -> Wavefronts:
    return count_wavefronts(pattern.address, pattern.active, pattern.width_bytes)


@pytest.mark.parametrize(
    ("table", "first", "loads"),
    [("suite.csv", _FIRST_PATTERN_LAUNCH, _SUITE), ("holdout.csv", 0, _HOLDOUT)],
)
def test_every_load_pattern_costs_what_the_profiler_counted(
    table: str, first: int, loads: list[Pattern]
) -> None:
    measured = launches(table)
    expected = {
        number: Wavefronts(
            measured[first + number].counters["shared_load_wavefronts"],
            measured[first + number].counters["shared_load_wavefronts"]
            - measured[first + number].counters["shared_load_conflicts"],
        )
        for number in range(len(loads))
    }
    assert {number: _cost(load) for number, load in enumerate(loads)} == expected


def test_all_patterns_are_compared() -> None:
    assert (len(_SUITE), len(_HOLDOUT)) == (162, 72)


def test_without_halved_phases_some_patterns_would_cost_too_much() -> None:
    wide = [pattern for pattern in _SUITE if pattern.width_bytes > 4]
    by_words = sum(
        count_wavefronts(half.address, half.active, half.width_bytes).total
        < pattern_cost_in_full_phases(half)
        for half in wide
    )
    assert by_words > 0


def pattern_cost_in_full_phases(pattern: Pattern) -> int:
    """Return the wavefronts of a load whose phases are never halved."""
    phases = pattern.width_bytes // 4
    total = 0
    for lanes in pattern.address.reshape(phases, -1):
        banks: dict[int, set[int]] = {}
        for address in lanes:
            for word in range(int(address) // 4, int(address) // 4 + phases):
                banks.setdefault(word % 32, set()).add(word)
        total += max(map(len, banks.values()))
    return total
