"""A model of how the rounds of a timed gate differ, after what GPUs were seen to do.

A pair shares a clock term that wanders (AR(1)) and drifts within the round; each sample has noise
of its own, outliers and, for one kind of case, two modes; each fresh process has an offset of its
own and, for one kind, a placement mode. The kinds and their shares follow raw timings of eight GPUs
(benchmark_hub, MIT) and A/A timings of an H200; the offsets of the second process are the latter's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import signal, stats

Values = NDArray[np.float64]

SECOND_PROCESS_OFFSETS = (
    np.array([-0.12, -0.14, -0.05, -0.02, 0.03, 0.22, 0.07, 0.0, -0.11, -0.35, 0.32, 0.16, 0.51])
    / 100
)
"""Measured on an H200: how much slower the side that started second was, case by case."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """How the times of one kind of case vary, in shares of its time."""

    name: str
    share: float
    """Of all cases."""
    pairs: int
    own: float
    shared: float
    persistence: float
    """Correlation of the shared term from one sample to the next."""
    drift: float
    outliers: float
    """Share of samples."""
    outlier_size: float
    process: float
    sample_mode: float = 0.0
    """Distance of the second mode that samples visit for a while."""
    process_mode: float = 0.0
    """Distance of the second mode that 3 of 10 processes are in."""


KINDS = (
    Kind(
        name="clean", share=0.50, pairs=15, own=0.0015, shared=0.001, persistence=0.8,
        drift=0.002, outliers=0.005, outlier_size=0.01, process=0.0008,
    ),
    Kind(
        name="typical", share=0.25, pairs=15, own=0.004, shared=0.004, persistence=0.8,
        drift=0.005, outliers=0.01, outlier_size=0.02, process=0.0015,
    ),
    Kind(
        name="power-limited", share=0.10, pairs=15, own=0.004, shared=0.025, persistence=0.95,
        drift=0.06, outliers=0.01, outlier_size=0.03, process=0.002,
    ),
    Kind(
        name="microseconds", share=0.07, pairs=150, own=0.02, shared=0.005, persistence=0.5,
        drift=0.01, outliers=0.05, outlier_size=0.1, process=0.003,
    ),
    Kind(
        name="two modes of samples", share=0.04, pairs=15, own=0.003, shared=0.002,
        persistence=0.8, drift=0.003, outliers=0.01, outlier_size=0.02, process=0.002,
        sample_mode=0.02,
    ),
    Kind(
        name="two modes of processes", share=0.04, pairs=15, own=0.002, shared=0.001,
        persistence=0.8, drift=0.002, outliers=0.005, outlier_size=0.01, process=0.0015,
        process_mode=0.015,
    ),
)  # fmt: skip

_MODE_SHARE = 0.3
_MODE_STAYS = 0.9


def pair_logs(kind: Kind, rounds: int, rng: np.random.Generator) -> Values:
    """Return log(head/base) of every pair of ``rounds`` rounds of equal code, (rounds, pairs)."""
    slots = 2 * kind.pairs
    clock = _clock(kind, rounds, slots, rng)
    # Base head, head base: slots 0 3 4 7 … are base's.
    pair = np.arange(kind.pairs)
    first, second = 2 * pair, 2 * pair + 1
    base_first = pair % 2 == 0
    base = clock[:, np.where(base_first, first, second)] + _side(kind, rounds, rng)
    head = clock[:, np.where(base_first, second, first)] + _side(kind, rounds, rng)
    return head - base


def round_estimates(kind: Kind, rounds: int, rng: np.random.Generator) -> Values:
    """Return the estimates of ``rounds`` rounds of equal code, shape (rounds,)."""
    return np.asarray(stats.trim_mean(pair_logs(kind, rounds, rng), 0.2, axis=1))


def _clock(kind: Kind, rounds: int, slots: int, rng: np.random.Generator) -> Values:
    """Return what both sides share: a wandering clock, and a drift that levels off."""
    steps = rng.standard_normal((rounds, slots)) * kind.shared
    steps[:, 1:] *= np.sqrt(1 - kind.persistence**2)
    wandering = signal.lfilter([1], [1, -kind.persistence], steps, axis=1)
    warming = -np.expm1(-3 * np.linspace(0, 1, slots)) / -np.expm1(-3)
    drift = kind.drift * rng.standard_normal((rounds, 1)) * warming
    return np.asarray(wandering + drift)


def _side(kind: Kind, rounds: int, rng: np.random.Generator) -> Values:
    """Return what one fresh process adds to its samples, shape (rounds, pairs)."""
    shape = (rounds, kind.pairs)
    values = rng.standard_normal(shape) * kind.own
    values += (rng.random(shape) < kind.outliers) * rng.exponential(kind.outlier_size, shape)
    values += rng.standard_normal((rounds, 1)) * kind.process
    if kind.process_mode:
        values += (rng.random((rounds, 1)) < _MODE_SHARE) * kind.process_mode
    if kind.sample_mode:
        values += _sticky_mode(rounds, kind.pairs, rng) * kind.sample_mode
    return values


def _sticky_mode(rounds: int, samples: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return in which samples a process is in its second mode, which it leaves rarely."""
    drawn = rng.random((rounds, samples)) < _MODE_SHARE
    redrawn = rng.random((rounds, samples)) > _MODE_STAYS
    redrawn[:, 0] = True
    # Each sample has the mode of the latest one that was drawn anew.
    latest = np.maximum.accumulate(np.where(redrawn, np.arange(samples), 0), axis=1)
    return np.take_along_axis(drawn, latest, axis=1)
