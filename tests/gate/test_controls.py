"""A gate whose controls are wrong has no times that count."""

from __future__ import annotations

import pytest

from ci.gate.codes import Code
from ci.gate.controls import fault, without_words
from ci.gate.timing import TimingVerdict
from ci.results.model import Word


def _verdict(word: Word) -> TimingVerdict:
    return TimingVerdict(word=word, reason_code=Code.NOISE, reason="figures", timing=None)


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
    reason = fault({"equal": _verdict(Word.REGRESSION)}, set())
    assert reason == "control equal, base's code on both sides, is slower: figures"


@pytest.mark.parametrize("word", [Word.UNCHANGED, Word.IMPROVEMENT])
def test_a_slowed_control_that_passes_is_a_fault(word: Word) -> None:
    reason = fault({"slowed": _verdict(word)}, {"slowed"})
    assert reason == f"control slowed, slowed on purpose, is {word}: figures"


def test_no_time_counts_in_a_gate_with_a_fault() -> None:
    (verdict,) = without_words(
        {"case": _verdict(Word.REGRESSION)}, "control equal is slower"
    ).values()
    assert verdict.word is Word.INCONCLUSIVE
    assert verdict.reason_code is Code.CONTROLS
    assert verdict.reason == "control equal is slower; this case would be REGRESSION: figures"
