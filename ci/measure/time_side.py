"""Adds times to the cases of one side that passed their check."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace

from ci.measure.alone import BASELINE, COLD, HOT, Timed, time_alone
from ci.measure.nvml import GpuWatch
from ci.measure.session import Keep, Plan, SideRun
from ci.results.model import CaseResult, Status

_PERF = "perf"
_SEED_BITS = 32


def time_side(
    run: SideRun, plan: Plan, watch: GpuWatch, *, keep: Keep, say: Callable[[str], None]
) -> None:
    """Time the perf cases of a side that PASSED, and keep their results with times.

    Args:
        run: The side, checked.
        plan: What is run and how.
        watch: The GPU as its management library shows it.
        keep: Called with each case once it has its times.
        say: Told about each round, for people.

    Raises:
        SetupError: This machine lacks something that timing needs.
    """
    passed = [
        result
        for result in run.record().cases
        if result.role == _PERF and result.status is Status.PASSED
    ]
    if not passed:
        return
    run.finished = False
    found = time_alone(
        run.side.suite,
        [result.id for result in passed],
        bench=plan.device,
        cache=plan.cache,
        watch=watch,
        seed=secrets.randbits(_SEED_BITS),
        say=say,
    )
    for result in passed:
        keep(run, run.finish(with_times(result, found[result.id])))
    run.finished = True


def with_times(result: CaseResult, timed: Timed) -> CaseResult:
    """Return a PASSED case with its times, or as LAUNCH_ERROR if it could not be timed."""
    if COLD not in timed.measurements:
        return replace(
            result,
            status=Status.LAUNCH_ERROR,
            reason=f"right when launched once, but not timed: {timed.trouble}",
            counters=None,
            lines=(),
        )
    return replace(
        result,
        cold=timed.measurements[COLD],
        hot=timed.measurements.get(HOT),
        baseline=timed.measurements.get(BASELINE),
    )
