"""How far a machine lets a launch go: its roofs. Changes when the roofline model does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_FLOP_ROOF = "float32_flop_per_s"
_BYTE_ROOF = "copy_bytes_per_s"
_READS_OVER_COPY = 1.25
"""Reads alone outrun a copy, by which the memory roof is measured: an H200's datasheet names 1.12
times what its copy reaches. Above this much the declared bytes must be wrong."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Roofs:
    """The two limits of a machine.

    Source: S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52 (2009).
    """

    flop_per_s: float
    """FP32 multiply-adds on all cores at the highest clock; tensor cores do not enter."""
    bytes_per_s: float
    """Device memory, as measured by a copy, bytes read and bytes written together."""

    @property
    def ridge(self) -> float:
        """Return the intensity where both roofs meet (FLOP per byte)."""
        return self.flop_per_s / self.bytes_per_s

    def bound_by(self, intensity: float) -> str:
        """Return which roof is the lower one at an intensity (FLOP per byte)."""
        return "compute" if intensity >= self.ridge else "memory"

    def at(self, intensity: float) -> float:
        """Return the highest speed at an intensity (FLOP per byte, FLOP/s)."""
        return min(self.flop_per_s, intensity * self.bytes_per_s)

    def least_s(self, flops: int, size_bytes: int) -> float:
        """Return the time that no launch can beat: its speed of light (s)."""
        return max(flops / self.flop_per_s, size_bytes / self.bytes_per_s)

    def believes(self, time_s: float, flops: int, size_bytes: int) -> bool:
        """Return whether the machine can do this much in this time."""
        compute_s = flops / self.flop_per_s
        memory_s = size_bytes / self.bytes_per_s / _READS_OVER_COPY
        return time_s >= max(compute_s, memory_s)


def roofs_of(peaks: Mapping[str, float]) -> Roofs | None:
    """Return a machine's roofs; None where it has none, as the simulator."""
    flop_per_s, bytes_per_s = peaks.get(_FLOP_ROOF, 0.0), peaks.get(_BYTE_ROOF, 0.0)
    if flop_per_s <= 0 or bytes_per_s <= 0:
        return None
    return Roofs(flop_per_s=flop_per_s, bytes_per_s=bytes_per_s)
