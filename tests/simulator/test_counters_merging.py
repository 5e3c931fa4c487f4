"""Merging of scalar shared-memory accesses, on short PTX texts."""

from __future__ import annotations

import numpy as np
import pytest

from ci.simulator.counters import LaunchCounters
from ci.simulator.merging import merged_accesses
from ci.simulator.parser import parse
from ci.simulator.ptx import Instruction
from ci.simulator.report import Counts, MachineAccesses

_ALL = MachineAccesses(load=frozenset({8, 16}), store=frozenset({8, 16}))


def _instructions(body: str) -> tuple[Instruction, ...]:
    text = f"""
.version 9.0
.target sm_80
.address_size 64
.visible .entry k()
{{
.reg .pred %p<4>;
.reg .f32 %f<20>;
.reg .b32 %r<20>;
{body}
ret;
}}
"""
    return parse(text).kernels["k"].instructions


def _groups(body: str, widths: MachineAccesses = _ALL) -> list[tuple[int, int, list[int]]]:
    """Return (width, skew, members) of each merged access, members by place in the body."""
    plan = merged_accesses(_instructions(body), widths)
    return [
        (access.width_bytes, access.skew_bytes, sorted(pc for pc in plan if plan[pc] is access))
        for access in dict.fromkeys(plan.values())
    ]


def _loads(*offsets: int) -> str:
    return "\n".join(
        f"ld.shared.f32 %f{number}, [%r1+{offset}];" for number, offset in enumerate(offsets)
    )


def _stores(*offsets: int) -> str:
    return "\n".join(f"st.shared.f32 [%r1+{offset}], %f1;" for offset in offsets)


def test_adjacent_loads_become_one_of_16_bytes() -> None:
    assert _groups(_loads(0, 4, 8, 12)) == [(16, 0, [0, 1, 2, 3])]


def test_the_order_of_the_loads_does_not_matter() -> None:
    assert _groups(_loads(8, 0, 12, 4)) == [(16, 8, [0, 1, 2, 3])]


@pytest.mark.parametrize("missing", [0, 4, 8, 12])
def test_three_words_of_four_are_loaded_as_16_bytes(missing: int) -> None:
    offsets = [offset for offset in (0, 4, 8, 12) if offset != missing]
    assert _groups(_loads(*offsets)) == [(16, offsets[0], [0, 1, 2])]


def test_three_words_are_stored_as_8_bytes_and_a_scalar() -> None:
    assert _groups(_stores(0, 4, 8)) == [(8, 0, [0, 1])]


def test_two_words_that_no_aligned_pair_holds_are_left_alone() -> None:
    assert _groups(_loads(4, 8)) == []
    assert _groups(_loads(0, 12)) == []


def test_bytes_and_halves_become_words_in_any_kernel() -> None:
    body = "\n".join(f"ld.shared.u8 %r{5 + n}, [%r1+{n}];" for n in range(4))
    assert _groups(body, MachineAccesses()) == [(4, 0, [0, 1, 2, 3])]
    assert _groups("st.shared.b16 [%r1+2], %r2;\nst.shared.b16 [%r1], %r2;") == [(4, 2, [0, 1])]


def test_only_widths_of_the_machine_code_are_made() -> None:
    loads = _loads(0, 4, 8, 12)
    assert _groups(loads, MachineAccesses()) == []
    assert _groups(loads, MachineAccesses(store=frozenset({8, 16}))) == []
    only_8 = MachineAccesses(load=frozenset({8}))
    assert [width for width, _, _ in _groups(loads, only_8)] == [8, 8]


def test_double_words_become_16_bytes() -> None:
    body = "ld.shared.b64 %rd1, [%r1];\nld.shared.b64 %rd2, [%r1+8];"
    assert _groups(f".reg .b64 %rd<4>;\n{body}") == [(16, 0, [0, 1])]


def test_stores_merge_as_loads_do() -> None:
    assert _groups(_stores(4, 0, 12, 8)) == [(16, 4, [0, 1, 2, 3])]


def test_arithmetic_between_the_accesses_does_not_matter() -> None:
    body = f"{_loads(0)}\nadd.f32 %f9, %f0, %f0;\nmov.u32 %r5, 3;\n{_loads(4)}"
    assert _groups(body) == [(8, 0, [0, 3])]


