"""The verdict on one case, from its two sides."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from ci.gate.changes import changes, comparable, identical, missing_figures
from ci.gate.codes import Code
from ci.gate.metrics import STATIC_NAMES
from ci.gate.sentences import cause, change_sentence, changes_sentence, first_line
from ci.gate.sides import ERRORS
from ci.results.model import CaseVerdict, Status, Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ci.gate.sides import Side
    from ci.gate.timing import TimingVerdict
    from ci.results.model import Change

ABSENT = "absent"
"""What a verdict says in place of the status of a side that has no such case."""

_ERROR_CODES = {
    Status.COMPILE_ERROR: Code.COMPILE_ERROR,
    Status.LAUNCH_ERROR: Code.LAUNCH_ERROR,
    Status.TIMEOUT: Code.TIMEOUT,
}


class _Ruling(NamedTuple):
    word: Word
    code: Code
    reason: str


def judge(
    base: Side | None, head: Side, *, timing: TimingVerdict | None = None, base_gap: str = ""
) -> CaseVerdict:
    """Return the verdict on a case that head has.

    Args:
        base: The same case at base; None if base has none.
        head: The case at head.
        timing: What the times say; None if the case was not timed.
        base_gap: Why a case may be absent at base although base's code has it; empty if there
            is no such reason.
    """
    if head.failed:
        return _verdict(base, head, _failed(head))
    if head.status is not Status.PASSED:
        return _verdict(base, head, _unexecuted(base, head))
    if base is None:
        return _verdict(base, head, _added(base_gap))
    if base.status is not Status.PASSED:
        return _verdict(base, head, _now_passed(base))
    return _compared(base, head, timing)


def _compared(base: Side, head: Side, timing: TimingVerdict | None) -> CaseVerdict:
    """Return the verdict on a case that PASSED on both sides."""
    found = changes(base, head)
    ruling = _different(base, head, found) or _equal(base, head)
    if timing is None or ruling.word is Word.MISSING:
        return _verdict(base, head, ruling, found)
    if timing.reason_code is Code.OTHER_RUN:
        return _verdict(base, head, _beside_figures(ruling, timing), found)
    shown = tuple(dataclasses.replace(c, fails=False, improves=False) for c in found)
    verdict = _verdict(base, head, _timed(base, head, timing, found), shown)
    return dataclasses.replace(verdict, timing=timing.timing)


def judge_absent(base: Side, *, head_gap: str = "") -> CaseVerdict:
    """Return the verdict on a case that base has and head has not.

    Args:
        base: The case at base.
        head_gap: Why head's run has not got so far; empty if it has.
    """
    if head_gap:
        return _verdict(base, None, _Ruling(Word.INCONCLUSIVE, Code.HEAD_PARTIAL, head_gap))
    reason = f"{base.status} at base, not in head (bring it back, or acknowledge its removal)"
    return _verdict(base, None, _Ruling(Word.MISSING, Code.REMOVED, reason))


def judge_unloaded(base: Side, error: str) -> CaseVerdict:
    """Return the verdict on a case of base when head's suite does not load, for ``error``."""
    reason = f"head's suite does not load: {first_line(error)}"
    return _verdict(base, None, _Ruling(Word.ERROR, Code.SUITE, reason))


def _failed(head: Side) -> _Ruling:
    if head.status in ERRORS:
        reason = f"{head.status}: {cause(head)}"
        return _Ruling(Word.ERROR, _ERROR_CODES[head.status], reason)
    code = Code.FINDINGS if head.findings else Code.NUMBERS
    return _Ruling(Word.INCORRECT, code, cause(head))


def _unexecuted(base: Side | None, head: Side) -> _Ruling:
    """Rule on a case that head SKIPPED or could not emulate."""
    skipped = head.status is Status.SKIPPED
    code = Code.SKIPPED if skipped else Code.NOT_EMULATED
    if base and base.status is Status.PASSED:
        reason = f"PASSED at base, {head.status} at head: {cause(head)}"
        return _Ruling(Word.MISSING, code, reason)
    if not skipped:
        return _Ruling(Word.NOT_EMULATED, code, cause(head))
    if base and base.status is Status.SKIPPED:
        return _Ruling(Word.UNCHANGED, code, f"SKIPPED: {cause(head)}")
    return _Ruling(Word.NEW, code, f"SKIPPED: {cause(head)}")


