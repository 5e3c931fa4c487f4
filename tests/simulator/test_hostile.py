"""PTX that no compiler wrote: one clear error, in bounded time and memory."""

from __future__ import annotations

import contextlib
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci.simulator import Buffer, LaunchError, NotEmulatedError, PtxError, StepLimitError, parse, run
from tests.simulator.cuda_text import ptx_of
from tests.simulator.ptx_text import HEADER, entry, launch
from tests.simulator.test_calls import SOURCE

REAL = ptx_of(SOURCE)
_START = REAL.index("\t// .globl\t")
SHARED_PART, KERNELS = REAL[:_START], re.split(r"(?=\t// \.globl\t)", REAL[_START:])[1:]
OPCODES = sorted(set(re.findall(r"^\s+(?:@!?%p\d+ )?([a-z][\w.]+)", REAL, re.MULTILINE)))
ODD = (
    "99999999999999999999", "-9223372036854775808", "4294967295", "0", "-1", "1.5e999",
    "0f3F800000", "%r1", "%rd1", "%p1", "%SP", "%tid.x", "%clock", "param0", "_",
    "{%r1,%r2}", "!%p1", "[%rd1]",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\0\1\2\xff" * 1000, r"PTX line 1: expected "),
        ("x" * 5_000_000, r"PTX line 1: expected "),
        ("/* " * 500_000, r"PTX line 1: expected \.version"),
        (HEADER + "{" * 100_000, "outside a kernel"),
        (HEADER + ".entry k()\n" + "{" * 100_000, "braces in braces"),
        (HEADER + ".section .debug {" + "{}" * 200_000, "ends inside braces"),
        (HEADER + ".section .debug {}" * 50_000 + ".", "expected a statement"),
        (HEADER + ".func f" + "(" * 100_000 + "{", "malformed"),
        (HEADER + ".func f(.param .b8 x[40000]) { }", "bytes of parameters"),
        (entry(".reg .b32 %x<99999999999999999999>;", ""), "more than|out of range"),
        (entry(f".reg .b32 %x<{'9' * 6000}>;", ""), "expected a register name"),
        (entry(f"mov.u32 %r0, {'9' * 6000};", ""), "unknown name|expected"),
        (entry(f".shared .b8 x[{'9' * 6000}];", ""), "out of range"),
        (entry(".shared .b8 x[" + " " * 50_000 + "!];", ""), "malformed"),
        (entry(".shared .b8 x[2147483647];", ""), "more than a variable"),
        (entry("ld.global.u32 %r0, [%rd0+99999999999999999999];", ""), "offset of at most"),
        (entry("call (%r0), " + "(" * 50_000 + ";", ""), "malformed call"),
        (entry("call nobody;", ""), "unknown name 'nobody'"),
        (entry("brx.idx %r0, NOWHERE;", ""), "no such label"),
        (entry("brx.idx %r0, L; L: .branchtargets L, M;", ""), "no such label"),
        (entry(".unknown_directive 7;", ""), "malformed declaration"),
        (f"{HEADER}.global .f32 x = 1e999999;\n", "expected a number"),
        (f"{HEADER}.global .f32 x = 1.0e300;\n", "out of range"),
        (f"{HEADER}.global .u64 x = {{a b}};\n", "expected a number or an address"),
    ],
)
def test_noise_ends_in_one_line_that_says_where_and_what(text: str, message: str) -> None:
    with pytest.raises(PtxError, match=message) as caught:
        parse(text)
    assert re.match(r"PTX line \d+: ", str(caught.value))
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_text_longer_than_any_module_is_not_read() -> None:
    with pytest.raises(PtxError, match="expected at most 67108864 characters of PTX"):
        parse(" " * (1 << 26) + "x")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (".shared .b8 x[100000000];", "bytes of shared memory"),
        (".local .b8 x[100000000];", "bytes of local memory"),
    ],
)
def test_memory_that_no_block_has_is_refused_at_the_launch(body: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        launch(entry(body, ""))


@pytest.mark.parametrize("cut", np.linspace(0, len(REAL) - 2, 60, dtype=int).tolist())
def test_text_that_is_cut_off_is_refused_or_complete_so_far(cut: int) -> None:
    try:
        parse(REAL[:cut])
    except PtxError as error:
        assert str(error).startswith("PTX line ")  # noqa: PT017
    else:
        assert REAL[:cut].rstrip()[-1:] in '};"' or REAL[:cut].splitlines()[-1].strip()[:1] in "/."


@st.composite
def _damaged(draw: st.DrawFn) -> str:
    """Return one kernel of the real text with a few tokens replaced, in front of the rest."""
    text = draw(st.sampled_from(KERNELS))
    for _ in range(draw(st.integers(1, 4))):
        pattern, replacements = draw(
            st.sampled_from(
                [
                    (r"%[a-z]+\d+", [*re.findall(r"%[a-z]+\d+", text), *ODD]),
                    (r"(?<=[ \t])-?\d+(?=[;,])", list(ODD)),
                    (r"(?m)(?<=^\t)[a-z][\w.]+", OPCODES),
                    (r"\.[a-z]\w*", re.findall(r"\.[a-z]\w*", REAL[:6000])),
                    (r"\$\w+", [*re.findall(r"\$\w+", text), "$NOWHERE"]),
                    (r"(?m)^.*\n", ["", *text.splitlines(keepends=True)]),
                ]
            )
        )
        found = list(re.finditer(pattern, text))
        if found and replacements:
            at = draw(st.sampled_from(found))
            text = text[: at.start()] + draw(st.sampled_from(replacements)) + text[at.end() :]
    return text


@settings(max_examples=150, deadline=None)
@given(_damaged())
def test_damaged_kernels_run_or_end_in_an_error_of_the_simulator(text: str) -> None:
    with contextlib.suppress(PtxError, NotEmulatedError, LaunchError, StepLimitError):
        module = parse(SHARED_PART + text)
        for name, kernel in module.kernels.items():
            arguments = [
                Buffer(name=p.name, data=np.zeros(64, np.int32))
                if p.size_bytes == 8
                else np.void(bytes(p.size_bytes))
                for p in kernel.parameters
            ]
            run(module, name, grid=(2, 1, 1), block=(40, 1, 1), arguments=arguments, step_limit=900)
