"""Instructions between the lanes of a warp."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ci.simulator import Buffer
from tests.simulator.ptx_text import entry, lanewise, launch

LANE = np.arange(64, dtype=np.uint32)
VALUE = LANE * 3 + 100


def shuffled(mode: str, lane: int, b: int, width: int) -> tuple[int, bool]:
    """Return what CUDA's description of the intrinsic says: source lane, whether in range."""
    first = lane // width * width
    source = {
        "up": lane - b,
        "down": lane + b,
        "bfly": lane ^ b,
        "idx": first + b % width,
    }[mode]
    inside = first <= source < first + width if mode != "bfly" else source < first + width
    return (source, True) if inside else (lane, False)


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("width", [2, 4, 8, 16, 32])
def test_shuffle_reads_the_lane_of_its_mode_and_width(mode: str, width: int) -> None:
    for b in (0, 1, 2, 3, 7, 15, 16, 31):
        c = (32 - width) << 8 | (0 if mode == "up" else 31)
        code = f"shfl.sync.{mode}.b32 %o0|%p1, %i0, {b}, {c}, -1; selp.u32 %o1, 1, 0, %p1;"
        got, inside = lanewise(code, [VALUE], ["u4", "u4"])
        want = [shuffled(mode, lane % 32, b, width) for lane in LANE.tolist()]
        sources = LANE // 32 * 32 + np.array([source for source, _ in want])
        np.testing.assert_array_equal(got, VALUE[sources], err_msg=f"{b}")
        np.testing.assert_array_equal(inside, [ok for _, ok in want], err_msg=f"{b}")


