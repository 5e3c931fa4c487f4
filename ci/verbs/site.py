"""``flopwatch site``: the static dashboard, from record files alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ci.results.model import GateResult
from ci.results.store import load_all, load_gate
from dashboards.build import build_site


def run(*, records: str, verdicts: Sequence[str], out: str) -> int:
    """Build the site and print the path of its first page."""
    gates: list[GateResult] = [load_gate(Path(verdict)) for verdict in verdicts]
    page = build_site(load_all(Path(records)), gates, Path(out))
    sys.stdout.write(f"{page}\n")
    return 0
