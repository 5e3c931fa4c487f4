"""A gate whose controls are wrong has no times that count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ci.gate.codes import Code
from ci.gate.controls import fault, told, unscreened, without_words
from ci.gate.settings import STANDARD
from ci.gate.timing import TimingVerdict
from ci.results.model import Timing, Word
from tests.timed import one_round, rounds

TIMING = Timing(
    setting="standard",
    ratio=1.031,
    low=1.03,
    high=1.032,
    rounds=4,
    base_s=1e-3,
    head_s=1.031e-3,
    smallest_detectable=0.0,
    other_setting=Word.REGRESSION,
)


def _verdict(word: Word) -> TimingVerdict:
    return TimingVerdict(word=word, reason_code=Code.NOISE, reason="figures", timing=TIMING)


def test_a_control_without_times_is_a_fault() -> None:
    without = replace(_verdict(Word.INCONCLUSIVE), timing=None)
    assert fault({"control equal": without}, set()) == (
        "control equal could not be measured: figures"
    )


def test_the_controls_are_told_in_one_line() -> None:
    faster = replace(_verdict(Word.UNCHANGED), timing=replace(TIMING, ratio=0.999))
    verdicts = {
        "equal 1": faster,
        "equal 2": replace(_verdict(Word.INCONCLUSIVE), timing=None),
        "equal 3": _verdict(Word.UNCHANGED),
        "slowed": _verdict(Word.REGRESSION),
    }
    assert told(verdicts, ["slowed"]) == (
        "3 controls: 2 UNCHANGED, 1 INCONCLUSIVE (-0.10 to +3.10 %); "
        "1 slowed control: 1 REGRESSION (+3.10 to +3.10 %)"
    )


@pytest.mark.parametrize(
    ("negative", "positive"),
    [
        (Word.UNCHANGED, Word.REGRESSION),
        (Word.IMPROVEMENT, Word.REGRESSION),
        (Word.INCONCLUSIVE, Word.INCONCLUSIVE),
    ],
)
def test_controls_as_expected_are_no_fault(negative: Word, positive: Word) -> None:
    verdicts = {"equal": _verdict(negative), "slowed": _verdict(positive)}
    assert fault(verdicts, {"slowed"}) == ""


def test_equal_code_that_is_slower_is_a_fault() -> None:
    reason = fault({"control equal": _verdict(Word.REGRESSION)}, set())
    assert reason == "control equal, one code on both sides, is slower: figures"


@pytest.mark.parametrize("word", [Word.UNCHANGED, Word.IMPROVEMENT])
def test_a_slowed_control_that_passes_is_a_fault(word: Word) -> None:
    reason = fault({"control slowed": _verdict(word)}, {"control slowed"})
    assert reason == f"control slowed, slowed on purpose, is {word}: figures"


def test_no_time_counts_in_a_gate_with_a_fault() -> None:
    (verdict,) = without_words(
        {"case": _verdict(Word.REGRESSION)}, "control equal is slower"
    ).values()
    assert verdict.word is Word.INCONCLUSIVE
    assert verdict.reason_code is Code.CONTROLS
    assert verdict.reason == "control equal is slower; this case would be REGRESSION: figures"


def test_a_control_lacks_the_screen_until_it_has_four_rounds_that_count() -> None:
    whole = rounds("equal", [0.0] * 4)
    lost = [
        one_round("slowed", number, 0.03, invalid="" if number else "it died")
        for number in range(4)
    ]
    assert unscreened([*whole, *lost], ["equal", "slowed"], STANDARD) == ("slowed",)
    mended = [*lost, one_round("slowed", 4, 0.03)]
    assert unscreened([*whole, *mended], ["equal", "slowed"], STANDARD) == ()
