"""Loads and stores: bounds, alignment, spaces, and what a wrong one is reported as."""

from __future__ import annotations

import numpy as np
import pytest

from ci.simulator import Buffer
from tests.simulator.ptx_text import entry, launch

AT_THREAD = """
ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1];
mov.u32 %r0, %tid.x; mad.wide.u32 %rd2, %r0, 4, %rd0; mad.wide.u32 %rd3, %r0, 4, %rd1;
.loc 1 20 0
"""
TWO = ".param .u64 p0, .param .u64 p1"


def pair(elements: int, misalignment_bytes: int = 0) -> tuple[Buffer, Buffer]:
    data = np.arange(elements, dtype=np.uint32)
    return Buffer(name="src", data=data, misalignment_bytes=misalignment_bytes), Buffer(
        name="dst", data=np.full(32, 99, np.uint32)
    )


def test_lanes_out_of_bounds_read_zero_and_the_others_go_on() -> None:
    src, dst = pair(30)
    body = AT_THREAD + "ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd3], %r1;"
    (hazard,) = launch(entry(body, TWO), src, dst).hazards
    assert (hazard.kind, hazard.line, hazard.count) == ("out-of-bounds read", 20, 2)
    assert hazard.example == "byte 120 of src (120 bytes) by thread (30,0,0) of block (0,0,0)"
    np.testing.assert_array_equal(dst.data, [*range(30), 0, 0])


def test_address_before_a_buffer_is_out_of_its_bounds() -> None:
    src, dst = pair(32)
    body = AT_THREAD + "ld.global.u32 %r1, [%rd2+-4]; st.global.u32 [%rd3], %r1;"
    (hazard,) = launch(entry(body, TWO), src, dst).hazards
    assert hazard.example == "byte -4 of src (128 bytes) by thread (0,0,0) of block (0,0,0)"
    np.testing.assert_array_equal(dst.data, [0, *range(31)])


def test_writes_out_of_bounds_are_dropped() -> None:
    src, dst = pair(32)
    body = AT_THREAD + "st.global.u32 [%rd3+8], %r0;"
    (hazard,) = launch(entry(body, TWO), src, dst).hazards
    assert (hazard.kind, hazard.count) == ("out-of-bounds write", 2)
    np.testing.assert_array_equal(dst.data, [99, 99, *range(30)])


def test_address_in_no_buffer_is_reported() -> None:
    src, dst = pair(32)
    body = AT_THREAD + "mov.u64 %rd4, 4096; ld.global.u32 %r1, [%rd4];"
    (hazard,) = launch(entry(body, TWO), src, dst).hazards
    assert (hazard.kind, hazard.count) == ("out-of-bounds read", 32)
    assert "address 0x1000, which lies in no buffer" in hazard.example


@pytest.mark.parametrize(("misalignment", "bad"), [(0, 0), (4, 8), (8, 8), (16, 0)])
def test_natural_alignment_counts_from_the_buffers_address(misalignment: int, bad: int) -> None:
    src, dst = pair(32, misalignment_bytes=misalignment)
    body = (
        AT_THREAD
        + """
    setp.gt.u32 %p0, %r0, 7; @%p0 exit;
    mad.wide.u32 %rd2, %r0, 16, %rd0; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];
    st.global.u32 [%rd3], %r4;
    """
    )
    hazards = launch(entry(body, TWO), src, dst).hazards
    assert sum(h.count for h in hazards if h.kind == "misaligned read") == bad
    np.testing.assert_array_equal(dst.data[:8], 0 if bad else np.arange(3, 32, 4))


def test_inactive_lanes_may_hold_any_address() -> None:
    src, dst = pair(5)
    body = (
        AT_THREAD
        + """
    setp.gt.u32 %p0, %r0, 4; @%p0 bra OUT;
    ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd3], %r1;
    OUT:
    """
    )
    assert not launch(entry(body, TWO), src, dst).hazards
    np.testing.assert_array_equal(dst.data, [*range(5), *[99] * 27])


def test_one_access_may_reach_two_buffers() -> None:
    src, dst = pair(32)
    out = np.zeros(32, np.uint32)
    body = (
        AT_THREAD
        + """
    ld.param.u64 %rd5, [p2]; mad.wide.u32 %rd5, %r0, 4, %rd5;
    and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0; selp.b64 %rd6, %rd2, %rd3, %p0;
    ld.global.u32 %r2, [%rd6]; st.global.u32 [%rd5], %r2;
    """
    )
    text = entry(body, TWO + ", .param .u64 p2")
    assert not launch(text, src, dst, Buffer(name="out", data=out)).hazards
    np.testing.assert_array_equal(out, np.where(np.arange(32) % 2, 99, np.arange(32)))


@pytest.mark.parametrize(
    ("access", "kind"),
    [
        ("st.shared.u32 [buf+{at}], %r0;", "write"),
        ("ld.shared.u32 %r1, [buf+{at}];", "read"),
    ],
)
@pytest.mark.parametrize(
    ("at", "fault"), [(64, "out-of-bounds"), (-4, "out-of-bounds"), (2, "misaligned")]
)
def test_bad_shared_access_stops_the_launch(access: str, kind: str, at: int, fault: str) -> None:
    out = np.zeros(1, np.uint32)
    body = f"""
    .shared .align 4 .b8 buf[64];
    mov.u32 %r0, 7;
    .loc 1 5 0
    {access.format(at=at)}
    ld.param.u64 %rd0, [p0]; st.global.u32 [%rd0], 1;
    """
    report = launch(entry(body), Buffer(name="out", data=out))
    assert report.stopped
    assert [h.kind for h in report.hazards] == [f"{fault} {kind}"]
    assert report.hazards[0].line == 5
    assert out[0] == 0


