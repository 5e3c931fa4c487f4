"""Opcodes are counted with their widths, once a cubin, and every failure says what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci.static import Disassembly, StaticError, disassemble, machine_accesses
from ci.static.cubin import read_cubin
from ci.static.disassembly import _opcode, nvdisasm_path, nvdisasm_version
from kernels.nvrtc import Compiled
from tests.static.compiled import compile_figures

_NONE = frozenset[int]()


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"], indirect=True)
def test_wide_shared_accesses_are_found(built: Compiled, tmp_path: Path) -> None:
    found = machine_accesses(disassemble(built.data, tmp_path))
    assert found["wide"] == (frozenset({16}), frozenset({16}), False)
    assert found["half_wide"] == (frozenset({8}), _NONE, False)
    assert found["narrow"] == (_NONE, _NONE, False)


def test_every_instruction_of_every_kernel_is_counted(hopper: Compiled, sass: Disassembly) -> None:
    code = {name: kernel.code_bytes for name, kernel in read_cubin(hopper.data).kernels.items()}
    assert code == {name: 16 * sum(counts.values()) for name, counts in sass.items()}


def test_spills_show_as_accesses_to_local_memory(hopper: Compiled, sass: Disassembly) -> None:
    assert min(sass[hopper.symbols[0]][opcode] for opcode in ("LDL", "STL")) > 0
    assert "LDL" not in sass["wide"]


@pytest.mark.parametrize(
    ("full", "kept"),
    [
        ("FFMA", "FFMA"),
        ("LDS.U.128", "LDS.128"),
        ("LDG.E.64.CONSTANT", "LDG.64"),
        ("LDGSTS.E.BYPASS.LTC128B.128", "LDGSTS.128"),
        ("IMAD.WIDE.U32", "IMAD"),
        ("HMMA.16816.F32", "HMMA"),
    ],
)
def test_an_opcode_keeps_its_width_and_no_other_modifier(full: str, kept: str) -> None:
    assert _opcode(full) == kept


def test_a_cubin_is_disassembled_once(hopper: Compiled, tmp_path: Path) -> None:
    cache = tmp_path / "new" / "cache"
    first = disassemble(hopper.data, cache)
    (stored,) = cache.iterdir()
    assert disassemble(hopper.data, cache) == first
    stored.write_text('{"kernel": {"FFMA": 3}}', encoding="utf-8")
    assert disassemble(hopper.data, cache) == {"kernel": {"FFMA": 3}}


def test_a_damaged_cache_file_is_replaced(
    hopper: Compiled, sass: Disassembly, tmp_path: Path
) -> None:
    disassemble(hopper.data, tmp_path)
    (stored,) = tmp_path.iterdir()
    for damage in ("", "{", "[]", '{"kernel": 3}', '{"kernel": {"FFMA": true}}'):
        stored.write_text(damage, encoding="utf-8")
        assert disassemble(hopper.data, tmp_path) == sass
        assert json.loads(stored.read_text(encoding="utf-8")) == sass


def test_two_cubins_do_not_share_a_cache_file(hopper: Compiled, tmp_path: Path) -> None:
    disassemble(hopper.data, tmp_path)
    disassemble(compile_figures("sm_80").data, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_bytes_that_are_no_cubin_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StaticError, match=r"nvdisasm refused a cubin: .+; build it again"):
        disassemble(b"no cubin", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_the_disassembler_the_error_gives_the_command_that_installs_it(
    tmp_path: Path,
) -> None:
    code = (
        "import sys, pathlib; from ci.static import StaticError, disassemble\n"
        "try: disassemble(b'', pathlib.Path(sys.argv[1]))\n"
        "except StaticError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
        text=True,
    )
    assert "python -m pip install 'nvidia-cuda-nvdisasm" in done.stdout


def test_the_toolkit_on_path_stands_in_for_a_missing_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvdisasm"
    program.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.85'\n")
    program.chmod(0o755)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert nvdisasm_path() == program
    assert nvdisasm_version() == "13.0.85"
    monkeypatch.setenv("PATH", "")
    with pytest.raises(StaticError, match="not installed"):
        nvdisasm_path()


def test_a_kernel_that_spills_reaches_local_memory(hopper: Compiled, sass: Disassembly) -> None:
    local = {symbol: found[2] for symbol, found in machine_accesses(sass).items()}
    assert (local[hopper.symbols[0]], local["wide"]) == (True, False)
