"""The controls that every timed gate measures beside its cases: which, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SUITE = Path(__file__).parent / "control_suite"
_STAGES = {"cuda": "control", "clock": "calls"}
_SHORT, _MIDDLE, _LATENCY, _STREAM, _LONG = (
    "M=256,N=256,K=128",
    "M=512,N=512,K=256",
    "M=128,N=128,K=4096",
    "M=2048,N=1024,K=1",
    "M=1024,N=1024,K=2048",
)
_EQUAL = {"cuda": (_SHORT, _MIDDLE, _LATENCY, _STREAM, _LONG), "clock": (_SHORT,)}
"""Sizes at which equal code is measured. A processor only ever times small suites."""
_SLOWED = {"cuda": dict.fromkeys((_SHORT, _MIDDLE, _STREAM), 0.04), "clock": {_SHORT: 0.5}}
"""Sizes at which head makes more launches → how many more, as a share of a sample's. A sample holds
enough of them there. Processors' times are noisier than a GPU's."""


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
    """Return the controls for ``cuda`` or ``clock``: equal code, and the same slowed on purpose.

    They differ in what a launch is bound by and in how long it takes, since what goes wrong with a
    bench (which side starts first, what is left in a cache, a coarse timer) depends on that.
    """
    stage = _STAGES[bench]
    equal = {f"control equal {size}": size for size in _EQUAL[bench]}
    slowed = {f"control slowed {size}": size for size in _SLOWED[bench]}
    return Controls(
        suite=_SUITE,
        cases={
            name: f"gate_control/{stage}[{size}]"
            for name, size in (*equal.items(), *slowed.items())
        },
        slowed={name: _SLOWED[bench][size] for name, size in slowed.items()},
    )