def _added(base_gap: str) -> _Ruling:
    if base_gap:
        return _Ruling(Word.INCONCLUSIVE, Code.BASE_PARTIAL, base_gap)
    return _Ruling(Word.NEW, Code.ADDED, "PASSED, nothing at base to compare with")


def _now_passed(base: Side) -> _Ruling:
    """Rule on a case that PASSED at head only."""
    reason = f"PASSED, {base.status} at base: {cause(base)}"
    if base.failed:
        return _Ruling(Word.IMPROVEMENT, Code.FIXED, reason)
    return _Ruling(Word.NEW, Code.ADDED, reason)


def _different(base: Side, head: Side, found: Sequence[Change]) -> _Ruling | None:
    """Rule on a case whose figures differ; None if they do not."""
    worse = [change for change in found if change.fails]
    better = [change for change in found if change.improves]
    same_code = identical(base, head)
    lost = () if same_code else missing_figures(base, head)
    if lost:
        reason = f"base has figures that head lacks: {', '.join(lost)}"
        also = f"; {change_sentence(worse[0])}" if worse else ""
        return _Ruling(Word.MISSING, Code.FIGURES_MISSING, reason + also)
    # A launch can change with the same cubin, so identical code excuses no other figure.
    prefix = "identical code, other launch: " if same_code else ""
    if worse:
        reason = prefix + changes_sentence(worse, "worse")
        return _Ruling(Word.REGRESSION, _code(worse), reason)
    if better:
        reason = prefix + changes_sentence(better, "better")
        return _Ruling(Word.IMPROVEMENT, _code(better), reason)
    if found:
        reason = f"{prefix}nothing that can fail differs; {changes_sentence(found, 'different')}"
        return _Ruling(Word.UNCHANGED, Code.SHOWN, reason)
    return None


def _equal(base: Side, head: Side) -> _Ruling:
    """Rule on a case of which no figure differs."""
    if identical(base, head):
        return _Ruling(Word.UNCHANGED, Code.IDENTICAL, "identical code")
    if comparable(base, head):
        return _Ruling(Word.UNCHANGED, Code.EQUAL, "code differs, every figure equal")
    reason = "base and head have no figure in common"
    return _Ruling(Word.INCONCLUSIVE, Code.NOT_COMPARABLE, reason)


def _beside_figures(exact: _Ruling, timing: TimingVerdict) -> _Ruling:
    """Rule on a case whose times are of different runs: exact figures still fail it."""
    if timing.word is Word.REGRESSION:
        return _Ruling(timing.word, timing.reason_code, f"{timing.reason}; {exact.reason}")
    if exact.word is Word.REGRESSION:
        return exact
    return _Ruling(timing.word, timing.reason_code, f"{exact.reason}; {timing.reason}")


def _timed(base: Side, head: Side, timing: TimingVerdict, found: Sequence[Change]) -> _Ruling:
    """Rule on a case that was timed in this gate: exact figures only explain."""
    worse = [change for change in found if change.fails]
    better = [change for change in found if change.improves]
    explaining = {
        Word.REGRESSION: worse or list(found),
        Word.IMPROVEMENT: better or list(found),
    }.get(timing.word, worse)
    prefix = "identical code: " if identical(base, head) else ""
    tail = f"; {change_sentence(explaining[0])}" if explaining else ""
    return _Ruling(timing.word, timing.reason_code, f"{prefix}{timing.reason}{tail}")


def _code(changes: Sequence[Change]) -> Code:
    """Return whether a static figure or a counter changed most."""
    is_static = changes[0].metric in STATIC_NAMES
    return Code.STATIC if is_static else Code.COUNTERS


def _verdict(
    base: Side | None, head: Side | None, ruling: _Ruling, found: Sequence[Change] = ()
) -> CaseVerdict:
    known = head or base
    if known is None:
        msg = "a verdict needs at least one side"
        raise ValueError(msg)
    return CaseVerdict(
        id=known.case.id,
        ladder=known.case.ladder,
        stage=known.case.stage,
        verdict=ruling.word,
        code=ruling.code.value,
        reason=ruling.reason,
        base=base.status.value if base else ABSENT,
        head=head.status.value if head else ABSENT,
        changes=tuple(found),
        findings=head.findings if head else (),
        wrong=head.wrong if head else (),
        acknowledged="",
    )
