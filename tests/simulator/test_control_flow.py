"""Branches, joins, barriers, guards and the step limit."""

from __future__ import annotations

import numpy as np
import pytest

from ci.simulator import Buffer, NotEmulatedError, StepLimitError
from tests.simulator.ptx_text import entry, lanewise, launch

LANES = np.arange(64, dtype=np.uint32)


def test_branches_of_different_lanes_join_again() -> None:
    code = """
    and.b32 %r20, %i0, 3;
    mov.u32 %o0, 100;
    setp.eq.u32 %p1, %r20, 0;
    @%p1 bra ZERO;
    setp.eq.u32 %p2, %r20, 1;
    @!%p2 bra JOIN;
    add.u32 %o0, %o0, 1;
    bra JOIN;
    ZERO:
    add.u32 %o0, %o0, 2;
    JOIN:
    add.u32 %o0, %o0, %i0;
    """
    (got,) = lanewise(code, [LANES], ["u4"])
    kind = LANES & 3
    np.testing.assert_array_equal(got, 100 + LANES + np.where(kind == 0, 2, kind == 1))


def test_loops_of_different_length_keep_their_own_values() -> None:
    code = """
    mov.u32 %o0, 0;
    mov.u32 %r20, 0;
    LOOP:
    setp.ge.u32 %p1, %r20, %i0;
    @%p1 bra DONE;
    add.u32 %r20, %r20, 1;
    add.u32 %o0, %o0, %r20;
    bra LOOP;
    DONE:
    """
    (got,) = lanewise(code, [LANES], ["u4"])
    np.testing.assert_array_equal(got, LANES * (LANES + 1) // 2)


def test_value_set_before_a_branch_survives_for_the_lanes_that_jump() -> None:
    # %r20 is overwritten by one side only and read behind the join.
    code = """
    mov.u32 %r20, 7;
    setp.lt.u32 %p1, %i0, 5;
    @%p1 bra JOIN;
    mov.u32 %r20, 9;
    JOIN:
    mov.u32 %o0, %r20;
    """
    (got,) = lanewise(code, [LANES], ["u4"])
    np.testing.assert_array_equal(got, np.where(LANES < 5, 7, 9))


def test_guarded_instruction_leaves_other_lanes_alone() -> None:
    code = (
        "mov.u32 %o0, 1; setp.gt.u32 %p1, %i0, 9; @%p1 mov.u32 %o0, 2; @!%p1 add.u32 %o0, %o0, 4;"
    )
    (got,) = lanewise(code, [LANES], ["u4"])
    np.testing.assert_array_equal(got, np.where(LANES > 9, 2, 5))


def test_exited_lanes_write_nothing_more() -> None:
    out = np.zeros(64, np.uint32)
    body = """
    ld.param.u64 %rd0, [p0]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd0, %r0, 4, %rd0;
    setp.lt.u32 %p0, %r0, 10; @%p0 exit; mov.u32 %r1, 1; st.global.u32 [%rd0], %r1;
    """
    launch(entry(body), Buffer(name="out", data=out), block=(64, 1, 1))
    np.testing.assert_array_equal(out, np.arange(64) >= 10)


@pytest.mark.parametrize("threads", [1, 31, 33, 100])
def test_block_that_is_no_multiple_of_a_warp_stays_in_bounds(threads: int) -> None:
    out = np.zeros(2 * threads, np.uint32)
    body = """
    ld.param.u64 %rd0, [p0]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;
    mad.lo.u32 %r3, %r1, %r2, %r0; mad.wide.u32 %rd0, %r3, 4, %rd0;
    bar.sync 0; add.u32 %r3, %r3, 1; st.global.u32 [%rd0], %r3;
    """
    report = launch(
        entry(body), Buffer(name="out", data=out), grid=(2, 1, 1), block=(threads, 1, 1)
    )
    assert not report.hazards
    np.testing.assert_array_equal(out, np.arange(2 * threads) + 1)


def test_grid_and_block_have_three_dimensions() -> None:
    block, grid = (3, 4, 5), (2, 3, 2)
    count = 60 * 12
    out = np.zeros((count, 6), np.uint32)
    body = ["ld.param.u64 %rd0, [p0];"]
    names = ["%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z"]
    body += [f"mov.u32 %r{n}, {name};" for n, name in enumerate(names)]
    body += ["mad.lo.u32 %r10, %r5, 3, %r4; mad.lo.u32 %r10, %r10, 2, %r3;"]
    body += ["mad.lo.u32 %r11, %r2, 4, %r1; mad.lo.u32 %r11, %r11, 3, %r0;"]
    body += ["mad.lo.u32 %r12, %r10, 60, %r11; mad.wide.u32 %rd0, %r12, 24, %rd0;"]
    body += [f"st.global.u32 [%rd0+{4 * n}], %r{n};" for n in range(6)]
    launch(entry("\n".join(body)), Buffer(name="out", data=out.reshape(-1)), grid=grid, block=block)
    linear = np.arange(count)
    thread, group = linear % 60, linear // 60
    want = [thread % 3, thread // 3 % 4, thread // 12, group % 2, group // 2 % 3, group // 6]
    np.testing.assert_array_equal(out, np.stack(want, 1))


def test_endless_loop_ends_in_an_error_at_its_line() -> None:
    body = ".loc 1 7 0\nLOOP:\nadd.u32 %r0, %r0, 1;\nbra.uni LOOP;"
    with pytest.raises(StepLimitError, match=r"k\.cu:7: .* 1000 instructions"):
        launch(entry(body, ""), step_limit=1000)


def test_barrier_that_a_part_of_the_block_reaches_is_a_hazard() -> None:
    body = """
    mov.u32 %r0, %tid.x;
    setp.gt.u32 %p0, %r0, 39;
    @%p0 bra AFTER;
    .loc 1 12 0
    bar.sync 0;
    AFTER:
    vote.sync.ballot.b32 %r1, %p0, -1;
    """
    report = launch(entry(body, ""), grid=(2, 1, 1), block=(64, 1, 1))
    (hazard,) = report.hazards
    assert (hazard.kind, hazard.file, hazard.line) == ("divergent barrier", "k.cu", 12)
    assert hazard.count == 80
    assert "40 of 64 live threads" in hazard.example
    assert "thread (0,0,0) of block (0,0,0)" in hazard.example


def test_barrier_without_the_exited_threads_is_none() -> None:
    body = "mov.u32 %r0, %tid.x; setp.gt.u32 %p0, %r0, 39; @%p0 exit; bar.sync 0;"
    assert not launch(entry(body, ""), block=(64, 1, 1)).hazards


def test_barrier_in_a_branch_that_whole_blocks_take_is_none() -> None:
    body = "mov.u32 %r0, %ctaid.x; setp.gt.u32 %p0, %r0, 1; @%p0 bra OUT; bar.sync 0; OUT:"
    assert not launch(entry(body, ""), grid=(4, 1, 1), block=(64, 1, 1)).hazards


def test_barrier_reduction_counts_over_the_block() -> None:
    body = """
    ld.param.u64 %rd0, [p0]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd0, %r0, 12, %rd0;
    setp.lt.u32 %p1, %r0, 40;
    barrier.cta.red.popc.aligned.u32 %r1, 0, %p1;
    barrier.cta.red.and.aligned.pred %p2, 0, %p1;
    barrier.cta.red.or.aligned.pred %p3, 0, %p1;
    selp.u32 %r2, 1, 0, %p2; selp.u32 %r3, 1, 0, %p3;
    st.global.u32 [%rd0], %r1; st.global.u32 [%rd0+4], %r2; st.global.u32 [%rd0+8], %r3;
    """
    out = np.zeros((48, 3), np.uint32)
    launch(entry(body), Buffer(name="out", data=out.reshape(-1)), block=(48, 1, 1))
    assert (out == [40, 0, 1]).all()


def test_unknown_instruction_is_refused_when_it_is_reached_and_only_then() -> None:
    skipped = "setp.eq.u32 %p1, 1, 1; @%p1 bra OVER; wgmma.fence.sync.aligned; OVER:"
    launch(entry(skipped, ""))
    reached = ".loc 1 33 0\nwgmma.fence.sync.aligned;"
    with pytest.raises(NotEmulatedError) as caught:
        launch(entry(reached, ""))
    assert (caught.value.file, caught.value.line) == ("k.cu", 33)
    assert caught.value.instruction == "wgmma.fence.sync.aligned"


@pytest.mark.parametrize(
    "instruction",
    [
        "mov.u32 %r0, %pm0;",
        "bar.sync 16;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0}, %rd1, %rd2, 1, 1, 1, 0, 0;",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];",
        "cp.async.bulk.commit_group;",
        "mbarrier.init.shared.b64 [%r1], 32;",
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 16;",
        "barrier.cluster.arrive.aligned;",
        "barrier.cluster.wait.acquire;",
        "mapa.shared::cluster.u32 %r1, %r2, 0;",
        "ld.shared::cluster.u32 %r1, [%r2];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];",
        "red.async.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3];",
        "multimem.ld_reduce.global.add.f32 %f1, [%rd1];",
        "mov.u32 %r0, %cluster_ctarank;",
        "setmaxnreg.inc.sync.aligned.u32 240;",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;",
        "tensormap.cp_fenceproxy.global.shared::cta [%rd1], [%r1], 128;",
        "add.rn.bogus.f32 %f1, %f1, %f1;",
        "mul.wide.s64 %rd1, %rd2, %rd3;",
        "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%f0}, {%r0}, {%r1}, {%f0};",
    ],
)
def test_forms_that_are_not_emulated_never_pass(instruction: str) -> None:
    with pytest.raises(NotEmulatedError):
        launch(entry(instruction, ""))


def test_names_of_an_inner_scope_hide_the_outer_ones_until_it_closes() -> None:
    code = """
    {.reg .f16 low;
      cvt.rn.f16.f32 low, %i0;
      mov.b32 %o0, {low,low};}
    { .reg .b32 low; mov.b32 low, 5;
      { .reg .b32 low; mov.b32 low, 6; }
      mov.b32 %o1, low; bra OUT; OUT: }
    { OUT: mov.b32 %r20, 1; }
    """
    x = np.array([1.0, -2.5, 65504.0], np.float32)
    half, outer = lanewise(code, [x], ["u4", "u4"])
    np.testing.assert_array_equal(half.view(np.float16), np.repeat(x.astype(np.float16), 2))
    assert (outer == 5).all()
