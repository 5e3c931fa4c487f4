"""One run at a time on a GPU, and the lock goes with the process that held it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ci.measure.errors import SetupError
from ci.measure.lock import exclusive_gpu, lock_folder
from ci.measure.nvml import GpuWatch

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys
from ci.measure.lock import exclusive_gpu
from ci.measure.nvml import GpuWatch
with exclusive_gpu(sys.argv[1], GpuWatch(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


class Busy(GpuWatch):
    """A GPU on which others compute."""

    def compute_processes(self) -> tuple[int, ...] | None:
        return (4711,)


@pytest.fixture
def uuid(tmp_path: Path) -> str:
    return f"GPU-test-{abs(hash(str(tmp_path)))}"


def hold(uuid: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, uuid],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_gpu_in_use_is_refused_with_the_process_that_holds_it(uuid: str) -> None:
    with hold(uuid) as other:
        with (
            pytest.raises(SetupError, match=f"process {other.pid} "),
            exclusive_gpu(uuid, GpuWatch(uuid)),
        ):
            pass
        other.kill()


def test_a_killed_holder_lets_go(uuid: str) -> None:
    with hold(uuid) as other:
        other.kill()
    with exclusive_gpu(uuid, GpuWatch(uuid)):
        pass


def test_two_gpus_are_held_at_once(uuid: str) -> None:
    with exclusive_gpu(uuid, GpuWatch(uuid)), exclusive_gpu(f"{uuid}-2", GpuWatch(uuid)):
        pass


def test_a_gpu_on_which_another_process_computes_is_refused(uuid: str) -> None:
    with (
        pytest.raises(SetupError, match="process 4711 computes on it"),
        exclusive_gpu(uuid, Busy(uuid)),
    ):
        pass
    with exclusive_gpu(uuid, GpuWatch(uuid)):
        pass


def test_the_lock_lies_where_this_user_may_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert lock_folder().is_dir()
