"""The controls that every timed gate measures beside its cases: which, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NEGATIVE, POSITIVE = "control equal", "control slowed"
"""The names under which the rounds of controls are stored."""

_SUITE = Path(__file__).parent / "control_suite"
_CASE = "gate_control/{stage}[M=256,N=256,K=128]"
_STAGES = {"cuda": "control", "clock": "calls"}
_SLOWED = {"cuda": 0.04, "clock": 0.5}
"""More launches, as a share of a sample's. Processors' times are noisier than a GPU's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Controls:
    """Cases whose verdict is known, measured in the rounds of a gate."""

    suite: Path
    """Folder of the suite they lie in, the same for both sides."""
    cases: Mapping[str, str]
    """Control → the case that both sides run."""
    slowed: Mapping[str, float]
    """The controls whose head is slower on purpose → share of launches that its samples hold
    beyond those they are divided by. Nothing but the time tells it from base."""


def controls_of(bench: str) -> Controls:
    """Return the controls for ``cuda`` or ``clock``: equal code, and the same slowed on purpose."""
    case = _CASE.format(stage=_STAGES[bench])
    return Controls(
        suite=_SUITE,
        cases={NEGATIVE: case, POSITIVE: case},
        slowed={POSITIVE: _SLOWED[bench]},
    )
