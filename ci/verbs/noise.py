"""What the gates kept on this machine tell about noise, as the dashboard shows it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from ci.gate.ledger import NoiseEntry, noise_ledger
from ci.measure.batch import GATE_METHOD_VERSION
from ci.results.gate_runs import kept
from ci.verbs.context import note
from dashboards.noise_page import CaseNoise, MachineNoise


def noise_of(machines: Iterable[str], ledger: Path) -> list[MachineNoise]:
    """Return the noise of the machines whose gates are kept here.

    Args:
        machines: Names of machines.
        ledger: Folder of the gates kept on this machine.
    """
    found = []
    for machine in machines:
        gates, troubles = kept(ledger, machine)
        for trouble in troubles:
            note(f"left out of the noise ledger: {trouble}")
        if gates:
            sound = [gate for gate in gates if not gate.fault]
            entries = noise_ledger(sound, machine=machine, method_version=GATE_METHOD_VERSION)
            found.append(
                MachineNoise(
                    machine=machine,
                    gates=len(gates),
                    faulty=len(gates) - len(sound),
                    cases=tuple(_case(case, entry) for case, entry in entries.items()),
                )
            )
    return found


def _case(case: str, entry: NoiseEntry) -> CaseNoise:
    return CaseNoise(
        case=case,
        deviation=None if math.isnan(entry.variance) else math.sqrt(entry.variance),
        used=not math.isnan(entry.usable_variance),
        gates=entry.gates,
        undecided=entry.undecided,
        quarantined=entry.quarantined,
    )
