"""The asv files in the repository are the export of its records."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.results.asv_export import export
from ci.results.asv_validate import validate_results
from ci.results.store import load
from tests.asv.asv_repository import ROOT, git

RECORDS = ROOT / "records"
RESULTS = ROOT / "results"


def committed(folder: Path) -> set[str]:
    listed = git(ROOT, "ls-files", "--", str(folder.relative_to(ROOT)))
    return {path for path in listed.splitlines() if path.endswith(".json")}


def test_committed_results_are_remade_from_committed_records() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this copy has no git, which tells committed records from new ones")
    # records/MACHINE/COMMIT/RUN.json; tables lie a level higher.
    kept = {path for path in committed(RECORDS) if path.count("/") == 3}
    if not kept:
        pytest.skip("no record is committed yet")
    exported = export([load(ROOT / path) for path in sorted(kept)]).files
    assert committed(RESULTS) == {f"results/{path}" for path in exported}
    assert {path: (RESULTS / path).read_text() for path in exported} == dict(exported)
    validate_results(RESULTS)
