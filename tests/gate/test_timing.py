"""From rounds to verdicts: what is open, which word falls, and what its sentence says."""

from __future__ import annotations

import dataclasses
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci.gate.codes import Code
from ci.gate.settings import SENSITIVE, STANDARD, Settings
from ci.gate.timing import decide
from ci.results.model import Pair, Round, Word
from tests.timed import noise, one_round, rounds, run_gate

CASE = "sgemm/01_naive[M=64,N=64,K=64]"
SMALL = [2e-4, -2e-4]
BOTH = st.sampled_from([STANDARD, SENSITIVE])


def _steady(effect: float, count: int, *, sd: float = 2e-4) -> list[float]:
    """Return estimates about ``effect`` with a standard deviation of ``sd``."""
    return [effect + (sd if n % 4 in (0, 3) else -sd) for n in range(count)]


def _family(seed: int) -> dict[str, list[Round]]:
    """Return case id → 24 rounds, of cases that are slower, a little slower or not."""
    rng = np.random.default_rng(seed)
    effects = rng.choice([0.0, 0.004, 0.008, 0.03], 4)
    return {
        f"sgemm/{name}[M=64]": rounds(f"sgemm/{name}[M=64]", rng.normal(effect, 0.003, 24).tolist())
        for name, effect in zip("abcd", effects.tolist(), strict=True)
    }


def _words(family: dict[str, list[Round]], margins: Settings) -> dict[str, Word]:
    taken = [entry for entries in family.values() for entry in entries]
    verdicts = decide(taken, list(family), margins, {}).verdicts
    return {case: verdict.word for case, verdict in verdicts.items()}


def test_without_rounds_every_case_is_open() -> None:
    decision = decide([], [CASE, "other"], STANDARD, {})
    assert decision.open == (CASE, "other")
    assert decision.verdicts[CASE].word is Word.INCONCLUSIVE
    assert decision.verdicts[CASE].timing is None


def test_no_cases_are_decided_at_once() -> None:
    assert decide([], [], STANDARD, {}).open == ()


def test_a_quiet_case_is_unchanged_after_four_rounds() -> None:
    for count in range(4):
        assert decide(rounds(CASE, _steady(0, count)), [CASE], STANDARD, {}).open == (CASE,)
    decision = decide(rounds(CASE, _steady(0, 4)), [CASE], STANDARD, {})
    assert decision.open == ()
    verdict = decision.verdicts[CASE]
    assert verdict.word is Word.UNCHANGED
    assert verdict.reason_code is Code.NOT_SLOWER
    assert verdict.reason == (
        "shown to be less than 1.25 % slower: slower 0.00 % (interval −0.04 to 0.04 %), "
        "1.000 → 1.000 ms"
    )
    assert verdict.timing
    assert verdict.timing.rounds == 4
    assert verdict.timing.smallest_detectable == 0


def test_a_slower_case_is_a_regression_with_its_figures() -> None:
    effect = math.log(1.019)
    decision, taken = run_gate(
        lambda case, number: one_round(case, number, _steady(effect, 24)[number], base_s=3.21e-3),
        [CASE],
    )
    assert len(taken) == 12
    verdict = decision.verdicts[CASE]
    assert verdict.word is Word.REGRESSION
    assert verdict.reason_code is Code.SLOWER
    assert verdict.reason == "slower 1.90 % (interval 1.88 to 1.92 %), 3.210 → 3.271 ms"
    assert verdict.timing
    assert verdict.timing.setting == "standard"
    assert verdict.timing.ratio == pytest.approx(1.019, abs=1e-5)
    assert verdict.timing.rounds == 8
    assert verdict.timing.base_s == pytest.approx(3.21e-3)
    assert verdict.timing.other_setting is Word.REGRESSION


def test_a_much_faster_case_is_an_improvement() -> None:
    decision = decide(rounds(CASE, _steady(math.log(0.9), 4)), [CASE], STANDARD, {})
    verdict = decision.verdicts[CASE]
    assert verdict.word is Word.IMPROVEMENT
    assert verdict.reason_code is Code.FASTER
    assert verdict.reason.startswith("faster 10.0")


def test_a_noisy_case_is_inconclusive_with_what_it_would_have_shown() -> None:
    decision, taken = run_gate(
        lambda case, number: one_round(case, number, _steady(0.008, 24, sd=0.02)[number]), [CASE]
    )
    assert len(taken) == 24
    verdict = decision.verdicts[CASE]
    assert verdict.word is Word.INCONCLUSIVE
    assert verdict.reason_code is Code.NOISE
    assert verdict.timing
    assert verdict.timing.rounds == 20
    assert verdict.timing.smallest_detectable > 1.02
    shown = f"{100 * (verdict.timing.smallest_detectable - 1):.1f} %"
    assert verdict.reason.endswith(f"would have shown {shown}")


