"""What the parser reads out of PTX, and that nonsense ends in one kind of error."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci.simulator import Place, PtxError, parse
from ci.simulator.ptx import (
    Address,
    Immediate,
    Pair,
    Register,
    Symbol,
    Target,
    Vector,
)
from tests.simulator.ptx_text import HEADER, entry

SAMPLE = (
    entry(
        """
        .shared .align 16 .b8 buf[64];
        .loc 1 10 3
        LOOP:
        ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+-1024];
        @!%p1 bra LOOP;
        { .reg .f16 low; cvt.rn.f16.f32 low, %f1; mov.b32 %r1, {low,low}; }
        shfl.sync.down.b32 %r5|%p2, %r1, 1, 31, -1;
        st.shared::cta.f32 [buf+4], 0f3F800000;
        mov.u32 %r2, %tid.x; // a comment; with a semicolon
        bar.sync 0;
        """,
        ".param .u64 .ptr .align 4 p0, .param .align 16 .b8 p1[24], .param .u32 p2",
    )
    + '\t.section .debug_str\n{\nL:\n.b8 1,2,3\n}\n.file 2 "/opt/cuda-13/include/cuda_fp16.h"\n'
)


def test_operands_take_every_form() -> None:
    code = parse(SAMPLE).kernels["k"].instructions
    load, branch, convert, pack, shuffle, store = code[:6]
    assert load.operands[0] == Vector(
        items=(Register(name="%f1", type="f32"), Register(name="%f2", type="f32"))
    )
    assert load.operands[1] == Address(base=Register(name="%rd1", type="b64"), offset=-1024)
    assert branch.operands == (Target(pc=0),)
    assert branch.guard is not None
    assert branch.guard.negated
    assert convert.operands[0] != pack.operands[0]
    assert isinstance(shuffle.operands[0], Pair)
    assert store.modifiers == ("shared", "f32")
    assert store.operands == (
        Address(base=Symbol(name="buf"), offset=4),
        Immediate(bits=0x3F800000, kind="f32"),
    )


def test_leaders_are_targets_and_what_follows_a_branch_or_barrier() -> None:
    code = parse(SAMPLE).kernels["k"].instructions
    assert [i.pc for i in code if i.leader] == [0, 2, 8]


def test_parameters_are_laid_out_by_their_own_alignment() -> None:
    parameters = parse(SAMPLE).kernels["k"].parameters
    assert [(p.name, p.offset, p.size_bytes) for p in parameters] == [
        ("p0", 0, 8),
        ("p1", 16, 24),
        ("p2", 40, 4),
    ]


def test_code_from_a_toolkit_header_is_placed_where_the_user_calls_it() -> None:
    files = '.file 2 "/x/nvidia/cu13/include/cuda_fp16.hpp"\n.file 3 "include/layout.cuh"\n'
    body = """
    .loc 1 5 1
    mov.u32 %r0, 1;
    .loc 2 50 3, function_name LBL, inlined_at 1 8 2
    mov.u32 %r0, 2;
    .loc 2 99 1, function_name LBL, inlined_at 2 50 3
    mov.u32 %r0, 3;
    .loc 3 4 1, function_name LBL, inlined_at 1 9 2
    mov.u32 %r0, 4;
    .loc 1 0 0
    mov.u32 %r0, 5;
    """
    code = parse(entry(body, "") + files).kernels["k"].instructions
    assert [i.place for i in code[:5]] == [
        Place(file="k.cu", line=5),
        Place(file="k.cu", line=8),
        Place(file="k.cu", line=8),
        Place(file="include/layout.cuh", line=4),
        Place(file="include/layout.cuh", line=4),
    ]


@pytest.mark.parametrize(
    ("literal", "bits"),
    [("10", 10), ("-1", 2**64 - 1), ("0x1F", 31), ("017", 15), ("0b101", 5), ("7U", 7)],
)
def test_integer_literals_have_every_base(literal: str, bits: int) -> None:
    (move, *_) = parse(entry(f"mov.u32 %r0, {literal};", "")).kernels["k"].instructions
    assert move.operands[1] == Immediate(bits=bits, kind="int")


def test_functions_and_calls_are_read() -> None:
    text = HEADER + (
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b)\n;\n"
        ".visible .func f(.param .b64 x)\n{ .reg .b32 %z; { ret; } }\n"
        ".global .align 1 .b8 $str[3] = {72, 105, 0};\n"
        ".visible .entry k()\n.maxntid 256, 1, 1\n{\n.reg .b64 %rd<3>;\n"
        "{ .param .b64 param0; .param .b32 r; st.param.b64 [param0+0], %rd1;\n"
        "call.uni (r), f, (param0); }\n"
        "ret; }\n"
    )
    kernel = parse(text).kernels["k"]
    # The function follows the kernel; each has a return of its own in case a label ends it.
    assert [i.opcode for i in kernel.instructions] == ["st", "call", "ret", "ret", "ret", "ret"]
    assert [(f.name, f.start, f.end) for f in kernel.functions.values()] == [("f", 4, 6)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mov.u32 %r99, 1;", "unknown name '%r99'"),
        ("bra NOWHERE;", "no such label"),
        (".reg .b32 %x<2000000000>;", "more than"),
        (".reg .q32 %x;", "unknown register type"),
        (".weird 5;", "malformed declaration"),
        ("L: L: ret;", "defined twice"),
        ("@%r1 mov.u32 %r0, 1;", "not a predicate"),
        ("add.u32 %r0, %r1,;", "empty operand"),
        ("mov.b64 {%r0, %r1, %rd0;", "unbalanced|expected"),
        (".local .align 3 .b8 x[4];", "power of two"),
        (".shared .b8 x[99999999999];", "more than a variable"),
    ],
)
def test_what_is_no_ptx_is_refused_with_its_line(body: str, message: str) -> None:
    with pytest.raises(PtxError, match=message) as caught:
        parse(entry("\n\n" + body, ""))
    assert str(caught.value).startswith("PTX line ")


def test_empty_text_is_refused() -> None:
    with pytest.raises(PtxError, match=r"expected \.version"):
        parse("")


@given(st.integers(0, len(SAMPLE)))
def test_truncated_text_is_read_or_refused(length: int) -> None:
    with contextlib.suppress(PtxError):
        parse(SAMPLE[:length])


@settings(max_examples=200)
@given(
    st.integers(0, len(SAMPLE)),
    st.integers(0, 12),
    st.text(alphabet='%rpf019.;,{}[]<>()+-|!_@:# \n"/*\\', max_size=8),
)
def test_damaged_text_is_read_or_refused(start: int, length: int, patch: str) -> None:
    with contextlib.suppress(PtxError):
        parse(SAMPLE[:start] + patch + SAMPLE[start + length :])
