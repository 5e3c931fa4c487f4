"""The asv plug-in: one interpreter for all commits, machine names, strict result files.

asv loads this module because ``asv.conf.json`` names it, and calls ``setup``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from asv import util
from asv.console import log
from asv.environment import Environment
from asv.machine import Machine, MachineCollection
from asv.results import Results

from ci.asv.measuring import SCRATCH
from ci.devices.driver import gpu_facts
from ci.errors import CiError
from ci.measure.errors import MeasureError
from ci.measure.machine import cuda_machine_name
from ci.results import store
from ci.results.asv_export import export, machine_entry, write
from ci.results.asv_validate import validate_results
from ci.results.errors import ResultsError
from ci.results.model import RunRecord
from ci.verbs.context import choose_device
from kernels.errors import KernelError

_HOME = Path(__file__).resolve().parents[2]
_RECORDS = Path("records")
_RESULTS = Path("results")


class Overlay(Environment):  # type: ignore[misc]  # asv has no types
    """An environment that installs nothing: the interpreter stays, only the commit changes.

    The interpreter is the one that runs asv, with this flopwatch and its heavy wheels. A commit's
    suite is laid over it by the measurement, which exports it from git. So old commits are
    measured by today's method, and changing the commit costs nothing.
    """

    tool_name = "overlay"
    matches_python_fallback = False

    def __init__(
        self,
        conf: object,
        python: str,
        requirements: dict[str, str],
        tagged_env_vars: dict[tuple[str, str], str],
    ) -> None:
        """Take asv's arguments; requirements mean nothing where nothing is installed."""
        del requirements
        # asv's constructor reads these two through ``name`` and ``installed_commit_hash``.
        self._label = getattr(conf, "overlay_name", "flopwatch")
        self._commit: str | None = None
        self._requirements: dict[str, str] = {}
        super().__init__(conf, python, {}, tagged_env_vars)

    @classmethod
    def matches(cls, python: str) -> bool:
        """Accept whatever version asv.conf.json names: the interpreter is the one at hand."""
        del python
        return True

    @property
    def name(self) -> str:
        """Return the name in file names, without paths and versions."""
        return str(self._label)

    @property
    def installed_commit_hash(self) -> str | None:
        """Return the commit that is measured next."""
        return self._commit

    def check_presence(self) -> bool:
        """Return whether the environment is there, which it always is."""
        return True

    def create(self) -> None:
        """Do nothing: there is nothing to create."""

    def install_project(self, conf: object, repo: object, commit_hash: str) -> None:
        """Choose the commit that is measured next."""
        del conf, repo
        self._set_commit_hash(commit_hash)
        self._commit = commit_hash

    def run(self, args: list[str], **options: object) -> object:
        """Run the interpreter on asv's benchmark script."""
        given = options.pop("env", None)
        environment = dict(given if isinstance(given, dict) else os.environ)
        environment.update(self._global_env_vars)
        return util.check_output([sys.executable, *args], env=environment, **options)


def setup() -> None:
    """Prepare asv for this repository; asv calls it in the folder of asv.conf.json.

    Raises:
        util.UserError: The result files are not sound, or this machine cannot measure.
    """
    try:
        validate_results(_RESULTS)
        device = choose_device("auto")
        machine = device if device == "simulator" else cuda_machine_name(gpu_facts())
    except (CiError, MeasureError, ResultsError, KernelError) as error:
        raise util.UserError(str(error)) from error
    # The benchmarks import this very copy of flopwatch, also with --python=same.
    os.environ["ASV_PYTHONPATH"] = str(_HOME)
    # GPU model and runner slot name the machine, not the host.
    Machine.hardcoded_machine_name = machine
    MachineCollection.save(machine, machine_entry(machine))
    # asv has no hook for what follows a commit. Its own file would hold NaN for whatever a machine
    # cannot give, and no record would be kept.
    Results.save = _save


def _save(result: Results, results_dir: str) -> None:
    """Keep the record behind asv's results, and write its export where asv's file would be."""
    commit, machine = result.commit_hash, result.params["machine"]
    waiting = SCRATCH / machine / commit
    paths = sorted(waiting.glob("*.json"))
    if not paths:
        _explain_missing(result, waiting)
        return
    try:
        kept = store.save(_RECORDS, store.load(paths[-1]))
        records = [store.load(path) for path in sorted(kept.parent.glob("*.json"))]
        _write_commit(records, Path(results_dir))
    except ResultsError as error:
        raise util.UserError(str(error)) from error
    for path in paths:
        path.unlink()
    log.info(f"Record: {kept}")


def _write_commit(records: list[RunRecord], results: Path) -> None:
    """Write one commit's file; the indexes are asv's own until the site is built."""
    exported = export(records)
    files = {path: text for path, text in exported.files.items() if "/" in path}
    write(type(exported)(files=files, left_out=()), results)


def _explain_missing(result: Results, waiting: Path) -> None:
    """Say why there is no record to save.

    Raises:
        util.UserError: Something was measured, but not this commit.
    """
    if any(code != 0 for code in result.errcode.values()):
        log.warning(f"Nothing was measured of {result.commit_hash[:8]} (asv run -e says why)")
        return
    others = ", ".join(sorted(each.name for each in waiting.parent.glob("*"))) or "nothing"
    msg = (
        f"expected a measurement of commit {result.commit_hash}, got {others}: asv would keep "
        f"figures under the wrong commit (commit the changes of kernels/, or name the commit that "
        f"is checked out with --set-commit-hash)"
    )
    raise util.UserError(msg)
