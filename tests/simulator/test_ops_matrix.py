"""Asynchronous copies, matrix loads and matrix products."""

from __future__ import annotations

import numpy as np
import pytest

from ci.simulator import Buffer
from tests.simulator.ptx_text import Array, entry, launch

RNG = np.random.default_rng(11)
TWO = ".param .u64 p0, .param .u64 p1"
COPY = """
.shared .align 16 .b8 buf[512];
ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1]; mov.u32 %r0, %tid.x;
mad.wide.u32 %rd0, %r0, 16, %rd0; mad.wide.u32 %rd1, %r0, 16, %rd1;
mov.u32 %r1, buf; mad.lo.u32 %r1, %r0, 16, %r1;
"""
STORE = """
ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1]; st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};
"""


def copied(code: str) -> tuple[Array, Array, tuple[str, ...]]:
    """Return source, result and kinds of hazards of a copy of 512 bytes."""
    source, result = np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    buffers = Buffer(name="source", data=source), Buffer(name="result", data=result)
    report = launch(entry(COPY + code + STORE, TWO), *buffers)
    assert report.totals.global_load_requests == 1
    return source, result, tuple(h.kind for h in report.hazards)


def test_copy_arrives_when_its_group_is_waited_for() -> None:
    code = "cp.async.cg.shared.global [%r1], [%rd0], 16; cp.async.commit_group;"
    source, result, hazards = copied(code + "cp.async.wait_group 0;")
    np.testing.assert_array_equal(result, source)
    assert not hazards


def test_copy_without_a_group_is_waited_for_by_wait_all() -> None:
    source, result, _ = copied(
        "cp.async.ca.shared.global.L2::128B [%r1], [%rd0], 16; cp.async.wait_all;"
    )
    np.testing.assert_array_equal(result, source)


def test_wait_that_is_one_group_short_leaves_poison_and_is_found() -> None:
    code = "cp.async.cg.shared.global [%r1], [%rd0], 16; cp.async.commit_group;"
    _, result, hazards = copied(code + "cp.async.wait_group 1;")
    assert (result == 0xFFFFFFFF).all()
    assert hazards == ("asynchronous copy read too early",)


def test_empty_groups_count_as_groups() -> None:
    code = "cp.async.cg.shared.global [%r1], [%rd0], 16; cp.async.commit_group;"
    source, result, _ = copied(code + "cp.async.commit_group; cp.async.wait_group 1;")
    np.testing.assert_array_equal(result, source)


def test_bytes_the_source_does_not_give_are_zero() -> None:
    code = "and.b32 %r6, %r0, 1; shl.b32 %r6, %r6, 3;"
    code += "cp.async.cg.shared.global [%r1], [%rd0], 16, %r6; cp.async.wait_all;"
    source, result, _ = copied(code)
    lanes = source.reshape(32, 4)
    given = (np.arange(4) < 2) & (np.arange(32) % 2 == 1)[:, None]
    np.testing.assert_array_equal(result.reshape(32, 4), np.where(given, lanes, 0))


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_matrix_load_gives_each_lane_its_elements(count: int, *, transposed: bool) -> None:
    source, result = np.arange(256, dtype=np.uint16), np.zeros(32 * count, np.uint32)
    registers = ", ".join(f"%r{10 + n}" for n in range(count))
    form = f"x{count}.trans" if transposed else f"x{count}"
    body = f"""
    .shared .align 16 .b8 buf[512];
    ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1]; mov.u32 %r0, %tid.x;
    mad.wide.u32 %rd0, %r0, 16, %rd0; mov.u32 %r1, buf; mad.lo.u32 %r1, %r0, 16, %r1;
    ld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, [%rd0]; st.shared.v4.u32 [%r1], {{%r2, %r3, %r4, %r5}};
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.{form}.shared.b16 {{{registers}}}, [%r1];
    mad.wide.u32 %rd1, %r0, {4 * count}, %rd1;
    """
    body += "\n".join(f"st.global.u32 [%rd1+{4 * n}], %r{10 + n};" for n in range(count))
    buffers = Buffer(name="source", data=source), Buffer(name="result", data=result)
    assert not launch(entry(body, TWO), *buffers).hazards
    got = result.view(np.uint16).reshape(32, count, 2)
    for lane in range(32):
        for matrix in range(count):
            whole = source.reshape(4, 8, 8)[matrix]
            whole = whole.T if transposed else whole
            row, column = lane // 4, lane % 4 * 2
            np.testing.assert_array_equal(got[lane, matrix], whole[row, column : column + 2])


def fragments(matrix: Array, shape: tuple[int, int], place) -> Array:  # noqa: ANN001
    """Return what each lane holds, (32, elements); ``place`` maps (lane, element) to an index."""
    elements = shape[0] * shape[1] // 32
    return np.array([[matrix[place(lane, e)] for e in range(elements)] for lane in range(32)])


