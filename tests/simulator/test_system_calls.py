"""printf, assert and trap in kernels, and variables that hold addresses or keep their values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.simulator import Buffer, LaunchError, Report, run
from ci.simulator.printf import OUTPUT_MAX_CHARACTERS, formatted
from tests.simulator.cuda_text import module_of
from tests.simulator.ptx_text import HEADER, entry, launch

SOURCE = r"""
__device__ int numbers[4] = {1, 2, 3, 4};
__device__ int *second = numbers + 1;
__constant__ const char *word = "hello";
__device__ int visits;
__constant__ float factor[2];
extern "C" __global__ void says(int n) {
    int i = threadIdx.x;
    const char *form = "thread %d of %s: %5.2f|%-4u|%c|%lld%%\n";
    if (i < n) printf(form, i, word, i * 0.5, i, 'a' + i, 1ll << 40);
}
extern "C" __global__ void asserts(int n) {
    if (threadIdx.x > 40)
        assert(n > 3);
}
extern "C" __global__ void traps() { if (threadIdx.x == 5) __trap(); }
extern "C" __global__ void addresses(int *out) { out[0] = *second + 100 * word[1]; }
extern "C" __global__ void visit(int *out) {
    if (threadIdx.x == 0) { visits += 1; second = numbers + visits; out[0] = visits; }
}
extern "C" __global__ void scaled(float *out) { out[0] = factor[0] + factor[1]; }
"""


def _run(name: str, *arguments: Buffer | np.generic, **options: dict[str, bytes]) -> Report:
    return run(
        module_of(SOURCE),
        name,
        grid=(1, 1, 1),
        block=(64, 1, 1),
        arguments=arguments,
        constants=options.get("constants"),
    )


def test_what_threads_print_is_in_the_report() -> None:
    report = _run("says", np.int32(2))
    assert report.output == (
        "thread 0 of hello:  0.00|0   |a|1099511627776%",
        "thread 1 of hello:  0.50|1   |b|1099511627776%",
    )
    assert _run("says", np.int32(0)).output == ()


def test_output_is_bounded_and_says_so() -> None:
    report = run(
        module_of(SOURCE), "says", grid=(400, 1, 1), block=(64, 1, 1), arguments=[np.int32(64)]
    )
    assert sum(map(len, report.output)) < 2 * OUTPUT_MAX_CHARACTERS
    assert "more calls of printf" in report.output[-1]


class _Memory:
    """A stack of arguments at address 0."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self, address: int, count: int) -> bytes:
        return self.content[address : address + count]

    def text(self, address: int) -> str:
        return {8: "word"}[address]


@pytest.mark.parametrize(
    ("pattern", "arguments", "text"),
    [
        ("%d %i", [np.int32(-3), np.int32(4)], "-3 4"),
        ("%+05d|% d|%.3d", [np.int32(42), np.int32(7), np.int32(7)], "+0042| 7|007"),
        (
            "%u %x %X %#x %#o",
            [np.int32(-1)] * 5,
            "4294967295 ffffffff FFFFFFFF 0xffffffff 037777777777",
        ),
        ("%hhd %hu", [np.int32(200), np.int32(-1)], "-56 65535"),
        ("%d %lld", [np.int32(1), np.int32(0), np.int64(-5)], "1 -5"),
        ("%zu", [np.uint64(2**63)], "9223372036854775808"),
        ("%s|%6s|%-6s|%.2s", [np.int64(8)] * 4, "word|  word|word  |wo"),
        ("%p", [np.int64(255)], "0xff"),
        ("%f %.0f %e %g %G", [np.float64(1.5)] * 5, "1.500000 2 1.500000e+00 1.5 1.5"),
        ("%a", [np.float64(1.5)], "0x1.8p+0"),
        ("%08.2f|%-8.1f|", [np.float64(-1.5)] * 2, "-0001.50|-1.5    |"),
        (
            "%f %F %5g",
            [np.float64(np.nan), np.float64(np.inf), np.float64(-np.inf)],
            "nan INF  -inf",
        ),
        (
            "%*d|%.*f",
            [np.int32(4), np.int32(7), np.int32(1), np.int32(0), np.float64(2.25)],
            "   7|2.2",
        ),
        ("100%% %", [], "100% %"),
        ("%d", [], "0"),
    ],
)
def test_formats_are_those_of_c(pattern: str, arguments: list[np.generic], text: str) -> None:
    memory = _Memory(b"".join(argument.tobytes() for argument in arguments))
    assert formatted(pattern, memory, 0)[0] == text


