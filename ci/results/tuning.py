"""What a search for a stage's tile found: the candidates, and the one that won."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ci.results.model import Machine, Status


@dataclass(frozen=True, kw_only=True, slots=True)
class TriedTile:
    """One tile of the search."""

    tile: Mapping[str, int]
    status: Status
    reason: str
    """Why it was left out; empty if it was timed."""
    samples_s: tuple[float, ...] = ()
    """Seconds a launch, a replay each; empty if it was not timed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tuning:
    """A search through a stage's ``tile_space`` on one machine."""

    schema_version: int
    ladder: str
    stage: str
    source_digest: str
    """sha256 of the suite's folder at the time, hexadecimal."""
    started: str
    """UTC, ISO 8601."""
    machine: Machine
    size: Mapping[str, int]
    """What was timed."""
    winner: Mapping[str, int] | None
    """The tile with the smallest median; None if none could be timed."""
    winner_s: float | None
    """Its median (s)."""
    declared_s: float | None
    """Median of the tile the stage declares for this GPU (s); None if it is not in the space."""
    tried: tuple[TriedTile, ...]
    """Fastest first, then those left out, in the order of the space."""