@pytest.mark.parametrize(
    "between",
    [
        "st.shared.f32 [%r2], %f1;",
        "st.f32 [%r2], %f1;",
        "bar.sync 0;",
        "atom.add.u32 %r3, [%r2], 1;",
        "atom.shared.add.u32 %r3, [%r2], 1;",
        "LABEL:\n@%p1 bra LABEL;",
        "LABEL:\nadd.f32 %f9, %f0, %f0;\n@%p1 bra LABEL;",
        "@%p1 bra LABEL;\nst.shared.f32 [%r2], %f1;\nLABEL:",
        "@%p1 bra LABEL;\nmov.u32 %r1, %r2;\nLABEL:",
        "add.s32 %r1, %r1, 16;",
        "ld.shared.u32 %r1, [%r2];",
    ],
)
def test_a_run_of_loads_ends_at(between: str) -> None:
    assert _groups(f"{_loads(0)}\n{between}\n{_loads(4)}") == []


@pytest.mark.parametrize(
    "between",
    [
        "st.global.f32 [%r2], %f1;",
        "red.global.add.f32 [%r2], %f1;",
        "@%p1 bra LABEL;\nLABEL:",
        "@%p1 bra LABEL;\nst.global.f32 [%r2], %f1;\nLABEL:",
        "bra.uni LABEL;\nLABEL:",
        "@%p1 ret;",
    ],
)
def test_a_run_of_loads_goes_on_behind(between: str) -> None:
    assert [width for width, _, _ in _groups(f"{_loads(0)}\n{between}\n{_loads(4)}")] == [8]


@pytest.mark.parametrize(
    "between",
    [
        "@%p1 bra LABEL;\nLABEL:",
        "ld.shared.f32 %f2, [%r2];",
        "ld.shared.v4.f32 {%f2,%f3,%f4,%f5}, [%r2];",
        "bar.sync 0;",
    ],
)
def test_a_run_of_stores_ends_at(between: str) -> None:
    assert _groups(f"{_stores(0)}\n{between}\n{_stores(4)}") == []


def test_a_load_from_global_memory_ends_no_run_of_stores() -> None:
    body = f"{_stores(0)}\nld.global.f32 %f2, [%r2];\n{_stores(4)}"
    assert _groups(body) == [(8, 0, [0, 2])]


def test_storing_one_place_twice_ends_the_run_of_stores() -> None:
    assert _groups(_stores(0, 0, 4)) == [(8, 0, [1, 2])]


def test_other_bases_and_guards_are_kept_apart() -> None:
    assert _groups("ld.shared.f32 %f0, [%r1];\nld.shared.f32 %f1, [%r2+4];") == []
    assert _groups("@%p1 ld.shared.f32 %f0, [%r1];\nld.shared.f32 %f1, [%r1+4];") == []
    assert _groups("@%p1 ld.shared.f32 %f0, [%r1];\n@%p1 ld.shared.f32 %f1, [%r1+4];") != []


def test_a_new_guard_value_ends_the_run() -> None:
    body = (
        "@%p1 ld.shared.f32 %f0, [%r1];\nsetp.eq.s32 %p1, %r2, 0;\n@%p1 ld.shared.f32 %f1, [%r1+4];"
    )
    assert _groups(body) == []


def test_volatile_loads_are_left_alone() -> None:
    body = _loads(0, 4).replace("ld.shared", "ld.volatile.shared")
    assert _groups(body) == []


def _counted(body: str, base: int, skip_lane: int | None = None) -> Counts:
    counters = LaunchCounters(merged_accesses(_instructions(body), _ALL))
    counters.begin_slice(2, 32)
    lane = np.arange(32, dtype=np.int64)[None, :]
    mask = None if skip_lane is None else lane != skip_lane
    address = np.where(lane == 7, base + 4, base) if skip_lane is not None else base + 16 * lane
    for pc, offset in enumerate((8, 0, 12, 4)):
        counters.shared_access(pc, False, address + offset, mask, 4)
    return sum(counters.report().values(), Counts())


def test_a_merged_access_counts_once_at_its_first_instruction() -> None:
    assert _counted(_loads(8, 0, 12, 4), base=0) == Counts(shared_load_wavefronts=2 * 4)


def test_a_merged_access_that_is_misaligned_counts_as_its_parts() -> None:
    parts = _counted(_loads(8, 0, 12, 4), base=4)
    assert parts == Counts(shared_load_wavefronts=2 * 16, shared_load_conflicts=2 * 12)


def test_a_misaligned_lane_that_is_masked_off_does_not_split_a_merged_access() -> None:
    assert _counted(_loads(8, 0, 12, 4), base=0, skip_lane=7).shared_load_wavefronts == 2 * 2
