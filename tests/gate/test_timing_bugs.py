"""Faults that comparable tools were reported to have: none of them here."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ci.gate.codes import Code
from ci.gate.errors import RoundsError
from ci.gate.settings import SENSITIVE, STANDARD, Settings
from ci.gate.validity import Range, why_invalid
from ci.results.model import MachineState, Pair, Round, Word
from tests.timed import CALM, one_round, run_gate

CASE = "sgemm/01_naive[M=64,N=64,K=64]"
USUAL = {"sm_clock_hz": Range(low=1.9e9, high=2.0e9)}


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (
            dataclasses.replace(CALM, sm_clock_hz=990_000_000),
            "SM clock 990 MHz at base, usual on this machine is 1,900 MHz to 2,000 MHz",
        ),
        (
            dataclasses.replace(
                CALM, sm_clock_hz=480_000_000, slowdowns=("software thermal slowdown",)
            ),
            "software thermal slowdown in force, SM clock 480 MHz",
        ),
    ],
)
def test_a_gpu_that_is_slow_throughout_is_inconclusive(state: MachineState, reason: str) -> None:
    """Throttling discarded every sample and the run passed; or read as a regression.

    Sources: NVIDIA/nvbench#231, sgl-project/sglang#39206.
    """

    def measure(case: str, number: int) -> Round:
        return one_round(
            case,
            number,
            1.0986,
            base_state=state,
            head_state=state,
            invalid=why_invalid(state, state, USUAL),
        )

    decision, taken = run_gate(measure, [CASE])
    verdict = decision.verdicts[CASE]
    assert len(taken) == 5
    assert verdict.word is Word.INCONCLUSIVE
    assert verdict.reason_code is Code.ROUNDS_INVALID
    assert reason in verdict.reason


@pytest.mark.parametrize("settings", [STANDARD, SENSITIVE])
def test_a_mode_that_each_process_draws_anew_is_no_regression(settings: Settings) -> None:
    """22.5 or 25.5 ms from run to run, 0.05 ms within: unrelated changes were blocked.

    Source: newton-physics/newton#2534.
    """
    rng = np.random.default_rng(2534)

    def measure(case: str, number: int) -> Round:
        base_s, head_s = rng.choice([22.5e-3, 25.5e-3], 2)
        pairs = tuple(
            Pair(
                base_s=base_s + rng.normal(0, 5e-5),
                head_s=head_s + rng.normal(0, 5e-5),
                base_first=index % 2 == 0,
            )
            for index in range(10)
        )
        return dataclasses.replace(one_round(case, number, 0.0), pairs=pairs)

    for _ in range(15):
        decision, _ = run_gate(measure, [CASE], settings)
        assert decision.verdicts[CASE].word is not Word.REGRESSION


def _drifting(number: int, *, interleaved: bool) -> tuple[Pair, ...]:
    """Return pairs under a clock that loses 10 % over the round."""
    slots = 40
    times = 1e-3 * (1 + 0.1 * np.arange(slots) / slots) * (1 + 1e-5 * (number % 3))
    if not interleaved:
        blocks = zip(times[: slots // 2], times[slots // 2 :], strict=True)
        return tuple(Pair(base_s=float(b), head_s=float(h), base_first=True) for b, h in blocks)
    pairs = []
    for slot in range(0, slots, 2):
        first, second = float(times[slot]), float(times[slot + 1])
        base_first = slot % 4 == 0
        base_s, head_s = (first, second) if base_first else (second, first)
        pairs.append(Pair(base_s=base_s, head_s=head_s, base_first=base_first))
    return tuple(pairs)


def test_drift_is_unchanged_interleaved_and_refused_in_blocks() -> None:
    """The same commit was 17.3 % slower, then 1.9 %. Source: mapequation/infomap#943."""

    def measure(case: str, number: int) -> Round:
        pairs = _drifting(number, interleaved=True)
        return dataclasses.replace(one_round(case, number, 0.0), pairs=pairs)

    def in_blocks(case: str, number: int) -> Round:
        pairs = _drifting(number, interleaved=False)
        return dataclasses.replace(one_round(case, number, 0.0), pairs=pairs)

    assert run_gate(measure, [CASE])[0].verdicts[CASE].word is Word.UNCHANGED
    with pytest.raises(RoundsError, match="as many pairs with base first"):
        run_gate(in_blocks, [CASE])


def test_each_case_is_judged_by_its_own_noise() -> None:
    """One 10 % threshold was too loose for some cases and too tight for others.

    Source: NVIDIA/warp#1359.
    """
    rng = np.random.default_rng(1359)
    noise = {"quiet[M=1]": 0.002, "loud[M=1]": 0.06}

    def measure(case: str, number: int) -> Round:
        return one_round(case, number, 0.04 + rng.normal(0, noise[case]))

    verdicts = run_gate(measure, list(noise))[0].verdicts
    assert verdicts["quiet[M=1]"].word is Word.REGRESSION
    assert verdicts["loud[M=1]"].word is Word.INCONCLUSIVE
