"""What a gate times, and how its rounds become verdicts and a stored run."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ci.gate.changes import identical
from ci.gate.ledger import noise_ledger
from ci.gate.settings import Settings
from ci.gate.sides import sides
from ci.gate.timing import TimingVerdict, decide
from ci.gate.validity import usual_ranges
from ci.measure.batch import GATE_METHOD_VERSION
from ci.measure.nvml import GpuWatch
from ci.measure.rounds import Setting, Taken, take_rounds
from ci.measure.sides import Side
from ci.results.model import (
    SCHEMA_VERSION,
    GateRun,
    Machine,
    Round,
    RunRecord,
    Status,
)

_PERF = "perf"
_SEED_BITS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class TimingPlan:
    """How a gate times its cases."""

    bench: str
    """``cuda``, or ``clock`` for Python callables."""
    cache: Path
    """Folder of the compile cache."""
    watch: GpuWatch
    settings: Settings
    budget_s: float
    """Time for all rounds (s)."""
    history: Sequence[GateRun]
    """Earlier gates, which tell how noisy a case is."""


def cases_to_time(base: RunRecord, head: RunRecord, *, measure_identical: bool) -> tuple[str, ...]:
    """Return the ids of the cases whose times a gate compares, in head's order.

    They are those of a perf size that PASSED on both sides and whose code differs.

    Args:
        base: What head is compared with.
        head: The run that is judged.
        measure_identical: Whether to time identical code too.
    """
    former = sides(base)
    return tuple(
        case
        for case, side in sides(head).items()
        if side.case.role == _PERF
        and side.status is Status.PASSED
        and case in former
        and former[case].status is Status.PASSED
        and (measure_identical or not identical(former[case], side))
    )


def time_gate(
    base: Side,
    head: Side,
    machine: Machine,
    cases: Sequence[str],
    plan: TimingPlan,
    *,
    say: Callable[[str], None],
) -> tuple[GateRun, Mapping[str, TimingVerdict]]:
    """Time cases on both sides until the rule has a verdict on each, or the time is up.

    Args:
        base: What head is compared with.
        head: The side that is judged.
        machine: What the gate runs on.
        cases: Ids of the cases, from ``cases_to_time``.
        plan: How.
        say: Told about each round, for people.

    Returns:
        Every sample, and case id → what the times say.

    Raises:
        SetupError: This machine lacks something that timing needs.
    """
    ledger = noise_ledger(plan.history, machine=machine.name, method_version=GATE_METHOD_VERSION)
    usual = usual_ranges(plan.history, machine=machine.name, method_version=GATE_METHOD_VERSION)
    started = datetime.now(UTC)

    def wanted(rounds: Sequence[Round]) -> Sequence[str]:
        return decide(rounds, cases, plan.settings, ledger).open

    taken = take_rounds(
        Setting(
            suites=(base.suite, head.suite),
            bench=plan.bench,
            cache=plan.cache,
            watch=plan.watch,
            usual=usual,
            seed=secrets.randbits(_SEED_BITS),
        ),
        wanted,
        budget_s=plan.budget_s,
        say=say,
    )
    run = stored(base, head, machine, taken, started)
    return run, decide(taken.rounds, cases, plan.settings, ledger).verdicts


def stored(base: Side, head: Side, machine: Machine, taken: Taken, started: datetime) -> GateRun:
    """Return the rounds of a gate in the form that is stored."""
    return GateRun(
        schema_version=SCHEMA_VERSION,
        run=f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        started=started.isoformat(timespec="milliseconds"),
        base=base.revision,
        head=head.revision,
        machine=machine,
        method_version=GATE_METHOD_VERSION,
        launches_per_sample={case: batch.launches for case, batch in taken.batches.items()},
        rounds=taken.rounds,
        fixed_s=taken.fixed_s,
        case_s=taken.case_s,
    )
