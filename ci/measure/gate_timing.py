"""What a gate times, and how its rounds become verdicts and a stored run."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ci.gate.changes import identical
from ci.gate.controls import fault as controls_fault
from ci.gate.controls import told, unscreened, without_words
from ci.gate.ledger import noise_ledger
from ci.gate.settings import Settings
from ci.gate.sides import sides
from ci.gate.timing import TimingVerdict, decide
from ci.gate.validity import usual_ranges
from ci.measure.batch import GATE_METHOD_VERSION
from ci.measure.controls import Controls, controls_of
from ci.measure.nvml import GpuWatch
from ci.measure.rounds import Setting, Taken, take_rounds
from ci.measure.sides import Side
from ci.results.gate_runs import RoundJournal, keep, kept, recover
from ci.results.model import (
    SCHEMA_VERSION,
    GateRun,
    Machine,
    Revision,
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
    ledger: Path
    """Folder of the gates kept on this machine, which tell how noisy a case is."""
    controls: Controls | None = None
    """None: those that come with flopwatch."""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class GateTiming:
    """What timing a gate brought."""

    run: GateRun
    """Every sample."""
    verdicts: Mapping[str, TimingVerdict]
    """Case id → what the times say."""
    controls: str
    """What became of the controls, in one line."""
    interrupted: bool
    """Whether Ctrl-C ended it, so that cases are left open."""


def time_gate(
    base: Side,
    head: Side,
    machine: Machine,
    cases: Sequence[str],
    plan: TimingPlan,
    *,
    say: Callable[[str], None],
) -> GateTiming:
    """Time cases on both sides until the rule has a verdict on each, or the time is up.

    The controls take part in the same rounds as long as a case is open, as a family of their own,
    and until they have those of the screen. If one of them is wrong or lacks these, no time counts.

    Args:
        base: What head is compared with.
        head: The side that is judged.
        machine: What the gate runs on.
        cases: Ids of the cases, from ``cases_to_time``.
        plan: How.
        say: Told about each round, for people.

    Every round is in the ledger's journal once it is over, and the gate in the ledger at its end.

    Raises:
        SetupError: This machine lacks something that timing needs.
        OSError: The ledger cannot be written.
    """
    for killed in recover(plan.ledger):
        say(f"kept of a timed gate that was killed: {len(killed.rounds)} rounds of cases")
    gates, troubles = kept(plan.ledger, machine.name)
    for trouble in troubles:
        say(f"left out of the noise ledger: {trouble}")
    history = [run for run in gates if not run.fault]
    ledger = noise_ledger(history, machine=machine.name, method_version=GATE_METHOD_VERSION)
    usual = usual_ranges(history, machine=machine.name, method_version=GATE_METHOD_VERSION)
    controls = plan.controls or controls_of(plan.bench)
    known = tuple(controls.cases)

    def wanted(rounds: Sequence[Round]) -> Sequence[str]:
        still = decide(rounds, cases, plan.settings, ledger).open
        beside = decide(rounds, known, plan.settings, ledger).open
        lacking = unscreened(rounds, known, plan.settings)
        return (*still, *(control for control in beside if still or control in lacking))

    gate = begun(base.revision, head.revision, machine)
    journal = RoundJournal(plan.ledger, gate)
    taken = take_rounds(
        Setting(
            suites=(base.suite, head.suite),
            bench=plan.bench,
            cache=plan.cache,
            watch=plan.watch,
            usual=usual,
            seed=secrets.randbits(_SEED_BITS),
            controls=controls,
        ),
        wanted,
        budget_s=plan.budget_s,
        keep=journal.add,
        say=say,
    )
    verdicts = decide(taken.rounds, cases, plan.settings, ledger).verdicts
    shown = decide(taken.rounds, known, plan.settings, ledger).verdicts
    wrong = controls_fault(shown, controls.slowed)
    if not wrong and (lacking := unscreened(taken.rounds, known, plan.settings)):
        wrong = (
            f"{lacking[0]} had fewer than the {plan.settings.screen_rounds} rounds of the screen"
        )
    run = stored(gate, taken, fault=wrong)
    keep(plan.ledger, run)
    journal.remove()
    return GateTiming(
        run=run,
        verdicts=without_words(verdicts, wrong) if wrong else verdicts,
        controls=told(shown, controls.slowed),
        interrupted=taken.interrupted,
    )


def begun(base: Revision, head: Revision, machine: Machine) -> GateRun:
    """Return the gate that begins now, without a round."""
    now = datetime.now(UTC)
    return GateRun(
        schema_version=SCHEMA_VERSION,
        run=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        started=now.isoformat(timespec="milliseconds"),
        base=base,
        head=head,
        machine=machine,
        method_version=GATE_METHOD_VERSION,
        launches_per_sample={},
        rounds=(),
        fixed_s=0.0,
        case_s={},
    )


def stored(gate: GateRun, taken: Taken, *, fault: str = "") -> GateRun:
    """Return a gate with its rounds, in the form that is stored."""
    return replace(
        gate,
        launches_per_sample={case: batch.launches for case, batch in taken.batches.items()},
        rounds=taken.rounds,
        fixed_s=taken.fixed_s,
        case_s=taken.case_s,
        fault=fault,
    )
