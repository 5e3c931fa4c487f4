"""Spills are read from the log, kernel by kernel, and silence is not taken for zero."""

from __future__ import annotations

import re

import pytest

from ci.static.errors import StaticError
from ci.static.ptxas_log import Spills, read_spills, spills_of
from kernels.nvrtc import Compiled

_LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'caller' for 'sm_90'
ptxas info    : Function properties for caller
ptxas         .     280 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 280 bytes cumulative stack size
ptxas info    : Compile time = 4.000 ms
ptxas info    : Function properties for helper
ptxas         .     0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Compiling entry function 'clean' for 'sm_90'
ptxas info    : Function properties for clean
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 18 registers, used 1 barriers, 4096 bytes smem
ptxas info    : Compiling entry function 'silent' for 'sm_90'
"""


def _spills(store_bytes: int, load_bytes: int) -> Spills:
    return Spills(store_bytes=store_bytes, load_bytes=load_bytes)


def test_the_spills_of_a_called_function_count_for_its_kernel() -> None:
    assert spills_of(read_spills(_LOG), "caller") == _spills(48, 56)


def test_a_line_without_the_compilers_prefix_is_read() -> None:
    assert spills_of(read_spills(_LOG), "clean") == _spills(0, 0)


@pytest.mark.parametrize("symbol", ["silent", "helper", "absent"])
def test_a_kernel_the_log_says_nothing_about_is_an_error(symbol: str) -> None:
    with pytest.raises(StaticError, match=f"expected the spills of {symbol}, got .*caller, clean"):
        spills_of(read_spills(_LOG), symbol)


def test_a_log_of_a_build_without_the_option_is_an_error() -> None:
    with pytest.raises(
        StaticError, match="got those of no kernel; compile with --ptxas-options=-v"
    ):
        spills_of(read_spills(""), "caller")


def test_a_spilling_kernel_has_exactly_the_figures_of_its_log(built: Compiled) -> None:
    symbol = built.symbols[0]
    said = re.search(
        rf"Function properties for {symbol}\n.*? (\d+) bytes spill stores, (\d+) bytes spill loads",
        built.log,
    )
    assert said is not None
    assert min(int(said[1]), int(said[2])) > 0
    assert spills_of(read_spills(built.log), symbol) == _spills(int(said[1]), int(said[2]))


def test_a_dynamically_indexed_array_is_no_spill(built: Compiled) -> None:
    assert spills_of(read_spills(built.log), "indexed") == _spills(0, 0)


def test_no_spill_in_the_log_is_lost_or_counted_twice(built: Compiled) -> None:
    said = re.findall(r"(\d+) bytes spill stores", built.log)
    assert len(said) > len(read_spills(built.log))
    assert sum(each.store_bytes for each in read_spills(built.log).values()) == sum(map(int, said))
