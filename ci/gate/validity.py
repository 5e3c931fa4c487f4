"""Which rounds do not count, by the state of the machine alone; never by what was timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ci.results.model import GateRun, MachineState

_CLOCK_TOLERANCE = 0.01
"""Largest difference between the clocks of the two sides (share)."""
_ROBUST_DEVIATIONS = 5.0
_SIGMA_OF_MAD = 1.4826
"""Standard deviation of normal values over their median absolute deviation."""
_LEAST_GATES = 4
"""Gates below which a machine has no usual range."""
_SEVERE = ("hardware", "thermal")
"""What names a slowdown that never counts as usual."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Quantity:
    name: str
    unit: str
    scale: float
    """Units in one of the stored ones."""
    least_reach: float
    """Share of the median that is always usual, however still past gates were."""

    def show(self, value: float) -> str:
        """Return a stored value with its unit."""
        return f"{value * self.scale:,.0f} {self.unit}"


_QUANTITIES: Mapping[str, _Quantity] = {
    "sm_clock_hz": _Quantity(name="SM clock", unit="MHz", scale=1e-6, least_reach=0.01),
    "memory_clock_hz": _Quantity(name="memory clock", unit="MHz", scale=1e-6, least_reach=0.01),
    "temperature_c": _Quantity(name="temperature", unit="°C", scale=1, least_reach=0.1),
    "power_w": _Quantity(name="power", unit="W", scale=1, least_reach=0.1),
}
"""Field of MachineState → what it is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """Where a figure of a machine usually lies."""

    low: float
    high: float


def why_invalid(base: MachineState, head: MachineState, usual: Mapping[str, Range]) -> str:
    """Return why a round does not count; empty if it does, or if the machine cannot tell.

    Args:
        base: State of the machine during base's samples of the round, medians of the figures.
        head: The same during head's.
        usual: Field of MachineState → its usual range, as ``usual_ranges`` gives it.
    """
    return _slowed(base, head) or _clocks_differ(base, head) or _unusual(base, head, usual)


def _slowed(base: MachineState, head: MachineState) -> str:
    if base.slowdowns is None or head.slowdowns is None:
        return ""
    in_force = sorted({*base.slowdowns, *head.slowdowns})
    severe = [name for name in in_force if any(word in name for word in _SEVERE)]
    if severe:
        clock = _get(head, "sm_clock_hz")
        at = f", SM clock {_QUANTITIES['sm_clock_hz'].show(clock)}" if clock is not None else ""
        return f"{', '.join(severe)} in force{at}"
    if set(base.slowdowns) != set(head.slowdowns):
        former, present = (
            ", ".join(sorted(side)) or "nothing" for side in (base.slowdowns, head.slowdowns)
        )
        return f"clocks held down by {former} at base and by {present} at head"
    return ""


def _clocks_differ(base: MachineState, head: MachineState) -> str:
    for field in ("sm_clock_hz", "memory_clock_hz"):
        former, present = _get(base, field), _get(head, field)
        if former is None or present is None:
            continue
        if abs(present - former) > _CLOCK_TOLERANCE * former:
            quantity = _QUANTITIES[field]
            return (
                f"{quantity.name} {quantity.show(former)} at base, {quantity.show(present)} at head"
            )
    return ""


def _unusual(base: MachineState, head: MachineState, usual: Mapping[str, Range]) -> str:
    for field, span in usual.items():
        for side, state in (("base", base), ("head", head)):
            value = _get(state, field)
            if value is not None and not span.low <= value <= span.high:
                quantity = _QUANTITIES[field]
                return (
                    f"{quantity.name} {quantity.show(value)} at {side}, usual on this machine is "
                    f"{quantity.show(span.low)} to {quantity.show(span.high)}"
                )
    return ""


def usual_ranges(
    runs: Sequence[GateRun], *, machine: str, method_version: int
) -> Mapping[str, Range]:
    """Return field of MachineState → its usual range, from stored gates of one machine.

    Median ± 5 robust standard deviations of the rounds that counted; empty if there are too few
    gates.
    """
    told = [r for r in runs if r.machine.name == machine and r.method_version == method_version]
    states = [
        state
        for run in told
        for entry in run.rounds
        if not entry.invalid
        for state in (entry.base_state, entry.head_state)
    ]
    if len(told) < _LEAST_GATES:
        return {}
    ranges = {}
    for field, quantity in _QUANTITIES.items():
        values = [value for state in states if (value := _get(state, field)) is not None]
        if values:
            ranges[field] = _range(np.array(values), quantity.least_reach)
    return ranges


def _range(values: np.typing.NDArray[np.float64], least_reach: float) -> Range:
    middle = float(np.median(values))
    deviation = _SIGMA_OF_MAD * float(np.median(np.abs(values - middle)))
    reach = max(_ROBUST_DEVIATIONS * deviation, least_reach * abs(middle))
    return Range(low=middle - reach, high=middle + reach)


def _get(state: MachineState, field: str) -> float | None:
    value: float | None = getattr(state, field)
    return value
