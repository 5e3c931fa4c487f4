"""From all verdicts to one outcome, its exit code, and the line that says it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ci.gate.codes import Code
from ci.gate.sentences import first_line, plural
from ci.results.model import Outcome, Status, Word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ci.results.model import CaseVerdict, RunRecord

_EXIT_CODES: Mapping[Outcome, int] = {Outcome.PASSED: 0, Outcome.FAILED: 1, Outcome.UNDECIDED: 3}

_NEXT_STEPS: Mapping[Word, str] = {
    Word.INCORRECT: "look at the findings of {id} on the page",
    Word.ERROR: "mend the build or launch of {id}",
    Word.REGRESSION: "look at the source lines of {id} on the page; if it is meant, acknowledge it",
    Word.MISSING: "bring {id} back, or acknowledge that it is gone",
}

_COUNTED_STEP = "see the lines with flopwatch explain '{id}'; if it is meant, acknowledge it"


def exit_code(outcome: Outcome) -> int:
    """Return the exit code of a gate: 0, 1 or 3; 2 is kept for usage and configuration."""
    return _EXIT_CODES[outcome]


def decide(verdicts: Sequence[CaseVerdict], head: RunRecord) -> Outcome:
    """Return the outcome of a gate: failed before undecided, undecided before passed."""
    if head.error or any(verdict.fails for verdict in verdicts):
        return Outcome.FAILED
    executed = any(verdict.head == Status.PASSED for verdict in verdicts)
    if not executed or _undecided(verdicts) or not head.complete:
        return Outcome.UNDECIDED
    return Outcome.PASSED


def _undecided(verdicts: Sequence[CaseVerdict]) -> list[CaseVerdict]:
    """Return the INCONCLUSIVE verdicts, without those in quarantine, which decide nothing."""
    return [
        verdict
        for verdict in verdicts
        if verdict.verdict is Word.INCONCLUSIVE and verdict.code != Code.QUARANTINED
    ]


def count_words(verdicts: Sequence[CaseVerdict]) -> dict[str, int]:
    """Return verdict word → number of cases, in the order of the words; none left out."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    return {word.value: counts[word] for word in Word if counts[word]}


def sentence(outcome: Outcome, verdicts: Sequence[CaseVerdict], head: RunRecord) -> str:
    """Return one line: the result, and what to do next."""
    if outcome is Outcome.FAILED:
        return f"failed: {_why_failed(verdicts, head)}"
    if outcome is Outcome.UNDECIDED:
        return f"undecided: {_why_undecided(verdicts, head)}"
    acknowledged = sum(1 for verdict in verdicts if verdict.acknowledged)
    tail = f", {acknowledged:,} of them acknowledged" if acknowledged else ""
    executed = [verdict for verdict in verdicts if verdict.verdict is not Word.NOT_EMULATED]
    passed = f"passed: {plural(len(executed), 'case')} ({_listed(executed)}){tail}"
    if len(executed) == len(verdicts):
        return f"{passed}. Nothing to do."
    refused = plural(len(verdicts) - len(executed), "case")
    return f"{passed}; {refused} NOT_EMULATED. Next: run the gate on a machine with a GPU for them."


def _why_failed(verdicts: Sequence[CaseVerdict], head: RunRecord) -> str:
    if head.error:
        return (
            f"the suite does not load at head: {first_line(head.error)}. "
            f"Next: mend it and run the gate again."
        )
    failing = [verdict for verdict in verdicts if verdict.fails]
    worst = min(failing, key=lambda verdict: list(_NEXT_STEPS).index(verdict.verdict))
    counted = worst.verdict is Word.REGRESSION and worst.code == Code.COUNTERS
    step = (_COUNTED_STEP if counted else _NEXT_STEPS[worst.verdict]).format(id=worst.id)
    return (
        f"{len(failing):,} of {plural(len(verdicts), 'case')} ({_listed(failing)}). Next: {step}."
    )


def _why_undecided(verdicts: Sequence[CaseVerdict], head: RunRecord) -> str:
    if not head.complete:
        done = plural(len(head.cases), "case")
        return f"head's run was interrupted after {done}. Next: run it again."
    if not verdicts:
        return "no case was asked for. Next: see what there is with: flopwatch list."
    inconclusive = _undecided(verdicts)
    if inconclusive:
        first = inconclusive[0]
        return (
            f"{len(inconclusive):,} of {plural(len(verdicts), 'case')} INCONCLUSIVE, first "
            f"{first.id}: {first.reason}. Next: measure both sides again."
        )
    step = (
        "run the gate on a machine with a GPU"
        if any(verdict.verdict is Word.NOT_EMULATED for verdict in verdicts)
        else "add sizes that the stages take"
    )
    return f"no case was executed ({_listed(verdicts)}). Next: {step}."


def _listed(verdicts: Sequence[CaseVerdict]) -> str:
    counts = count_words(verdicts)
    return ", ".join(f"{count:,} {word}" for word, count in counts.items())