@given(
    st.text(alphabet="%0123456789.*+-# hljzdiouxXcaAeEfFgGp", max_size=24), st.binary(max_size=64)
)
def test_any_format_gives_bounded_text(pattern: str, content: bytes) -> None:
    assert len(formatted(pattern, _Memory(content), 0)[0]) < 24 * 3000


def test_failed_assertion_is_a_finding_with_its_line_and_ends_the_launch() -> None:
    report = _run("asserts", np.int32(2))
    (hazard,) = report.hazards
    assert (hazard.kind, hazard.file, hazard.line, hazard.count) == (
        "failed assertion", "k.cu",
        14, 23,
    )  # fmt: skip
    assert "assertion n > 3 at k.cu:14, in void asserts(int)" in hazard.example
    assert "thread (41,0,0) of block (0,0,0)" in hazard.example
    assert report.stopped
    assert not _run("asserts", np.int32(4)).hazards


def test_reached_trap_is_a_finding_with_its_line() -> None:
    (hazard,) = _run("traps").hazards
    assert (hazard.kind, hazard.line, hazard.count) == ("trap", 16, 1)


def test_variables_may_hold_addresses_of_others() -> None:
    out = np.zeros(1, np.int32)
    _run("addresses", Buffer(name="out", data=out))
    assert out[0] == 2 + 100 * ord("e")


def test_variables_keep_their_values_for_the_module_s_next_launch() -> None:
    module = module_of(SOURCE)
    out = np.zeros(1, np.int32)
    for _ in range(2):
        buffer = Buffer(name="out", data=out)
        run(module, "visit", grid=(1, 1, 1), block=(32, 1, 1), arguments=[buffer])
    assert out[0] == 2
    run(module, "addresses", grid=(1, 1, 1), block=(1, 1, 1), arguments=[buffer])
    assert out[0] == 3 + 100 * ord("e")
    # Another load of the module begins anew.
    _run("visit", buffer)
    assert out[0] == 1


def test_constants_set_by_name_stay_set() -> None:
    module = module_of(SOURCE)
    out = np.zeros(1, np.float32)
    buffer = Buffer(name="out", data=out)
    content = np.array([1.5, 2.0], np.float32).tobytes()
    for constants in ({"factor": content}, None):
        out[:] = 0
        run(
            module,
            "scaled",
            grid=(1, 1, 1),
            block=(1, 1, 1),
            arguments=[buffer],
            constants=constants,
        )
        assert out[0] == 3.5


def test_address_of_what_the_module_lacks_only_hurts_kernels_that_use_it() -> None:
    text = f"{HEADER}.global .u64 lost = nowhere;\n.entry k()\n{{ ret; }}\n"
    text += ".entry uses()\n{ .reg .b64 %a; ld.global.u64 %a, [lost]; }\n"
    launch(text)
    with pytest.raises(LaunchError, match="lost is initialised with the address of nowhere"):
        launch(text.replace(".entry k", ".entry x").replace("uses", "k"))


def test_too_many_bytes_of_variables_or_local_memory_are_refused_before_they_are_taken() -> None:
    outside = "".join(f".global .b8 v{n}[268435456];\n" for n in range(9))
    body = "".join(f"ld.global.b8 %r0, [v{n}];\n" for n in range(9))
    with pytest.raises(LaunchError, match="bytes of variables"):
        launch(entry(body, "", outside))
    with pytest.raises(LaunchError, match="local memory for the threads of a block"):
        launch(entry(".local .b8 big[524288];", ""), block=(1024, 1, 1))
