"""How a suite folder becomes ladders: found, imported by path, checked against the disk."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

from kernels.errors import SuiteLoadError
from kernels.spec import CudaStage, Ladder, Suite

LADDER_FILE = "ladder.py"
"""The file that makes a folder a ladder; it binds ``LADDER``."""


def load_suite(folder: Path) -> Suite:
    """Return the suite in a folder: every ``*/ladder.py`` in it, in name order.

    Each ladder.py is imported by path under a private module name, so the suite's own
    package names never meet ours, and two suites with one ladder name live side by side.

    Raises:
        SuiteLoadError: The folder holds no ladder, a ladder.py fails or declares no
            ``LADDER``, or the declared stages and the .cu files on disk differ.
    """
    root = folder.resolve()
    if not root.is_dir():
        msg = f"{folder}: is not a folder, expected a suite (a folder of <ladder>/{LADDER_FILE})"
        raise SuiteLoadError(msg)
    paths = sorted(root.glob(f"*/{LADDER_FILE}"))
    if not paths:
        msg = f"{folder}: holds no ladder (add <ladder>/{LADDER_FILE} that binds LADDER)"
        raise SuiteLoadError(msg)
    return Suite(name=root.name, folder=root, ladders=tuple(_load_ladder(path) for path in paths))


def _load_ladder(path: Path) -> Ladder:
    """Return the ladder that a ladder.py declares, checked against its folder."""
    where = f"{path.parent.name}/{LADDER_FILE}"
    ladder = _import_ladder(path, where)
    if ladder.name != path.parent.name:
        expected = f"expected its folder's name {path.parent.name!r} (rename one of them)"
        msg = f"{where}: the problem is named {ladder.name!r}, {expected}"
        raise SuiteLoadError(msg)
    _refuse_drift(ladder, path.parent, where)
    return ladder


class _FreshLoader(SourceFileLoader):
    """Compiles the file at every import: a cached .pyc of an edited ladder is never used."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the file as it is on disk now, and write no .pyc."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _import_ladder(path: Path, where: str) -> Ladder:
    """Run a ladder.py and return its ``LADDER``."""
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:16]
    name = f"_suite_{digest}_{path.parent.name}"
    loader = _FreshLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    if spec is None:
        msg = f"{where}: cannot be imported (expected a Python file)"
        raise SuiteLoadError(msg)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses in a ladder.py look their module up while it runs.
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = _line_in(path, error)
        msg = f"{where}:{line}: {type(error).__name__}: {error} (correct the declaration)"
        raise SuiteLoadError(msg) from error
    ladder = getattr(module, "LADDER", None)
    if not isinstance(ladder, Ladder):
        msg = (
            f"{where}: LADDER is {type(ladder).__name__}, expected a Ladder (LADDER = Ladder(...))"
        )
        raise SuiteLoadError(msg)
    return ladder


def _line_in(path: Path, error: BaseException) -> int:
    """Return the deepest line of a file that an error passed through (1-based; 0: none)."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 0
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno or 0 for frame in frames if frame.filename == str(path)]
    return lines[-1] if lines else 0


def _refuse_drift(ladder: Ladder, folder: Path, where: str) -> None:
    """Raise if a stage has no file, or a .cu file no stage."""
    declared = {stage.source for stage in ladder.stages if isinstance(stage, CudaStage)}
    on_disk = {path.name for path in folder.glob("*.cu")}
    for source in sorted(declared - on_disk):
        msg = f"{where}: declares {ladder.name}/{source}, which is not on disk"
        raise SuiteLoadError(f"{msg} (add the file, or delete the CudaStage)")
    for source in sorted(on_disk - declared):
        msg = f"{ladder.name}/{source}: is not declared in {where}"
        raise SuiteLoadError(f"{msg} (add a CudaStage, or delete the file)")