def test_shuffle_takes_a_source_lane_of_each_lanes_own() -> None:
    source = (LANE * 7 + 5) % 32
    (got,) = lanewise("shfl.sync.idx.b32 %o0, %i0, %i1, 31, -1;", [VALUE, source], ["u4"])
    np.testing.assert_array_equal(got, VALUE[LANE // 32 * 32 + source])


def test_shuffle_from_an_inactive_lane_is_a_hazard() -> None:
    body = """
    mov.u32 %r0, %tid.x; setp.gt.u32 %p0, %r0, 15; @%p0 bra OUT;
    .loc 1 9 0
    shfl.sync.down.b32 %r1, %r0, 1, 31, -1;
    OUT:
    """
    (hazard,) = launch(entry(body, ""), grid=(3, 1, 1)).hazards
    assert (hazard.kind, hazard.line, hazard.count) == ("shuffle from inactive lane", 9, 3)
    assert "lane 16" in hazard.example
    assert "thread (15,0,0) of block (0,0,0)" in hazard.example


def test_votes_count_active_lanes_only() -> None:
    code = """
    setp.gt.u32 %p1, %i0, 3; mov.u32 %o0, 0; mov.u32 %o1, 0; mov.u32 %o2, 0; mov.u32 %o3, 0;
    and.b32 %r20, %i0, 1; setp.eq.u32 %p2, %r20, 0; @%p2 bra OUT;
    vote.sync.ballot.b32 %o0, %p1, 0xAAAAAAAA; vote.sync.any.pred %p3, %p1, 0xAAAAAAAA;
    vote.sync.all.pred %p4, %p1, 0xAAAAAAAA; activemask.b32 %o3;
    selp.u32 %o1, 1, 0, %p3; selp.u32 %o2, 1, 0, %p4;
    OUT:
    """
    ballot, some, every, active = lanewise(code, [LANE], ["u4"] * 4)
    odd = LANE % 2 == 1
    first = np.where(LANE < 32, 0xAAAAAAA0, 0xAAAAAAAA)
    np.testing.assert_array_equal(ballot, np.where(odd, first, 0))
    np.testing.assert_array_equal(some, odd)
    np.testing.assert_array_equal(every, odd & (LANE >= 32))
    np.testing.assert_array_equal(active, np.where(odd, 0xAAAAAAAA, 0))


@pytest.mark.parametrize(("name", "function"), [("add", np.sum), ("min", np.min), ("max", np.max)])
def test_reduction_is_over_the_warp(name: str, function) -> None:  # noqa: ANN001
    x = (VALUE.astype(np.int32) - 150).view(np.uint32)
    (got,) = lanewise(f"redux.sync.{name}.s32 %o0, %i0, -1;", [x], ["i4"])
    want = function(x.view(np.int32).reshape(2, 32), axis=1)
    np.testing.assert_array_equal(got, np.repeat(want, 32))


def test_match_finds_the_lanes_of_equal_value() -> None:
    x = LANE % 5
    code = "match.any.sync.b32 %o0, %i0, -1; match.all.sync.b32 %o1|%p1, %i0, -1;"
    code += "mov.u32 %r20, 4; match.all.sync.b32 %o2|%p2, %r20, -1; selp.u32 %o3, 1, 0, %p2;"
    some, every, same, agreed = lanewise(code, [x], ["u4"] * 4)
    warps = x.reshape(2, 32)
    want = [sum(1 << i for i in range(32) if w[i] == v) for w in warps.tolist() for v in w]
    np.testing.assert_array_equal(some, want)
    assert (every == 0).all()
    assert (same == 0xFFFFFFFF).all()
    assert (agreed == 1).all()


GROUPS = {
    "halves": np.where(LANE % 32 < 16, 0xFFFF, 0xFFFF0000).astype(np.uint32),
    "every third": (0x49249249 << (LANE % 32 % 3)).astype(np.uint32),
    "each its own": (1 << LANE % 32).astype(np.uint32),
    "of this warp alone": np.where(LANE < 32, 0xFFFFFFFF, 0x0F0F0F0F << LANE % 8 // 4 * 4),
    "all": np.full(64, 0xFFFFFFFF),
}


@pytest.mark.parametrize("members", GROUPS.values(), ids=GROUPS)
def test_lanes_that_name_different_lanes_meet_in_groups(members: np.ndarray) -> None:
    members = members.astype(np.uint32)
    group = [
        [lane // 32 * 32 + i for i in range(32) if mask >> i & 1]
        for lane, mask in enumerate(members.tolist())
    ]
    x = (LANE * 2654435761 >> 7) % 4
    code = """
    setp.gt.u32 %p1, %i0, 1;
    vote.sync.ballot.b32 %o0, %p1, %i1; vote.sync.all.pred %p2, %p1, %i1;
    vote.sync.any.pred %p3, %p1, %i1; vote.sync.uni.pred %p4, %p1, %i1;
    selp.u32 %o1, 1, 0, %p2; selp.u32 %o2, 1, 0, %p3; selp.u32 %o3, 1, 0, %p4;
    redux.sync.add.u32 %o4, %i0, %i1; match.any.sync.b32 %o5, %i0, %i1;
    match.all.sync.b32 %o6|%p5, %i0, %i1; elect.sync %o7|%p6, %i1;
    """
    got = lanewise(code, [x, members], ["u4"] * 8)
    true = [[int(x[i]) > 1 for i in each] for each in group]
    bits = [sum(1 << i % 32 for i in each if x[i] > 1) for each in group]
    alike = [sum(1 << i % 32 for i in group[lane] if x[i] == x[lane]) for lane in LANE.tolist()]
    want = [
        bits,
        [all(each) for each in true],
        [any(each) for each in true],
        [all(each) or not any(each) for each in true],
        [int(x[each].sum()) for each in group],
        alike,
        np.where(np.array(alike, np.uint32) == members, members, 0),
        [each[0] % 32 for each in group],
    ]
    for number, (said, expected) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_array_equal(said, np.array(expected, np.uint32), err_msg=f"%o{number}")


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("%laneid", lambda lane: lane),
        ("%lanemask_eq", lambda lane: 1 << lane),
        ("%lanemask_lt", lambda lane: (1 << lane) - 1),
        ("%lanemask_ge", lambda lane: 0xFFFFFFFF >> lane << lane),
        ("%lanemask_gt", lambda lane: 0xFFFFFFFE << lane & 0xFFFFFFFF),
    ],
)
def test_lane_registers_tell_the_lane(name: str, want) -> None:  # noqa: ANN001
    (got,) = lanewise(f"mov.u32 %o0, {name};", [LANE], ["u4"])
    np.testing.assert_array_equal(got, [want(lane % 32) for lane in LANE.tolist()])


ATOMICS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda old, v: old + v & 0xFFFFFFFF,
    "min.u32": min,
    "max.s32": lambda old, v: max(old, v, key=lambda x: x - (x >> 31 << 32)),
    "and.b32": lambda old, v: old & v,
    "or.b32": lambda old, v: old | v,
    "xor.b32": lambda old, v: old ^ v,
    "exch.b32": lambda _, v: v,
    "inc.u32": lambda old, v: 0 if old >= v else old + 1,
    "dec.u32": lambda old, v: v if old == 0 or old > v else old - 1,
}


@pytest.mark.parametrize("space", ["global", "shared", ""])
@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_act_in_lane_order(name: str, space: str) -> None:
    rng = np.random.default_rng(5)
    where = rng.integers(0, 4, 64).astype(np.uint32) * 4
    value = rng.integers(0, 2**32, 64).astype(np.uint32)
    value[::3] = 3
    table, old = np.array([1, 2, 0x80000000, 5], np.uint32), np.zeros(64, np.uint32)
    buffers = [
        Buffer(name=n, data=x)
        for n, x in (("where", where), ("value", value), ("table", table), ("old", old))
    ]
    start = table.copy()
    back = "@%p0 ld.shared.u32 %r4, [%rd8]; @%p0 st.global.u32 [%rd9], %r4;"
    dotted = f".{space}" if space else ""
    body = f"""
    .shared .align 4 .b8 sh[16];
    ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1];
    ld.param.u64 %rd2, [p2]; ld.param.u64 %rd3, [p3];
    mov.u32 %r0, %tid.x; mul.wide.u32 %rd4, %r0, 4; add.u64 %rd0, %rd0, %rd4;
    add.u64 %rd1, %rd1, %rd4; add.u64 %rd3, %rd3, %rd4;
    ld.global.u32 %r1, [%rd0]; ld.global.u32 %r2, [%rd1]; cvt.u64.u32 %rd5, %r1;
    setp.lt.u32 %p0, %r0, 4; mov.u64 %rd7, sh; add.u64 %rd8, %rd7, %rd4; add.u64 %rd9, %rd2, %rd4;
    @%p0 ld.global.u32 %r4, [%rd9]; @%p0 st.shared.u32 [%rd8], %r4; bar.sync 0;
    {"add.u64 %rd6, %rd7, %rd5;" if space == "shared" else "add.u64 %rd6, %rd2, %rd5;"}
    atom{dotted}.{name} %r3, [%rd6], %r2; st.global.u32 [%rd3], %r3;
    red{dotted}.{name.replace("exch", "add").replace("add.b32", "add.u32")} [%rd6], %r2;
    bar.sync 0; {back if space == "shared" else ""}
    """
    text = entry(body, ", ".join(f".param .u64 p{n}" for n in range(4)))
    report = launch(text, *buffers, block=(64, 1, 1))
    assert not report.hazards
    assert report.totals.atomic_requests == 4
    words, seen = start.tolist(), []
    for at, v in zip((where // 4).tolist(), value.tolist(), strict=True):
        seen.append(words[at])
        words[at] = ATOMICS[name](words[at], v)
    again = ATOMICS[name] if not name.startswith("exch") else ATOMICS["add.u32"]
    for at, v in zip((where // 4).tolist(), value.tolist(), strict=True):
        words[at] = again(words[at], v)
    np.testing.assert_array_equal(old, seen)
    np.testing.assert_array_equal(table, words)


def test_compare_and_swap_lets_one_lane_win() -> None:
    table, old = np.zeros(1, np.uint32), np.zeros(32, np.uint32)
    body = """
    ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1]; mov.u32 %r0, %tid.x;
    mad.wide.u32 %rd1, %r0, 4, %rd1; add.u32 %r1, %r0, 7;
    atom.global.cas.b32 %r2, [%rd0], 0, %r1; st.global.u32 [%rd1], %r2;
    """
    launch(
        entry(body, ".param .u64 p0, .param .u64 p1"),
        Buffer(name="table", data=table),
        Buffer(name="old", data=old),
    )
    assert table[0] == 7
    assert old.tolist() == [0, *[7] * 31]


def test_float_atomics_without_a_result_add_in_lane_order() -> None:
    total = np.zeros(1, np.float32)
    value = np.float32(0.1)
    body = "ld.param.u64 %rd0, [p0]; mov.f32 %f1, 0f3DCCCCCD; atom.global.add.f32 %f2, [%rd0], %f1;"
    launch(entry(body), Buffer(name="total", data=total), grid=(2, 1, 1), block=(64, 1, 1))
    want = np.float32(0)
    for _ in range(128):
        want = want + value
    assert total[0] == want
