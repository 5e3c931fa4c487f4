"""Every form of an instruction gives here what it gave on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.golden.model import Recording
from scripts.golden.store import load
from scripts.golden_vectors import replayed

_FOLDER = Path(__file__).parents[1] / "data" / "golden-vectors"
_FILES = sorted(_FOLDER.glob("*.npz"))
_LISTED = _FOLDER / "disagreements.txt"
"""Forms that do not give yet what the GPU gave: a list that only gets shorter."""

pytestmark = pytest.mark.skipif(not _FILES, reason="no vectors have been recorded on a GPU yet")


@pytest.fixture(scope="module", params=_FILES, ids=lambda path: path.stem)
def recording(request: pytest.FixtureRequest) -> Recording:
    return load(request.param)


def test_the_vectors_come_from_a_gpu(recording: Recording) -> None:
    assert recording.origin.gpu.startswith("NVIDIA ")
    assert recording.origin.driver
    assert recording.origin.architecture.startswith("sm_")


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_every_form_agrees_with_the_gpu_but_the_listed_ones(recording: Recording) -> None:
    missing: list[str] = []
    wrong: dict[str, str] = {}
    for form, found, _ in replayed(recording):
        if found is None:
            missing.append(form.name)
        elif found.differing:
            wrong[form.name] = f"{form.name}: {found.differing} values, {found.example}"
    listed = set(_LISTED.read_text(encoding="utf-8").split())
    new = [sentence for name, sentence in wrong.items() if name not in listed]
    assert not new, "\n".join(new)
    assert listed <= set(wrong), f"these agree now, take them off {_LISTED.name}"
    assert not missing, f"not emulated: {', '.join(missing)}"