def place_a(per: int):  # noqa: ANN201
    """Return the index of element e of lane in A, as the manual's figures draw it."""

    def place(lane: int, element: int) -> tuple[int, int]:
        register, e = divmod(element, per)
        return lane // 4 + 8 * (register % 2), lane % 4 * per + e + 4 * per * (register // 2)

    return place


def place_b(per: int):  # noqa: ANN201
    def place(lane: int, element: int) -> tuple[int, int]:
        register, e = divmod(element, per)
        return lane % 4 * per + e + 4 * per * register, lane // 4

    return place


def place_c(lane: int, element: int) -> tuple[int, int]:
    return lane // 4 + 8 * (element // 2), lane % 4 * 2 + element % 2


def to_bits(values: Array, kind: str) -> Array:
    """Return (32, elements) values as (32, registers) words."""
    if kind == "bf16":
        halves = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        types = {"f16": "f2", "tf32": "f4", "s8": "i1", "u8": "u1", "f32": "f4", "s32": "i4"}
        halves = values.astype(types[kind])
    return np.ascontiguousarray(halves).view(np.uint32)


@pytest.mark.parametrize(
    ("depth", "kinds"),
    [
        (16, "f32.f16.f16.f32"),
        (8, "f32.f16.f16.f32"),
        (16, "f16.f16.f16.f16"),
        (16, "f32.bf16.bf16.f32"),
        (8, "f32.tf32.tf32.f32"),
        (4, "f32.tf32.tf32.f32"),
        (32, "s32.s8.s8.s32"),
        (16, "s32.u8.s8.s32"),
    ],
)
def test_matrix_product_of_small_integers_is_exact(depth: int, kinds: str) -> None:
    d_kind, a_kind, b_kind, c_kind = kinds.split(".")
    low = 0 if "u8" in kinds else -5
    a, b = RNG.integers(low, 6, (16, depth)), RNG.integers(low, 6, (depth, 8))
    c = RNG.integers(-9, 9, (16, 8))
    per = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4}[a_kind]
    words = np.concatenate(
        [
            to_bits(fragments(a, a.shape, place_a(per)), a_kind),
            to_bits(fragments(b, b.shape, place_b(per)), b_kind),
            to_bits(fragments(c, c.shape, place_c), c_kind),
        ],
        axis=1,
    )
    counts = [16 * depth // 32 // per, depth * 8 // 32 // per, 2 if c_kind == "f16" else 4]
    got = product(words, counts, f"m16n8k{depth}.row.col.{kinds}")
    types = {"f16": np.float16, "f32": np.float32, "s32": np.int32}
    want = fragments(a @ b + c, c.shape, place_c)
    np.testing.assert_array_equal(got.view(types[d_kind]), want)


def product(words: Array, counts: list[int], form: str) -> Array:
    """Execute one product on (32, registers) words; return the result's registers."""
    registers = [f"%r{4 + n}" for n in range(sum(counts))]
    a, b = counts[0], counts[0] + counts[1]
    groups = [registers[b:], registers[:a], registers[a:b], registers[b:]]
    body = f"""
    ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1]; mov.u32 %r0, %tid.x;
    mad.wide.u32 %rd0, %r0, {4 * len(registers)}, %rd0;
    mad.wide.u32 %rd1, %r0, {4 * counts[2]}, %rd1;
    """
    body += "\n".join(f"ld.global.u32 {r}, [%rd0+{4 * n}];" for n, r in enumerate(registers))
    body += f"mma.sync.aligned.{form} " + ", ".join(f"{{{', '.join(g)}}}" for g in groups) + ";"
    body += "\n".join(f"st.global.u32 [%rd1+{4 * n}], {r};" for n, r in enumerate(registers[b:]))
    result = np.zeros(32 * counts[2], np.uint32)
    source = np.ascontiguousarray(words).reshape(-1)
    buffers = Buffer(name="source", data=source), Buffer(name="result", data=result)
    assert not launch(entry(body, TWO), *buffers).hazards
    return result.reshape(32, -1)


def test_matrix_product_by_a_part_of_a_warp_is_a_hazard() -> None:
    body = """
    mov.u32 %r0, %tid.x; setp.gt.u32 %p0, %r0, 20; @%p0 bra OUT;
    mov.u32 %r1, 0; mov.f32 %f0, 0f00000000;
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
      {%f0,%f1,%f2,%f3}, {%r1,%r1}, {%r1}, {%f0,%f0,%f0,%f0};
    OUT:
    """
    (hazard,) = launch(entry(body, "")).hazards
    assert hazard.kind == "matrix instruction with a partial warp"
    assert hazard.count == 21
