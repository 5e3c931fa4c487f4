"""The controls that every timed gate measures beside its cases: which, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NEGATIVE, POSITIVE = "control equal", "control slowed"
"""The names under which the rounds of controls are stored."""

_SUITE = Path(__file__).parent / "control_suite"
_SIZE = "M=256,N=256,K=1024"
_STAGES = {"cuda": ("equal", "slowed"), "clock": ("equal_calls", "slowed_calls")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Controls:
    """Cases whose verdict is known, measured in the rounds of a gate."""

    suite: Path
    """Folder of the suite they lie in, the same for both sides."""
    cases: Mapping[str, tuple[str, str]]
    """Control → the case that base runs, and the one that head runs."""
    slowed: frozenset[str]
    """The controls whose head is slower on purpose."""


def controls_of(bench: str) -> Controls:
    """Return the controls for ``cuda`` or ``clock``: equal code, and code slowed on purpose."""
    equal, slowed = (f"gate_control/{stage}[{_SIZE}]" for stage in _STAGES[bench])
    return Controls(
        suite=_SUITE,
        cases={NEGATIVE: (equal, equal), POSITIVE: (equal, slowed)},
        slowed=frozenset({POSITIVE}),
    )
