"""``flopwatch site``: the static dashboard and asv's pages, from record files alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ci.results.model import GateResult
from ci.results.store import load_all, load_gate
from ci.verbs import asv_pages
from ci.verbs.context import checkout_root, ledger_folder
from ci.verbs.noise import noise_of
from dashboards.build import build_site


def run(*, records: Sequence[str], verdicts: Sequence[str], out: str) -> int:
    """Build the site and print the path of its first page.

    asv's result files are remade beside the first folder of records. The noise of the machines is
    shown where their gates are kept on this one.
    """
    gates: list[GateResult] = [load_gate(Path(verdict)) for verdict in verdicts]
    # A run may lie in several folders: committed here, and on the branch that CI writes.
    runs = {record.run: record for folder in records for record in load_all(Path(folder))}
    front_page = asv_pages.publish(
        list(runs.values()),
        results=Path(records[0]).parent / "results",
        checkout=checkout_root(),
        site=Path(out),
    )
    machines = {run.machine.name for run in runs.values()} | {g.machine.name for g in gates}
    page = build_site(
        list(runs.values()),
        gates,
        Path(out),
        asv_pages=front_page,
        noise=noise_of(sorted(machines), ledger_folder()),
    )
    sys.stdout.write(f"{page}\n")
    return 0
