"""Checks that no stage of a gate's head spills registers, on any architecture it was compiled for.

``python -m scripts.no_spills GATE_OUT`` after ``flopwatch gate --arch all --out GATE_OUT``: a gate
compares spills with base's, this holds them to none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ci.results.model import RunRecord
from ci.results.store import load_all, load_gate


def spills(record: RunRecord) -> Iterator[str]:
    """Give a line for each kernel of a record that spills."""
    for stage in record.stages:
        for figures in stage.static:
            stored, loaded = figures.spill_store_bytes, figures.spill_load_bytes
            if stored or loaded:
                yield (
                    f"{stage.ladder}/{stage.stage} on {figures.arch}: expected no spills, got "
                    f"{stored} bytes stored and {loaded} loaded by {figures.kernel}"
                )


def main(words: Sequence[str] | None = None) -> int:
    """Print what spills; return 1 if anything does, or if nothing was compiled."""
    (folder,) = sys.argv[1:] if words is None else words
    head = load_gate(Path(folder) / "verdict.json").head
    records = [each for each in load_all(Path(folder) / "records") if each.revision == head]
    found = [line for record in records for line in spills(record)]
    compiled = {
        figures.arch for record in records for stage in record.stages for figures in stage.static
    }
    print("\n".join(found) or f"no spills on {', '.join(sorted(compiled)) or 'no architecture'}")
    return int(bool(found) or not compiled)


if __name__ == "__main__":
    sys.exit(main())
