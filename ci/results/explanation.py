"""What ``flopwatch explain`` tells of a case: its counters and findings, line by line."""

from __future__ import annotations

from dataclasses import dataclass

from ci.results.model import Counters, Finding, LineCounters, Status, SubCheck


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """One case on the simulator; counters also of a case that is wrong."""

    id: str
    status: Status
    reason: str
    """Why not PASSED; empty if PASSED."""
    counting: str
    """How the counters came about: ``every block executed``, or which were sampled and whether
    the figures are exact. Empty if there are none."""
    subcheck: SubCheck | None
    """The comparison with the reference; None if there was none."""
    findings: tuple[Finding, ...]
    counters: Counters | None
    lines: tuple[LineCounters, ...]
    """Source lines that count something or have a finding, in file and line order."""
    output: tuple[str, ...]
    """Lines that the kernel printed; none where only some blocks were executed."""
    output_elements: int
    flops: int
    compulsory_bytes: int
