"""Run the timing rule on many simulated gates: false alarms, power, rounds.

    python -m scripts.verdict_simulation docs/data/timing-rule.json

A gate has 150 cases of the kinds of ``noise_model``; one of them is slowed where power is asked
for. Every count comes with its exact (Clopper–Pearson) 95 % interval.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ci.gate.rule import Course, Series, follow
from ci.gate.settings import SENSITIVE, STANDARD, Settings
from ci.results.model import Word
from scripts.noise_model import KINDS, SECOND_PROCESS_OFFSETS, Values, round_estimates

CASES = 150
_FINE = (Word.UNCHANGED, Word.IMPROVEMENT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """What is true of the gates of one run."""

    name: str
    settings: Settings
    gates: int
    slowed: float = 0.0
    """True change of the first case (share)."""
    every: float = 0.0
    """True change of every case."""
    offsets: bool = False
    """Whether the process that starts second is slower or faster by an offset of the case."""
    alternates: bool = True
    """Whether the side that starts first alternates from round to round."""
    ledger: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """What came of the gates of one scenario."""

    gates: int
    false_alarms: int
    """Gates with a REGRESSION among the cases that were not slowed."""
    caught: int
    """Gates in which the slowed case is REGRESSION."""
    passed_as_fine: int
    """Gates in which the slowed case is UNCHANGED."""
    false_improvements: int
    inconclusive_cases: int
    rounds_per_case: float
    longest_rounds: float
    """Rounds of the case that needs most, mean over gates."""


class NoisePool:
    """Round estimates of every kind to draw gates from."""

    def __init__(self, seed: int, rounds: int) -> None:
        """Draw ``rounds`` rounds of every kind."""
        self._rng = np.random.default_rng(seed)
        self._rounds = [round_estimates(kind, rounds, self._rng) for kind in KINDS]
        self._variances = np.array([values.var() for values in self._rounds])

    def gate(self, scenario: Scenario, cases: int = CASES) -> list[Series]:
        """Return one gate's series, each with every round it may need."""
        settings = scenario.settings
        rounds = settings.screen_rounds + settings.looks[-1]
        shares = [kind.share for kind in KINDS]
        kinds = self._rng.choice(len(KINDS), cases, p=shares)
        values = np.full((cases, rounds), math.log1p(scenario.every))
        for kind, pool in enumerate(self._rounds):
            of_kind = kinds == kind
            values[of_kind] += self._rng.choice(pool, (int(of_kind.sum()), rounds))
        values[0] += math.log1p(scenario.slowed)
        if scenario.offsets:
            values += self._offsets(cases, rounds, alternates=scenario.alternates)
        return _series(
            values, self._variances[kinds] if scenario.ledger else np.full(cases, np.nan), settings
        )

    def _offsets(self, cases: int, rounds: int, *, alternates: bool) -> Values:
        offsets = self._rng.choice(SECOND_PROCESS_OFFSETS, (cases, 1))
        signs = np.where(np.arange(rounds) % 2 == 0, 1, -1) if alternates else np.ones(rounds)
        return np.asarray(offsets * signs)


def _series(values: Values, variances: NDArray[np.float64], settings: Settings) -> list[Series]:
    screen = settings.screen_rounds
    return [
        Series(screen=row[:screen], fresh=row[screen:], usual_variance=variance)
        for row, variance in zip(values, variances.tolist(), strict=True)
    ]


def simulate(scenario: Scenario, pool: NoisePool, cases: int = CASES) -> Tally:
    """Return what comes of the scenario's gates."""
    courses = [follow(pool.gate(scenario, cases), scenario.settings) for _ in range(scenario.gates)]
    words = [[standing.word for standing in course.standings] for course in courses]
    rounds = [_rounds(course, scenario.settings) for course in courses]
    return Tally(
        gates=len(courses),
        false_alarms=sum(Word.REGRESSION in _unslowed(row, scenario) for row in words),
        caught=sum(row[0] is Word.REGRESSION for row in words),
        passed_as_fine=sum(row[0] in _FINE for row in words),
        false_improvements=sum(Word.IMPROVEMENT in row for row in words),
        inconclusive_cases=sum(row.count(None) for row in words),
        rounds_per_case=float(np.mean(rounds)),
        longest_rounds=float(np.mean([max(row) for row in rounds])),
    )


def _unslowed(words: Sequence[Word | None], scenario: Scenario) -> Sequence[Word | None]:
    return words[1:] if scenario.slowed else words


def _rounds(course: Course, settings: Settings) -> list[int]:
    return [settings.screen_rounds + standing.fresh for standing in course.standings]


def scenarios(gates: int) -> Iterator[Scenario]:
    """Yield the scenarios of a full run; ``gates`` for each false-alarm rate, half for power."""
    for settings in (STANDARD, SENSITIVE):
        margin = math.expm1(settings.fail_margin)
        name = settings.name
        yield Scenario(name=f"{name}: same code", settings=settings, gates=gates)
        yield Scenario(
            name=f"{name}: same code, no ledger", settings=settings, gates=gates, ledger=False
        )
        yield Scenario(
            name=f"{name}: same code, second process offset",
            settings=settings, gates=gates, offsets=True,
        )  # fmt: skip
        yield Scenario(
            name=f"{name}: same code, second process offset, base always first",
            settings=settings, gates=gates // 4, offsets=True, alternates=False,
        )  # fmt: skip
        yield Scenario(
            name=f"{name}: every case at the margin", settings=settings, gates=gates, every=margin
        )
        for slowed in (0.002, 0.0075, 0.01, 0.0125, 0.015, 0.02, 0.03, 0.05):
            yield Scenario(
                name=f"{name}: one case {100 * slowed:.3g} % slower",
                settings=settings, gates=gates // 2, slowed=slowed,
            )  # fmt: skip


def interval(count: int, of: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a share."""
    ends = stats.binomtest(count, of).proportion_ci(method="exact")
    return float(ends.low), float(ends.high)


def _row(scenario: Scenario, tally: Tally) -> dict[str, object]:
    row: dict[str, object] = {"scenario": scenario.name, **asdict(tally)}
    row["false_alarm_interval"] = interval(tally.false_alarms, tally.gates)
    if scenario.slowed:
        row["caught_interval"] = interval(tally.caught, tally.gates)
    return row


def main() -> None:
    """Run every scenario and write the counts as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("--gates", type=int, default=4000, help="gates for a false-alarm rate")
    arguments = parser.parse_args()
    pool = NoisePool(seed=20260101, rounds=40_000)
    rows = []
    for scenario in scenarios(arguments.gates):
        tally = simulate(scenario, pool)
        rows.append(_row(scenario, tally))
        print(f"{scenario.name}: {tally}", flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    text = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    arguments.out.write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
