"""How a case is timed: launches in a sample, operand sets, pairs. Part of the method version."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

METHOD_VERSION = 1
"""Of a revision measured alone. Goes up with every change that can move a time; figures of two
methods are never compared."""
GATE_METHOD_VERSION = 2
"""Of the rounds of a gate, which are compared with earlier gates alone. 2: parts of a batch are
samples, and only the first case of a process has the full warm-up."""

WARM_UP_S = 0.025
"""A side replays the first case of its process for so long before its samples count. The sides
do so one after the other on one GPU, which has then worked for 50 ms."""
WARM_UP_AGAIN_S = 0.005
"""The same for every further case of a gate: the clocks are up, and what they still do under the
new load both sides of a pair see alike."""
WARM_UP_LAUNCHES = 5
SAMPLES_A_ROUND = 10
"""Samples of one revision measured alone, a round and variant."""

_SAMPLE_S = 0.5e-3
"""Least length of a sample."""
_SAMPLE_TICKS = 1000
"""Least length of a sample in ticks of the event timer: rounding to ticks stays below 0.1 %."""
_COLD_L2 = 2
"""The operand sets of a cold batch hold at least so many times the L2 cache."""
_COLD_SETS = 2
_MOST_SETS = 4096
"""A graph has a node a launch. Operands below a few tens of KB stay in L2 for all that."""
_SAMPLING_S = 0.03
"""What the pairs of a case may take in one round, within the limits that follow."""
_TURN_S = 0.2e-3
"""What it costs to hand the GPU from one side to the other."""
_FEWEST_PAIRS, _MOST_PAIRS = 10, 300
_COARSEST_TICK_S = 1.024e-6
"""The coarsest event timer known, on A100."""
_TICK_DIGITS = 9
"""Differences of event times are rounded to so many decimal places of a second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """What one side finds out about a case before it is timed."""

    launch_s: float
    """Seconds a launch, operands in L2 where they fit: the fastest the case gets."""
    set_bytes: int
    """Bytes of one operand set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """What one sample is: the same on both sides."""

    launches: int
    """Launches of a sample."""
    sets: int
    """Copies of the operands that the launches go round. All parts together go round them a whole
    number of times, so that nothing is still warm when its turn comes again."""
    parts: int = 1
    """Samples that go round once together, one after the other."""

    def __post_init__(self) -> None:
        """Refuse a batch whose launches do not go round all sets equally often."""
        launches = self.launches * self.parts
        if self.sets < 1 or launches < 1 or launches % self.sets:
            msg = (
                f"{launches} launches go round {self.sets} operand sets unevenly, expected a "
                "multiple (a set that is left out stays warm, or is never timed)"
            )
            raise ValueError(msg)

    def orders(self, more: int = 0) -> list[list[int]]:
        """Return which set each launch uses, part by part.

        Args:
            more: Launches at the end of each part beyond those of a sample. They use the sets whose
                turn is half a round away, which are as far from being warm as can be.
        """
        return [
            [
                launch % self.sets
                for first, count in (
                    (start, self.launches),
                    (start + self.launches + self.sets // 2, more),
                )
                for launch in range(first, first + count)
            ]
            for start in range(0, self.launches * self.parts, self.launches)
        ]


def cold(surveys: Sequence[Survey], *, l2_bytes: int, tick_s: float) -> Batch:
    """Return a batch in which every launch finds its operands outside L2.

    Args:
        surveys: What each side found: the faster one and the smaller set decide.
        l2_bytes: Size of the L2 cache.
        tick_s: Tick of the event timer (s).
    """
    smallest = min(survey.set_bytes for survey in surveys)
    sets = min(_MOST_SETS, max(_COLD_SETS, math.ceil(_COLD_L2 * l2_bytes / smallest)))
    return Batch(launches=math.ceil(_launches(surveys, tick_s) / sets) * sets, sets=sets)


def cold_parts(surveys: Sequence[Survey], *, l2_bytes: int, tick_s: float) -> Batch:
    """Return a cold batch whose samples are as short as the timer allows.

    One that had to go round all sets in a sample would take many times longer where operands are
    small and launches are not. There are some sets more, so that the parts are equal.

    Args:
        surveys: What each side found: the faster one and the smaller set decide.
        l2_bytes: Size of the L2 cache.
        tick_s: Tick of the event timer (s).
    """
    whole = cold(surveys, l2_bytes=l2_bytes, tick_s=tick_s)
    launches = _launches(surveys, tick_s)
    parts = math.ceil(whole.sets / launches)
    if parts == 1 or launches * parts >= 2 * whole.sets:
        return whole
    return Batch(launches=launches, sets=launches * parts, parts=parts)


def hot(surveys: Sequence[Survey], *, tick_s: float) -> Batch:
    """Return a batch on one operand set, which stays in L2 as far as it fits."""
    return Batch(launches=_launches(surveys, tick_s), sets=1)


def _launches(surveys: Sequence[Survey], tick_s: float) -> int:
    fastest = min(survey.launch_s for survey in surveys)
    return math.ceil(max(_SAMPLE_S, _SAMPLE_TICKS * tick_s) / fastest)


def survey_launches(launch_s: float) -> int:
    """Return how many launches time a launch well that took ``launch_s`` on its own."""
    return min(1000, max(1, math.ceil(_SAMPLE_S / launch_s)))


def pair_count(sample_s: float) -> int:
    """Return how many pairs a round takes of a case, an even number.

    A turn of a side is one untimed replay and two timed ones, and there is one turn a pair.

    Args:
        sample_s: Length of a sample (s).
    """
    fitting = int(_SAMPLING_S / (3 * sample_s + _TURN_S))
    return min(_MOST_PAIRS, max(_FEWEST_PAIRS, fitting)) // 2 * 2


def event_tick(elapsed_s: Sequence[float]) -> float:
    """Return the tick of the event timer: the commonest step between neighbouring times.

    Times that tell nothing give the coarsest tick known, which makes samples longer, not wrong.

    Args:
        elapsed_s: Times of short work of slowly growing length (s).
    """
    rounded = sorted({round(seconds, _TICK_DIGITS) for seconds in elapsed_s})
    steps = Counter(
        round(after - before, _TICK_DIGITS) for before, after in itertools.pairwise(rounded)
    )
    most = max(steps.values(), default=0)
    commonest = max((step for step, count in steps.items() if count == most), default=math.inf)
    return min(commonest, _COARSEST_TICK_S)
