"""Small timed rounds for tests; each test states only what it is about."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ci.gate.ledger import NoiseEntry
from ci.gate.settings import STANDARD, Settings
from ci.gate.timing import Decision, decide
from ci.results.model import SCHEMA_VERSION, GateRun, MachineState, Pair, Round
from tests import builders

CALM = MachineState(
    sm_clock_hz=1_980_000_000,
    memory_clock_hz=3_201_000_000,
    power_w=400.0,
    temperature_c=50.0,
    slowdowns=(),
)


def pairs(logs: Sequence[float], *, base_s: float = 1e-3) -> tuple[Pair, ...]:
    """Return pairs with these logarithms of head over base, in alternating order."""
    return tuple(
        Pair(base_s=base_s, head_s=base_s * math.exp(log), base_first=index % 2 == 0)
        for index, log in enumerate(logs)
    )


def one_round(
    case: str,
    number: int,
    *logs: float,
    base_s: float = 1e-3,
    invalid: str = "",
    base_state: MachineState = CALM,
    head_state: MachineState = CALM,
) -> Round:
    """Return a round of a case; one logarithm alone stands for two equal pairs."""
    return Round(
        case=case,
        number=number,
        base_started_first=number % 2 == 0,
        pairs=pairs(logs if len(logs) > 1 else logs * 2, base_s=base_s),
        base_state=base_state,
        head_state=head_state,
        invalid=invalid,
    )


def rounds(case: str, estimates: Sequence[float], *, base_s: float = 1e-3) -> list[Round]:
    """Return rounds 0, 1, … with these estimates."""
    return [one_round(case, n, value, base_s=base_s) for n, value in enumerate(estimates)]


def noise(sd: float, *, degrees: int = 12, gates: int = 4, undecided: int = 0) -> NoiseEntry:
    """Return a ledger entry with a standard deviation of a round's estimate."""
    return NoiseEntry(variance=sd**2, degrees_of_freedom=degrees, gates=gates, undecided=undecided)


def run_gate(
    measure: Callable[[str, int], Round],
    cases: Sequence[str],
    settings: Settings = STANDARD,
    ledger: Mapping[str, NoiseEntry] | None = None,
) -> tuple[Decision, list[Round]]:
    """Measure what the rule asks for until nothing is open; return decision and rounds."""
    taken: list[Round] = []
    for number in range(40):
        decision = decide(taken, cases, settings, ledger or {})
        if not decision.open:
            return decision, taken
        taken += [measure(case, number) for case in decision.open]
    msg = "the rule asks for rounds without end"
    raise AssertionError(msg)


def gate_run(
    taken: Sequence[Round],
    *,
    started: str = builders.STARTED,
    machine: str = "h200",
    method_version: int = 1,
    head: str = "c" * 40,
) -> GateRun:
    """Return a stored gate; give ``head`` base's commit for a gate of equal code."""
    return GateRun(
        schema_version=SCHEMA_VERSION,
        run="20250102T030405Z-abcdef",
        started=started,
        base=builders.revision("a" * 40),
        head=builders.revision(head),
        machine=builders.machine(name=machine, device="cuda"),
        method_version=method_version,
        launches_per_sample=dict.fromkeys((entry.case for entry in taken), 100),
        rounds=tuple(taken),
        fixed_s=3.0,
        case_s={},
    )
