"""The walls between rooms, and the size and shape of files."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("kernels", "ci", "dashboards")
LINE_CAPS = {".py": 400, ".cu": 300, ".cuh": 300}
VAGUE_NAMES = {"util", "utils", "common", "misc", "helpers"}
PLANTED = {
    "Imports point down; rooms side by side do not know each other": "ci/check/run.py: ci.static",
    "Pages and reports are made from results alone": "dashboards/build.py: ci.gate.policy",
    "The gate is a pure function of results": "ci/gate/policy.py: pathlib",
    "The data contract and the static figures need the standard library alone": (
        "ci/static/figures.py: numpy"
    ),
    "The simulator needs NumPy alone": "ci/simulator/parser.py: scipy",
    "The check knows devices through their protocol": "ci/check/run.py: ci.devices.simulator",
    "Declaring kernels needs no compiler and no arrays": "kernels/spec.py: numpy",
    "Only the command line builds pages": "ci/report/terminal.py: dashboards",
    "Only its device runs the simulator": "ci/check/run.py: ci.simulator",
    "Everything but its own entry point works without asv": "ci/verbs/site.py: asv",
    "Only the CUDA device and the measurement need CuPy": "kernels/build.py: cupy",
    "Only the GitHub client talks to the network": "ci/verbs/site.py: urllib.request",
}
"""Contract → a module, and an import that breaks the contract there."""


def _files(*suffixes: str) -> Iterator[Path]:
    for folder in (*PACKAGES, "tests", "scripts", "asv_bench"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes:
                yield path


def _problems(path: Path) -> list[str]:
    """Return what is wrong with the size and shape of one file."""
    text = path.read_text(encoding="utf-8")
    problems = []
    cap = LINE_CAPS[path.suffix]
    if (lines := len(text.splitlines())) > cap:
        problems.append(f"{path}: {lines} lines, at most {cap}")
    if VAGUE_NAMES & {path.stem, path.parent.name}:
        problems.append(f"{path}: a name that says what is inside")
    if path.suffix == ".py" and text.strip() and not ast.get_docstring(ast.parse(text)):
        problems.append(f"{path}: no module docstring")
    return problems


def _lint(folder: Path) -> dict[str, str]:
    """Return what import-linter says of each contract: ``KEPT`` or ``BROKEN``."""
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
    )
    said = dict(re.findall(r"^(\S.*) (KEPT|BROKEN)\b", done.stdout, re.MULTILINE))
    assert said, done.stdout + done.stderr
    return said


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the packages that a test may spoil."""
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_files_are_short_and_say_what_they_are_for() -> None:
    paths = list(_files(*LINE_CAPS))
    assert len(paths) > 50
    assert [problem for path in paths for problem in _problems(path)] == []


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("long.py", '"""Long."""\n' + "x = 1\n" * 400, "401 lines, at most 400"),
        ("long.cu", "//\n" * 301, "301 lines, at most 300"),
        ("silent.py", "x = 1\n", "no module docstring"),
        ("util.py", '"""Anything."""\n', "a name that says what is inside"),
    ],
)
def test_a_file_of_the_wrong_shape_is_noticed(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert [each.removeprefix(f"{path}: ") for each in _problems(path)] == [problem]


def test_every_room_is_a_package_that_import_linter_sees() -> None:
    rooms = {path.parent for path in _files(".py") if path.relative_to(ROOT).parts[0] in PACKAGES}
    # A ladder's folder is loaded by path, so it is no package.
    packages = {room for room in rooms if not (room / "ladder.py").exists()}
    assert [room for room in sorted(packages) if not (room / "__init__.py").exists()] == []


def test_every_wall_between_rooms_stands_and_has_a_planted_fault() -> None:
    assert _lint(ROOT) == dict.fromkeys(PLANTED, "KEPT")


@pytest.mark.parametrize("contract", PLANTED)
def test_an_import_through_a_wall_is_noticed(copied: Path, contract: str) -> None:
    path, _, module = PLANTED[contract].partition(": ")
    assert (copied / path).exists()
    with (copied / path).open("a", encoding="utf-8") as file:
        file.write(f"import {module}\n")
    assert _lint(copied)[contract] == "BROKEN"


@pytest.mark.parametrize("module", ["kernels.build", "dashboards.build", "ci.cli"])
def test_nothing_but_the_cuda_device_needs_cupy(module: str) -> None:
    code = f"import sys; sys.modules['cupy'] = None; import {module}"
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, check=True)
