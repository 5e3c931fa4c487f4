"""The rule on timings of real GPUs: equal code on both sides, as measured and slowed by 2 %."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ci.gate.errors import RoundsError
from ci.gate.settings import SENSITIVE, STANDARD, Settings
from ci.gate.timing import decide
from ci.results.model import Pair, Round, Word
from tests.timed import CALM

DATA = Path(__file__).parents[1] / "data"
BAT = ("convolution_milo_A100", "convolution_milo_A6000", "dedispersion_milo_A4000")
LIMITED = "dedispersion_milo_A6000"
"""Limited by its power: its times drift by 9 % within a round."""
LAUNCHES = 29
"""The warm-up launch, and 14 pairs."""
ROUNDS = 24


def _round(case: str, number: int, pairs: Sequence[Pair]) -> Round:
    return Round(
        case=case,
        number=number,
        base_started_first=number % 2 == 0,
        pairs=tuple(pairs),
        base_state=CALM,
        head_state=CALM,
        invalid="",
    )


@functools.cache
def _times_s(name: str) -> NDArray[np.float64]:
    """Return one row a configuration, in launch order (s)."""
    times_ms: NDArray[np.float32] = np.load(DATA / "bat" / f"{name}.npz")["times_ms"]
    return times_ms.astype(np.float64) * 1e-3


def _split(times_s: NDArray[np.float64], slowed: float) -> list[Pair]:
    """Return a row's launches after the first as pairs, base head, head base and so on."""
    pairs = []
    for pair in range(1, LAUNCHES, 2):
        first, second = float(times_s[pair]), float(times_s[pair + 1])
        base_first = pair % 4 == 1
        base_s, head_s = (first, second) if base_first else (second, first)
        pairs.append(Pair(base_s=base_s, head_s=head_s * slowed, base_first=base_first))
    return pairs


def _bat_gate(name: str, *, slowed: float, seed: int) -> list[Round]:
    """Return a gate in which each round of a case is another configuration of the kernel."""
    rows = _times_s(name)
    order = np.random.default_rng(seed).permutation(len(rows))
    return [
        _round(f"{name}[{index // ROUNDS}]", index % ROUNDS, _split(rows[row], slowed))
        for index, row in enumerate(order)
    ]


def _h200_gate(file: str, *, slowed: float, seed: int) -> list[Round]:
    """Return a gate of 24 rounds a case, each one of the measured process pairs."""
    measured: Mapping[str, Any] = json.loads((DATA / "h200-aa" / file).read_text(encoding="utf-8"))
    rng = np.random.default_rng(seed)
    rounds = []
    for case, figures in measured.items():
        processes = figures["proc"]
        first = figures.get("first", [0] * len(processes))
        for number in range(ROUNDS):
            head_first = number % 2
            # Equal code: a pair whose base started first is one whose head did, sides exchanged.
            drawn = int(rng.integers(len(processes)))
            sign = 1 if first[drawn] == head_first else -1
            base_s = figures["info"][0] * 1e-3
            pairs = [
                Pair(
                    base_s=base_s,
                    head_s=base_s * math.exp(sign * log) * slowed,
                    base_first=index % 2 == 0,
                )
                for index, log in enumerate(processes[drawn])
            ]
            rounds.append(_round(case, number, pairs))
    return rounds


def _words(rounds: Sequence[Round], settings: Settings) -> list[Word]:
    cases = list(dict.fromkeys(entry.case for entry in rounds))
    decision = decide(rounds, cases, settings, {})
    assert decision.open == ()
    return [verdict.word for verdict in decision.verdicts.values()]


@pytest.mark.parametrize("settings", [STANDARD, SENSITIVE])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [*BAT, LIMITED])
def test_equal_code_on_other_gpus_is_no_regression(
    name: str, seed: int, settings: Settings
) -> None:
    words = _words(_bat_gate(name, slowed=1.0, seed=seed), settings)
    assert len(words) == 20
    assert Word.REGRESSION not in words


@pytest.mark.parametrize("name", BAT)
def test_two_percent_on_other_gpus_is_a_regression(name: str) -> None:
    words = _words(_bat_gate(name, slowed=1.02, seed=1), STANDARD)
    assert words == [Word.REGRESSION] * 20


def test_two_percent_is_a_regression_even_under_a_power_limit() -> None:
    words = _words(_bat_gate(LIMITED, slowed=1.02, seed=1), STANDARD)
    assert words.count(Word.REGRESSION) >= 19
    assert Word.UNCHANGED not in words


@pytest.mark.parametrize("settings", [STANDARD, SENSITIVE])
@pytest.mark.parametrize("file", ["start_order.json", "graph_replay.json"])
@pytest.mark.parametrize("seed", range(5))
def test_equal_code_on_an_h200_is_no_regression(file: str, seed: int, settings: Settings) -> None:
    words = _words(_h200_gate(file, slowed=1.0, seed=seed), settings)
    assert Word.REGRESSION not in words


@pytest.mark.parametrize("file", ["start_order.json", "graph_replay.json"])
@pytest.mark.parametrize("seed", range(5))
def test_two_percent_on_an_h200_is_a_regression(file: str, seed: int) -> None:
    words = _words(_h200_gate(file, slowed=1.02, seed=seed), STANDARD)
    assert set(words) == {Word.REGRESSION}


def test_two_percent_of_gain_on_an_h200_is_no_regression() -> None:
    words = _words(_h200_gate("graph_replay.json", slowed=1 / 1.02, seed=1), SENSITIVE)
    assert set(words) <= {Word.UNCHANGED, Word.IMPROVEMENT}


def test_base_then_head_is_refused() -> None:
    """One after the other, the drift of the clock would be the verdict."""
    times = _times_s(LIMITED)[0]
    pairs = [
        Pair(base_s=float(b), head_s=float(h), base_first=True)
        for b, h in zip(times[2:16], times[16:30], strict=True)
    ]
    with pytest.raises(RoundsError, match="drift cancels only if the orders alternate"):
        decide([_round("case", 0, pairs)], ["case"], STANDARD, {})
