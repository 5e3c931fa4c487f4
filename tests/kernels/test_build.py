"""Building: names, places, errors, the cache, and what the code identity sees."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from kernels import load_suite, nvrtc
from kernels.build import BuiltStage, build_stage, variants
from kernels.cache import compile_cached
from kernels.errors import CompileError, ToolError
from kernels.spec import CudaStage, Ladder


def build(folder: Path, cache: Path, *architectures: str) -> BuiltStage:
    """Build the one stage of the small suite."""
    suite = load_suite(folder)
    (ladder,) = suite.ladders
    (stage,) = ladder.stages
    assert isinstance(stage, CudaStage)
    return build_stage(suite, ladder, stage, architectures=architectures, cache=cache)


def edit(path: Path, old: str, new: str) -> None:
    """Replace a word wherever it stands in a file that must hold it."""
    text, count = re.subn(old, new, path.read_text(encoding="utf-8"))
    assert count
    path.write_text(text, encoding="utf-8")


def test_variants_are_all_layouts_the_timed_one_first(sgemm: Ladder) -> None:
    labels = [label for label, _ in variants(sgemm.problem)]
    assert labels[0] == "A=row,B=row"
    assert sorted(labels[1:]) == ["A=column,B=column", "A=column,B=row", "A=row,B=column"]


def test_ptx_and_cubin_hold_their_kernels(folder: Path, cache: Path) -> None:
    built = build(folder, cache, "sm_80", "sm_90")
    assert list(built.cubins) == ["sm_80", "sm_90"]
    assert f".entry {built.ptx_kernels[''].symbol}(" in built.ptx
    cubin = built.cubins["sm_90"]
    assert cubin.kernels[""].symbol.encode() in cubin.data
    assert "bytes spill stores" in cubin.log


def test_an_architecture_the_stage_does_not_declare_is_left_out(folder: Path, cache: Path) -> None:
    edit(folder / "copy/ladder.py", "idea=", 'architectures=("sm_90",), idea=')
    built = build(folder, cache, "sm_80", "sm_90")
    assert list(built.cubins) == ["sm_90"]
    assert ".target sm_90" in built.ptx


def test_ptx_names_files_as_the_suite_does_wherever_it_was_made(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files_from(start: Path) -> list[str]:
        monkeypatch.chdir(start)
        built = build(folder, tmp_path / start.name)
        return re.findall(r'\.file\s+\d+ "(.+)"', built.ptx)

    expected = ["copy/01_copy.cu", "include/words.cuh"]
    assert files_from(tmp_path) == expected
    assert files_from(folder) == expected


def test_a_compile_error_names_the_line_the_author_edits(folder: Path, cache: Path) -> None:
    edit(folder / "include/words.cuh", "blockIdx", "blokIdx")
    with pytest.raises(CompileError, match=r"include/words\.cuh:3: .*blokIdx") as caught:
        build(folder, cache)
    assert (caught.value.file, caught.value.line) == ("include/words.cuh", 3)
    assert "blokIdx" in caught.value.log


def test_a_missing_wheel_is_a_tool_error_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_WHEELS", ("nvidia-cuda-nothing",))
    nvrtc.toolchain.cache_clear()
    with pytest.raises(ToolError, match="pip install nvidia-cuda-nothing"):
        nvrtc.toolchain()
    nvrtc.toolchain.cache_clear()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"\bi\b", "element"),
        (r"\bstaged\b", "shared_copy"),
        (r"\bX\b", "source"),
        (r"\bplace\b", "position"),
        ("  if", "\n  // Only what exists.\n\n  if"),
    ],
    ids=["local", "shared array", "parameter", "device function", "comment and blank lines"],
)
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_the_code_identity_ignores_names_and_comments(
    folder: Path, cache: Path, old: str, new: str, arch: str
) -> None:
    before = build(folder, cache, arch)
    for path in (folder / "copy/01_copy.cu", folder / "include/words.cuh"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(old, new, text), encoding="utf-8")
    after = build(folder, cache, arch)
    assert after.source_digest != before.source_digest
    assert after.cubins[arch].identity == before.cubins[arch].identity


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"Y\[i\] = staged\[i\]", "Y[i] = staged[i] + 1.0f"),
        (r"staged\[128\]", "staged[256]"),
        ("__global__", "__global__ __launch_bounds__(64)"),
        ("int N", "long long N"),
    ],
    ids=["instruction", "shared memory", "launch bounds", "parameter type"],
)
def test_the_code_identity_sees_what_matters(folder: Path, cache: Path, old: str, new: str) -> None:
    before = build(folder, cache, "sm_90").cubins["sm_90"].identity
    edit(folder / "copy/01_copy.cu", old, new)
    assert build(folder, cache, "sm_90").cubins["sm_90"].identity != before


def cached(folder: Path, text: str = "__global__ void k() {}", arch: str = "sm_90") -> bytes:
    """Compile a small text through the cache."""
    result = compile_cached(folder, text, "k.cu", arch=arch, options=(), expressions=("k",))
    assert result.symbols == ("_Z1kv",)
    return result.data


def test_the_cache_is_used_and_keyed_by_text_and_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cached(tmp_path)
    cached(tmp_path, arch="sm_80")
    cached(tmp_path, text="__global__ void k() { __syncthreads(); }")
    assert len(list(tmp_path.rglob("*.bin"))) == 3
    monkeypatch.delattr("kernels.cache.compile_text")
    assert cached(tmp_path) == first


@pytest.mark.parametrize("suffix", [".bin", ".json"])
@pytest.mark.parametrize("damage", [b"", b"\xff{"])
def test_a_damaged_entry_is_rebuilt(tmp_path: Path, suffix: str, damage: bytes) -> None:
    first = cached(tmp_path)
    (path,) = tmp_path.rglob(f"*{suffix}")
    whole = path.read_bytes()
    path.write_bytes(damage)
    assert cached(tmp_path) == first
    assert path.read_bytes() == whole


def test_a_failed_write_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        msg = "disk full"
        raise OSError(msg)

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match="disk full"):
        cached(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_cache_metadata_is_strict_json(tmp_path: Path) -> None:
    cached(tmp_path)
    (path,) = tmp_path.rglob("*.json")
    assert set(json.loads(path.read_text(encoding="utf-8"))) == {"sha256", "log", "symbols"}
