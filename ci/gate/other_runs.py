"""Times of two different runs: what can be said where nothing was measured side by side."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from ci.gate import timing_words as words
from ci.gate.changes import identical
from ci.gate.codes import Code
from ci.gate.errors import MachineMismatchError
from ci.gate.sides import sides
from ci.gate.timing import TimingVerdict
from ci.results.model import Measurement, RunRecord, Word

_LARGE = 1.10
"""Ratio of times above which two runs on one machine do not explain the difference."""


def timings_of_other_runs(base: RunRecord, head: RunRecord) -> Mapping[str, TimingVerdict]:
    """Return case id → verdict, for the cases that both records timed and whose code differs.

    Raises:
        MachineMismatchError: A case was measured by two methods.
        DuplicateCaseError: A record holds one case twice.
    """
    former = sides(base)
    verdicts = {}
    for case, side in sides(head).items():
        before = former[case].case.cold if case in former else None
        after = side.case.cold
        if before and after:
            _require_one_method(case, before, after)
            if not identical(former[case], side):
                verdicts[case] = _verdict(before, after)
    return verdicts


def _require_one_method(case: str, base: Measurement, head: Measurement) -> None:
    if base.method_version != head.method_version:
        msg = (
            f"{case}: expected times of one method version, got {base.method_version} at base and "
            f"{head.method_version} at head (measure both again with one flopwatch)"
        )
        raise MachineMismatchError(msg)


def _verdict(base: Measurement, head: Measurement) -> TimingVerdict:
    base_s = statistics.median(base.samples_s)
    head_s = statistics.median(head.samples_s)
    ratio = head_s / base_s
    figures = f"{words.size(ratio, 1)}, {words.times(base_s, head_s)}, in different runs"
    if ratio > _LARGE:
        return TimingVerdict(
            word=Word.REGRESSION, reason_code=Code.OTHER_RUN, reason=figures, timing=None
        )
    return TimingVerdict(
        word=Word.INCONCLUSIVE,
        reason_code=Code.OTHER_RUN,
        reason=f"{figures}, which tell nothing below +10 % (measure side by side: flopwatch gate)",
        timing=None,
    )
