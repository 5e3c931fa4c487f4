"""A row holds the figures of its own kernel, and whatever is missing is an error."""

from __future__ import annotations

import dataclasses

import pytest

from ci.static import Disassembly, KernelFacts, StaticError, static_figures
from ci.static.cubin import read_cubin
from kernels.nvrtc import Compiled
from tests.static.compiled import SPILLING

_WIDE = KernelFacts(
    variant="A=row",
    expression="wide",
    symbol="wide",
    threads_per_block=256,
    dynamic_shared_bytes=65536,
)


def test_a_row_holds_the_figures_of_its_kernel(hopper: Compiled, sass: Disassembly) -> None:
    (row,) = static_figures(hopper.data, hopper.log, "sm_90", [_WIDE], sass)
    contents = read_cubin(hopper.data).kernels["wide"]
    assert (row.arch, row.variant, row.kernel) == ("sm_90", "A=row", "wide")
    assert (row.registers, row.code_bytes) == (contents.registers, contents.code_bytes)
    assert (row.stack_bytes, row.spill_store_bytes, row.spill_load_bytes) == (0, 0, 0)
    assert (row.static_shared_bytes, row.dynamic_shared_bytes) == (4096, 65536)
    # 228 KiB hold three blocks of 4 + 64 KiB and the 1 KiB that each gives to the system.
    assert (row.resident_blocks, row.limited_by) == (3, ("shared memory",))
    assert row.occupancy == pytest.approx(3 * 256 / 2048)
    assert row.instructions == sass["wide"]


def test_rows_come_in_the_order_asked_for(hopper: Compiled, sass: Disassembly) -> None:
    spilling = dataclasses.replace(_WIDE, expression=SPILLING, symbol=hopper.symbols[0])
    rows = static_figures(hopper.data, hopper.log, "sm_90", [spilling, _WIDE], sass)
    assert [row.kernel for row in rows] == [SPILLING, "wide"]
    assert rows[0].spill_store_bytes > rows[1].spill_store_bytes
    assert rows[0].stack_bytes > 0


def test_a_launch_above_the_launch_bound_has_no_resident_block(
    hopper: Compiled, sass: Disassembly
) -> None:
    facts = dataclasses.replace(_WIDE, symbol=hopper.symbols[0], threads_per_block=512)
    (row,) = static_figures(hopper.data, hopper.log, "sm_90", [facts], sass)
    assert (row.resident_blocks, row.occupancy) == (0, 0.0)


def test_a_log_without_the_kernel_is_an_error(hopper: Compiled, sass: Disassembly) -> None:
    log = hopper.log.replace("'wide'", "'other'")
    with pytest.raises(StaticError, match="expected the spills of wide"):
        static_figures(hopper.data, log, "sm_90", [_WIDE], sass)


def test_a_cubin_without_the_kernel_is_an_error(hopper: Compiled, sass: Disassembly) -> None:
    facts = dataclasses.replace(_WIDE, expression="sgemm<8>", symbol="_Z5sgemmILi8EEv")
    with pytest.raises(StaticError, match="cubin: expected kernel sgemm<8> as _Z5sgemmILi8EEv"):
        static_figures(hopper.data, hopper.log, "sm_90", [facts], sass)


def test_a_disassembly_without_the_kernel_is_an_error(hopper: Compiled) -> None:
    with pytest.raises(StaticError, match=r"disassembly: expected kernel wide .* got no kernel"):
        static_figures(hopper.data, hopper.log, "sm_90", [_WIDE], {})


def test_a_cubin_of_another_architecture_is_an_error(hopper: Compiled, sass: Disassembly) -> None:
    with pytest.raises(StaticError, match="expected architecture sm_80, got sm_90"):
        static_figures(hopper.data, hopper.log, "sm_80", [_WIDE], sass)


def test_an_unknown_architecture_is_an_error(hopper: Compiled, sass: Disassembly) -> None:
    with pytest.raises(StaticError, match="architecture sm_61: expected one of"):
        static_figures(hopper.data, hopper.log, "sm_61", [_WIDE], sass)


def test_a_cubin_that_is_cut_off_is_an_error(hopper: Compiled, sass: Disassembly) -> None:
    with pytest.raises(StaticError, match="cut off"):
        static_figures(hopper.data[:2000], hopper.log, "sm_90", [_WIDE], sass)
