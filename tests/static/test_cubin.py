"""What is read from a cubin equals what the compiler's log says, and damage is reported."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci.static.cubin import read_cubin
from ci.static.errors import StaticError
from kernels.nvrtc import Compiled
from tests.static.compiled import compile_figures


def _from_log(log: str, what: str) -> dict[str, int]:
    """Return a figure of each kernel from its "Used N registers, …" line; 0 if it is absent."""
    figures = {}
    for symbol, line in re.findall(
        r"Compiling entry function '(\w+)'.*?info +: (Used [^\n]*)", log, re.DOTALL
    ):
        found = re.search(what, line)
        figures[symbol] = int(found[1]) if found else 0
    return figures


def _from_cubin(built: Compiled, field: str) -> dict[str, int]:
    kernels = read_cubin(built.data).kernels
    return {symbol: getattr(kernel, field) for symbol, kernel in kernels.items()}


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ("registers", r"Used (\d+) registers"),
        ("barriers", r"used (\d+) barriers"),
        ("stack_bytes", r"(\d+) bytes cumulative stack size"),
        ("static_shared_bytes", r"(\d+) bytes smem"),
    ],
)
def test_a_figure_of_the_cubin_equals_the_compilers_log(
    built: Compiled, field: str, what: str
) -> None:
    said = _from_log(built.log, what)
    assert len(said) == 9
    assert sum(figure > 0 for figure in said.values()) >= 3
    assert _from_cubin(built, field) == said


def test_the_cubin_names_its_hardware(arch: str, built: Compiled) -> None:
    assert f"sm_{read_cubin(built.data).sm}" == arch.rstrip("a")


def test_static_shared_memory_is_the_same_with_and_without_the_systems_reserve() -> None:
    ampere = _from_cubin(compile_figures("sm_80"), "static_shared_bytes")
    hopper = _from_cubin(compile_figures("sm_90"), "static_shared_bytes")
    assert ampere == hopper
    assert (hopper["wide"], hopper["half_wide"], hopper["narrow"]) == (4096, 2048, 0)


def test_launch_bounds_are_those_of_the_source(hopper: Compiled) -> None:
    bounds = _from_cubin(hopper, "max_threads_per_block")
    assert (bounds[hopper.symbols[0]], bounds["wide"]) == (256, 1024)


def test_code_size_is_that_of_whole_instructions(built: Compiled) -> None:
    for size in _from_cubin(built, "code_bytes").values():
        assert size > 0
        assert size % 128 == 0


@settings(deadline=None)
@given(st.data())
def test_a_cubin_that_is_cut_off_anywhere_is_refused(data: st.DataObject) -> None:
    cubin = compile_figures("sm_90").data
    length = data.draw(st.integers(0, len(cubin) - 1))
    with pytest.raises(StaticError, match=r"expected|cut off"):
        read_cubin(cubin[:length])


@settings(deadline=None)
@given(st.data())
def test_a_damaged_cubin_is_read_or_refused_but_never_breaks_the_reader(
    data: st.DataObject,
) -> None:
    cubin = bytearray(compile_figures("sm_90").data)
    for offset in data.draw(st.lists(st.integers(0, len(cubin) - 1), min_size=1, max_size=8)):
        cubin[offset] ^= data.draw(st.integers(1, 255))
    with suppress(StaticError):
        read_cubin(bytes(cubin))


def test_ptx_is_not_taken_for_a_cubin() -> None:
    with pytest.raises(StaticError, match="ELF header: expected"):
        read_cubin(b".version 9.0\n.target sm_80\n")


def test_a_program_for_another_machine_is_refused(hopper: Compiled) -> None:
    x86 = bytearray(hopper.data)
    x86[18:20] = (62).to_bytes(2, "little")
    with pytest.raises(StaticError, match="got machine 62"):
        read_cubin(bytes(x86))


def test_a_cubin_of_the_older_format_is_refused(hopper: Compiled) -> None:
    older = bytearray(hopper.data)
    older[8] = 7
    with pytest.raises(StaticError, match="compile with NVRTC 13"):
        read_cubin(bytes(older))
