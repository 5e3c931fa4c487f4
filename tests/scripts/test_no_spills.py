"""Spills of a gate's head are named, on whatever architecture, and those of its base are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ci.results.model import StaticFigures
from ci.results.store import save, save_gate
from scripts.no_spills import main
from tests import builders

BASE, HEAD = builders.revision("b" * 40), builders.revision("a" * 40)
CLEAN = builders.static(arch="sm_90")
SPILLED = builders.static(arch="sm_75", spill_store_bytes=16, spill_load_bytes=24)


def judged(folder: Path, base: Sequence[StaticFigures], head: Sequence[StaticFigures]) -> int:
    """Store a gate whose sides have a stage of such figures, and check it."""
    records = [
        builders.record(
            builders.case(), stages=[builders.stage(figures=tuple(figures))], run=name, of=revision
        )
        for name, figures, revision in (("base", base, BASE), ("head", head, HEAD))
    ]
    for record in records:
        save(folder / "records", record)
    save_gate(folder / "verdict.json", builders.gate(*records))
    return main([str(folder)])


def test_a_spill_of_head_is_named_with_stage_architecture_and_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, [CLEAN], [CLEAN, SPILLED]) == 1
    said = capsys.readouterr().out
    assert said.startswith(
        "sgemm/01_naive on sm_75: expected no spills, got 16 bytes stored and 24"
    )


def test_a_spill_that_only_base_had_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, [SPILLED], [CLEAN]) == 0
    assert capsys.readouterr().out == "no spills on sm_90\n"


def test_a_gate_that_compiled_nothing_shows_no_absence_of_spills(tmp_path: Path) -> None:
    assert judged(tmp_path, [], []) == 1
