"""Bad input of every kind ends in one clear line and its exit code, never in a traceback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import site
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]


def flopwatch(
    *arguments: str, cwd: Path = ROOT, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "ci", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def assert_refused(done: subprocess.CompletedProcess[str], *parts: str, code: int = 2) -> None:
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    for part in parts:
        assert part in last, last


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout of one folder: the real suite, without git."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "kernels", tmp_path / "small/kernels", ignore=ignored)
    return tmp_path / "small"


def test_an_unknown_revision_is_refused() -> None:
    done = flopwatch("gate", "--base", "no-such-branch")
    assert_refused(done, "--base no-such-branch", "neither a revision git knows nor a folder")


def test_a_selection_without_cases_is_refused(tmp_path: Path) -> None:
    for verb in (["list"], ["gate", "--out", str(tmp_path)], ["check"]):
        done = flopwatch(*verb, "-k", "no_such_case")
        assert_refused(done, "no_such_case", "flopwatch list")


def test_an_expression_that_cannot_be_read_is_refused() -> None:
    assert_refused(flopwatch("list", "-k", "naive and"), "-k 'naive and'", "a word is missing")


def test_a_suite_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for verb in (["list"], ["gate", "--out", str(tmp_path)], ["check"], ["measure"]):
        done = flopwatch(*verb, "--suite", "nowhere")
        assert_refused(done, "nowhere")


def test_a_suite_that_does_not_load_is_refused_where_nothing_is_compared(small: Path) -> None:
    (small / "kernels/sgemm/ladder.py").write_text("LADDER = 1 +\n")
    for verb in ("list", "check", "measure"):
        assert_refused(flopwatch(verb, cwd=small), "sgemm/ladder.py")


def test_a_truncated_record_is_refused_with_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "records/simulator/abc"
    folder.mkdir(parents=True)
    record = folder / "run.json"
    record.write_text('{"schema_version": 1, "run": "20')
    assert_refused(flopwatch("compare", str(record), str(record)), str(record), "JSON")
    done = flopwatch("site", "--records", str(tmp_path / "records"), "--out", str(tmp_path / "s"))
    assert_refused(done, str(record))


def test_a_record_that_is_not_there_is_refused() -> None:
    assert_refused(flopwatch("compare", "nowhere.json", "nowhere.json"), "nowhere.json")


@pytest.mark.skipif(Path("/sys/module/nvidia").exists(), reason="this machine has a GPU driver")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    done = flopwatch("gate", "--device", "cuda")
    assert_refused(done, "--device cuda", "no NVIDIA GPU", "--device simulator")


@pytest.mark.skipif(Path("/sys/module/nvidia").exists(), reason="this machine has a GPU driver")
def test_a_search_without_a_gpu_is_refused() -> None:
    assert_refused(flopwatch("tune", "sgemm"), "no NVIDIA driver")


def test_an_unknown_architecture_is_refused() -> None:
    assert_refused(flopwatch("gate", "--arch", "sm_42"), "--arch sm_42", "sm_90")


def test_a_missing_wheel_is_refused_with_the_command_that_brings_it(tmp_path: Path) -> None:
    # The same packages without one wheel's metadata, as after pip uninstall.
    for folder in site.getsitepackages():
        for entry in Path(folder).glob("*"):
            if not entry.name.startswith(("nvidia_cuda_nvrtc", "__pycache__")):
                (tmp_path / entry.name).symlink_to(entry)
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-m", "ci", "check"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert_refused(done, "nvidia-cuda-nvrtc", "pip install")


def test_another_package_of_one_of_our_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    for name in ("__init__", "spec", "build", "errors", "suite", "nvrtc"):
        source = (ROOT / f"kernels/{name}.py").read_text()
        (tmp_path / f"kernels/{name}.py").write_text(source)
    shutil.copytree(ROOT / "kernels", tmp_path / "kernels", dirs_exist_ok=True)
    done = flopwatch("check", environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    assert_refused(done, "the package kernels comes from", "environment of its own")


def test_the_list_follows_its_schema_and_names_cases_of_other_devices() -> None:
    done = flopwatch("list", "--format", "json")
    rows = json.loads(done.stdout)
    schema = json.loads((ROOT / "docs/list.schema.json").read_text())
    jsonschema.validate(rows, schema)
    assert any(row["devices"] == ["cuda"] for row in rows)
    assert {row["stage"][:2] for row in rows} >= {f"0{number}" for number in range(1, 10)}


def test_a_closed_pipe_is_no_error_message() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "ci", "list", "--format", "json"],
        cwd=ROOT,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert done.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_keep_what_is_finished(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "ci", "gate", "--out", str(tmp_path)),
            # More than is done by the time that a busy machine delivers the signal.
            *("--base", str(ROOT), "-k", "sgemm or attention"),
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        first = next(line for line in process.stderr if line.startswith("["))
        process.send_signal(number)
        rest = process.stderr.read()
    assert process.returncode == 130, first + rest
    assert "Traceback" not in rest
    assert "kept" in rest
    stored = [json.loads(path.read_text()) for path in tmp_path.glob("records/*/*/*.json")]
    assert any(record["cases"] and not record["complete"] for record in stored)
    assert not list(tmp_path.rglob("*.journal.jsonl"))


def test_a_full_disk_ends_in_one_line_and_exit_code_1(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(full)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("only root can mount the small file system this needs")
    try:
        done = flopwatch("gate", "--out", str(full), "--base", str(ROOT), "-k", "01_naive")
        assert_refused(done, "no space left", code=1)
        assert not list(full.rglob("*.tmp"))
    finally:
        subprocess.run(["umount", str(full)], check=True)
