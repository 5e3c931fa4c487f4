"""Every form of an instruction gives here what it gave on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.golden.model import Recording
from scripts.golden.store import load
from scripts.golden_vectors import replayed

_FOLDER = Path(__file__).parents[1] / "data" / "golden-vectors"
_FILES = sorted(_FOLDER.glob("*.npz"))

pytestmark = pytest.mark.skipif(not _FILES, reason="no vectors have been recorded on a GPU yet")


@pytest.fixture(scope="module", params=_FILES, ids=lambda path: path.stem)
def recording(request: pytest.FixtureRequest) -> Recording:
    return load(request.param)


def test_the_vectors_come_from_a_gpu(recording: Recording) -> None:
    assert recording.origin.gpu.startswith("NVIDIA ")
    assert recording.origin.driver
    assert recording.origin.architecture.startswith("sm_")


def test_every_emulated_form_agrees_with_the_gpu(recording: Recording) -> None:
    missing: list[str] = []
    wrong: list[str] = []
    for form, found, _ in replayed(recording):
        if found is None:
            missing.append(form.name)
        elif found.differing:
            wrong.append(f"{form.name}: {found.differing} values, {found.example}")
    assert not wrong, "\n".join(wrong)
    assert len(missing) < len(recording.forms) / 2, "most forms are not emulated"
