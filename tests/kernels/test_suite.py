"""Loading a suite: by path, side by side, and refused when anything is out of step."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from kernels import load_suite
from kernels.errors import SuiteLoadError


def rewrite(path: Path, old: str, new: str) -> None:
    """Replace a piece of a file that must be there."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_sound_suite_loads(folder: Path) -> None:
    suite = load_suite(folder)
    assert suite.name == "outside"
    assert [case.id for case in suite.cases()] == ["copy/01_copy[N=100]"]
    assert suite.source_path(suite.ladders[0], suite.ladders[0].stages[0]).is_file()  # type: ignore[arg-type]


def test_two_suites_with_one_ladder_name_live_side_by_side(folder: Path) -> None:
    other = shutil.copytree(folder, folder.parent / "other")
    rewrite(other / "copy/ladder.py", "Y = X", "other")
    assert load_suite(folder).ladders[0].problem.title == "Y = X"
    assert load_suite(other).ladders[0].problem.title == "other"
    assert load_suite(folder).ladders[0].problem.title == "Y = X"


def test_loading_leaves_the_search_path_and_public_names_alone(folder: Path) -> None:
    paths = list(sys.path)
    load_suite(folder)
    assert sys.path == paths
    assert "ladder" not in sys.modules
    assert not list(folder.rglob("*.pyc"))


def test_an_edited_ladder_is_read_again(folder: Path) -> None:
    load_suite(folder)
    rewrite(folder / "copy/ladder.py", "N=100", "N=101")
    assert load_suite(folder).cases()[0].size.label == "N=101"


def test_a_folder_without_ladders_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteLoadError, match="holds no ladder"):
        load_suite(tmp_path)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteLoadError, match="is not a folder"):
        load_suite(tmp_path / "none")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("LADDER = Ladder(", "LADDER = Ladder((", r"copy/ladder\.py:\d+: SyntaxError"),
        ("flops=lambda size: 0", "flops=nope", r"copy/ladder\.py:\d+: NameError: name 'nope'"),
        ("LADDER = Ladder(", "OTHER = Ladder(", "LADDER is NoneType, expected a Ladder"),
        ('name="copy"', 'name="paste"', "named 'paste', expected its folder's name 'copy'"),
        ("check(N=100)", "check(M=100)", r"ladder\.py:\d+: DeclarationError: copy: size M=100"),
        ("LADDER = Ladder(", "raise SystemExit(3)\nX = dict(", r"ladder\.py:5: SystemExit: 3"),
        ("01_copy.cu", "02_copy.cu", r"copy/02_copy\.cu, which is not on disk \(add the file"),
    ],
)
def test_a_broken_declaration_is_refused_with_its_place(
    folder: Path, old: str, new: str, message: str
) -> None:
    rewrite(folder / "copy/ladder.py", old, new)
    with pytest.raises(SuiteLoadError, match=message):
        load_suite(folder)


def test_an_undeclared_source_is_refused(folder: Path) -> None:
    (folder / "copy/02_new.cu").write_text("", encoding="utf-8")
    with pytest.raises(SuiteLoadError, match=r"copy/02_new\.cu: is not declared.*add a CudaStage"):
        load_suite(folder)