def test_the_other_setting_is_recorded_beside_the_one_in_force() -> None:
    """Slower by 0.4 %: beyond the sensitive margin, within the standard one."""
    rows = rounds(CASE, _steady(0.004, 12, sd=5e-4))
    standard = decide(rows[:4], [CASE], STANDARD, {}).verdicts[CASE]
    slower = rounds(CASE, _steady(0.0071, 12, sd=5e-4))
    sensitive = decide(slower, [CASE], SENSITIVE, {}).verdicts[CASE]
    assert standard.timing
    assert standard.word is Word.UNCHANGED
    assert standard.timing.other_setting is Word.UNCHANGED
    assert sensitive.timing
    assert sensitive.word is Word.REGRESSION
    assert sensitive.timing.other_setting is Word.UNCHANGED


def test_a_case_with_too_many_bad_rounds_is_inconclusive_and_holds_nobody_up() -> None:
    def measure(case: str, number: int) -> Round:
        bad = "power 12 W at head" if case == CASE else ""
        return one_round(case, number, _steady(0.0, 40)[number], invalid=bad)

    decision, taken = run_gate(measure, [CASE, "other"])
    assert sum(entry.case == CASE for entry in taken) == 5
    assert decision.verdicts["other"].word is Word.UNCHANGED
    verdict = decision.verdicts[CASE]
    assert verdict.word is Word.INCONCLUSIVE
    assert verdict.reason_code is Code.ROUNDS_INVALID
    assert verdict.reason == "5 rounds were thrown away, most for: power 12 W at head"


def test_rounds_thrown_away_are_replaced_before_the_next_look() -> None:
    def measure(case: str, number: int) -> Round:
        return one_round(
            case, number, _steady(0.02, 40)[number], invalid="busy" if number in (1, 6) else ""
        )

    decision, taken = run_gate(measure, [CASE])
    verdict = decision.verdicts[CASE]
    assert verdict.word is Word.REGRESSION
    assert verdict.timing
    assert verdict.timing.rounds == 8
    valid = [entry for entry in taken if not entry.invalid]
    assert len(valid) >= 12


def test_a_gate_that_ends_early_leaves_open_cases_inconclusive() -> None:
    verdict = decide(rounds(CASE, _steady(0.02, 10)), [CASE], STANDARD, {}).verdicts[CASE]
    assert verdict.word is Word.INCONCLUSIVE
    assert verdict.reason_code is Code.CUT_SHORT
    assert verdict.reason.startswith("the gate ended after 10 rounds of this case that count: ")


def test_a_case_in_quarantine_says_so() -> None:
    ledger = {CASE: noise(0.02, degrees=90, gates=60, undecided=2)}
    decision, _ = run_gate(
        lambda case, number: one_round(case, number, _steady(0.008, 24, sd=0.02)[number]),
        [CASE],
        ledger=ledger,
    )
    verdict = decision.verdicts[CASE]
    assert verdict.reason_code is Code.QUARANTINED
    assert verdict.reason.startswith("in quarantine: INCONCLUSIVE in 2 of 60 gates")


def test_rounds_that_agree_exactly_are_too_short_for_the_timer() -> None:
    verdict = decide(rounds(CASE, [0.0] * 4), [CASE], STANDARD, {}).verdicts[CASE]
    assert verdict.word is Word.UNCHANGED
    assert verdict.reason.endswith(
        "every round agrees exactly: the samples are too short for the timer"
    )


def test_the_ledger_clears_a_quiet_case_that_had_one_unlucky_round() -> None:
    unlucky = rounds(CASE, [0.0, 0.0, 0.0, 0.012])
    assert decide(unlucky, [CASE], STANDARD, {}).open == (CASE,)
    assert decide(unlucky, [CASE], STANDARD, {CASE: noise(0.004)}).open == ()
    young = {CASE: noise(0.004, degrees=9, gates=3)}
    assert decide(unlucky, [CASE], STANDARD, young).open == (CASE,)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), BOTH, st.randoms(use_true_random=False))
def test_the_order_of_cases_and_rounds_does_not_matter(
    seed: int, margins: Settings, shuffle: random.Random
) -> None:
    family = _family(seed)
    names = list(family)
    shuffle.shuffle(names)
    assert _words({name: family[name][::-1] for name in names}, margins) == _words(family, margins)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), BOTH, st.sampled_from([1e-3, 0.5, 1.0, 2.0, 1e3]))
def test_scaling_both_sides_changes_nothing(seed: int, margins: Settings, factor: float) -> None:
    family = _family(seed)
    scaled = {
        case: [_with_pairs(entry, lambda b, h: (b * factor, h * factor)) for entry in entries]
        for case, entries in family.items()
    }
    assert _words(scaled, margins) == _words(family, margins)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), BOTH)
def test_swapping_base_and_head_never_keeps_a_regression(seed: int, margins: Settings) -> None:
    family = _family(seed)
    swapped = {
        case: [_with_pairs(entry, lambda b, h: (h, b)) for entry in entries]
        for case, entries in family.items()
    }
    former, present = _words(family, margins), _words(swapped, margins)
    both = [case for case in family if Word.REGRESSION is former[case] is present[case]]
    assert both == []


def _with_pairs(entry: Round, change: object) -> Round:
    assert callable(change)
    changed = []
    for pair in entry.pairs:
        base_s, head_s = change(pair.base_s, pair.head_s)
        changed.append(Pair(base_s=base_s, head_s=head_s, base_first=pair.base_first))
    return dataclasses.replace(entry, pairs=tuple(changed))