def test_dynamic_shared_memory_lies_aligned_behind_the_static_one() -> None:
    out = np.zeros(3, np.uint32)
    outside = ".extern .shared .align 32 .b8 dyn[];\n.shared .align 4 .b8 other[12];"
    body = """
    .shared .align 4 .b8 buf[20];
    ld.param.u64 %rd0, [p0]; mov.u32 %r0, buf; mov.u32 %r1, other; mov.u32 %r2, dyn;
    st.global.u32 [%rd0], %r0; st.global.u32 [%rd0+4], %r1; st.global.u32 [%rd0+8], %r2;
    """
    launch(entry(body, outside=outside), Buffer(name="out", data=out), dynamic_shared_bytes=64)
    assert out.tolist() == [0, 20, 32]


def test_unwritten_shared_memory_is_poison() -> None:
    out = np.zeros(1, np.uint32)
    body = """
    .shared .align 4 .b8 buf[20];
    ld.param.u64 %rd0, [p0]; ld.shared.u32 %r0, [buf+8]; st.global.u32 [%rd0], %r0;
    """
    (hazard,) = launch(entry(body), Buffer(name="out", data=out)).hazards
    assert hazard.kind == "uninitialised shared read"
    assert out[0] == 0xFFFFFFFF


def test_generic_addresses_reach_shared_local_and_global_memory() -> None:
    src, dst = pair(32)
    body = (
        AT_THREAD
        + """
    .shared .align 4 .b8 buf[128]; .local .align 4 .b8 mine[8];
    mov.u64 %rd4, buf; cvta.shared.u64 %rd5, %rd4; mad.wide.u32 %rd5, %r0, 4, %rd5;
    mov.u64 %rd6, mine; cvta.local.u64 %rd7, %rd6;
    st.u32 [%rd5], %r0; st.u32 [%rd7+4], %r0;
    setp.lt.u32 %p0, %r0, 10; setp.gt.u32 %p1, %r0, 20;
    add.u64 %rd8, %rd7, 4;
    selp.b64 %rd9, %rd5, %rd2, %p0; selp.b64 %rd9, %rd8, %rd9, %p1;
    ld.u32 %r2, [%rd9]; st.u32 [%rd3], %r2;
    isspacep.shared %p2, %rd9; isspacep.local %p3, %rd9; isspacep.global %p4, %rd9;
    selp.u32 %r3, 1, 0, %p2; selp.u32 %r4, 2, 0, %p3; selp.u32 %r5, 4, 0, %p4;
    add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; st.global.u32 [%rd2], %r3;
    """
    )
    report = launch(entry(body, TWO), src, dst)
    assert not report.hazards
    np.testing.assert_array_equal(dst.data, np.arange(32))
    lane = np.arange(32)
    np.testing.assert_array_equal(src.data, np.where(lane < 10, 1, np.where(lane > 20, 2, 4)))


def test_module_variables_hold_their_initial_bytes_and_can_be_set() -> None:
    outside = (
        ".const .align 4 .b8 table[8] = {1, 2, 3, 4, 5};\n"
        ".global .align 4 .f32 scale = 0f3FC00000;\n.const .align 4 .u32 plain[2] = {0x10, 7};"
    )
    body = """
    ld.param.u64 %rd0, [p0]; ld.const.u32 %r0, [table]; ld.const.u32 %r1, [table+4];
    mov.u64 %rd1, plain; ld.const.u32 %r2, [%rd1+4]; ld.global.f32 %f0, [scale];
    st.global.v4.b32 [%rd0], {%r0, %r1, %r2, %f0};
    """
    out = np.zeros(4, np.uint32)
    launch(entry(body, outside=outside), Buffer(name="out", data=out))
    assert out.tolist() == [0x04030201, 5, 7, 0x3FC00000]
    launch(
        entry(body, outside=outside), Buffer(name="out", data=out), constants={"table": b"\2\0\0\0"}
    )
    assert out.tolist()[:2] == [2, 0]


def test_narrow_loads_extend_by_their_type() -> None:
    src = Buffer(name="src", data=np.array([0x80, 0xFF, 0x7F, 0x00], np.uint8))
    dst = Buffer(name="dst", data=np.zeros(4, np.uint32))
    body = """
    ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1];
    ld.global.s8 %r0, [%rd0]; ld.global.u8 %r1, [%rd0]; ld.global.s16 %r2, [%rd0];
    ld.global.u8 %h1, [%rd0+1];
    cvt.u32.u8 %r3, %h1;
    st.global.v4.u32 [%rd1], {%r0, %r1, %r2, %r3};
    """
    launch(entry(body, TWO), src, dst)
    assert dst.data.tolist() == [0xFFFFFF80, 0x80, 0xFFFFFF80, 0xFF]


def test_dynamically_indexed_parameters_are_read() -> None:
    out = np.zeros(4, np.uint32)
    body = """
    ld.param.u64 %rd0, [p0]; mov.u32 %r0, %tid.x; mov.b64 %rd1, p1; mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd3, %rd1, %rd2; ld.param.u32 %r1, [%rd3]; ld.param.v2.u32 {%r2, %r3}, [p1+8];
    add.u64 %rd0, %rd0, %rd2; sub.u32 %r1, %r1, %r2; st.global.u32 [%rd0], %r1;
    """
    parameters = ".param .u64 p0, .param .align 8 .b8 p1[16]"
    struct = np.frombuffer(np.array([5, 6, 7, 8], np.uint32).tobytes(), "V16")[0]
    launch(entry(body, parameters), Buffer(name="out", data=out), struct, block=(4, 1, 1))
    np.testing.assert_array_equal(out.view(np.int32), [-2, -1, 0, 1])
