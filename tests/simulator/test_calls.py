"""Device functions: parameters, frames, pointers to functions, recursion, divergence."""

from __future__ import annotations

import numpy as np
import pytest

from ci.simulator import Buffer, LaunchError, NotEmulatedError, Report, StepLimitError, run
from tests.simulator.cuda_text import module_of
from tests.simulator.ptx_text import HEADER, entry, launch

SOURCE = r"""
struct S { int a; double b; char c[5]; };
__device__ __noinline__ S change(S s, int i) {
    s.a += i; s.b *= 2; s.c[i & 3] = 7;
    return s;
}
__device__ __noinline__ int scale(int a, int b) { return a * b; }
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ bool odd(int n);
__device__ __noinline__ bool even(int n) { return n == 0 ? true : odd(n - 1); }
__device__ __noinline__ bool odd(int n) { return n == 0 ? false : even(n - 1); }
__device__ __noinline__ int digits(int n, int depth) {
    int seen[4];
    for (int j = 0; j < 4; ++j) seen[j] = depth * 10 + j;
    int inner = depth < n ? digits(n, depth + 1) : 0;
    return inner + seen[n & 3];
}
struct Base { __device__ virtual int go(int x) = 0; };
struct Plus : Base { int k; __device__ int go(int x) override { return x + k; } };
struct Twice : Base { __device__ int go(int x) override { return x * 2; } };
typedef int (*Function)(int);
__device__ int next(int x) { return x + 1; }
__device__ int fivefold(int x) { return x * 5; }
__device__ Function table[2] = {next, fivefold};
__device__ __noinline__ void fill(int *where, int value) { where[value & 3] = value; }

extern "C" __global__ void structs(int *out) {
    int i = threadIdx.x;
    S s;
    s.a = out[i]; s.b = i;
    for (int j = 0; j < 5; ++j) s.c[j] = j;
    S r = change(s, i);
    out[i] = r.a + (int)r.b + 100 * r.c[0] + 1000 * r.c[4];
}
extern "C" __global__ void diverging(int *out) {
    int i = threadIdx.x;
    int x = 1;
    if (i % 3 == 0) x = scale(i, 2);
    else if (i % 3 == 1) x = scale(i, 3) + scale(i, 4);
    out[i] = x;
}
extern "C" __global__ void joining(int *out) {
    __shared__ int sum[64];
    int i = threadIdx.x;
    sum[i] = i & 1 ? scale(i, 3) : i;
    __syncthreads();
    out[i] = sum[63 - i];
}
extern "C" __global__ void recursive(int *out) {
    int i = threadIdx.x;
    out[i] = fib(i & 7) + 100 * (i & 1 ? odd(i) : even(i + 1)) + 1000 * digits(i & 7, 0);
}
extern "C" __global__ void endless(int *out) { out[0] = digits(1 << 30, 0); }
extern "C" __global__ void virtuals(int *out) {
    int i = threadIdx.x;
    Plus plus; plus.k = 4;
    Twice twice;
    Base *p = (out[i] & 1) ? (Base *)&plus : (Base *)&twice;
    asm volatile("" : "+l"(p) :: "memory");
    out[i] = p->go(i) + 1000 * table[(out[i] >> 1) & 1](i);
}
extern "C" __global__ void pointers(int *out) {
    int mine[4] = {9, 9, 9, 9};
    fill(mine, threadIdx.x);
    out[threadIdx.x] = mine[0] + 100 * mine[1] + 10000 * mine[2];
}
extern "C" __global__ void outside(int *out) {
    out[threadIdx.x] = 0;
    if (threadIdx.x == 3) fill(out + 3, 1 << 20);
    fill(out + 40 * threadIdx.x, 0);
}
extern "C" __global__ void early(int *out) {
    int i = threadIdx.x;
    if (i < 10) { out[i] = scale(i, 7); return; }
    out[i] = scale(i, 9);
}
extern "C" __global__ void heap(int **out) { out[0] = (int *)malloc(16); free(out[0]); }
"""
THREADS = np.arange(64, dtype=np.int32)


def _run(name: str, out: np.ndarray, threads: int = 64) -> Report:
    buffers = [Buffer(name="out", data=out)]
    return run(module_of(SOURCE), name, grid=(1, 1, 1), block=(threads, 1, 1), arguments=buffers)


def _out(name: str, start: np.ndarray = THREADS * 7, threads: int = 64) -> np.ndarray:
    out = start[:threads].copy()
    report = _run(name, out, threads)
    assert not report.hazards, report.hazards
    return out


@pytest.mark.parametrize("threads", [64, 45, 1])
def test_structures_are_passed_and_returned_by_value(threads: int) -> None:
    i = THREADS[:threads]
    first = np.where(i & 3, 0, 7)
    want = 8 * i + 2 * i + 100 * first + 1000 * 4
    np.testing.assert_array_equal(_out("structs", threads=threads), want)


def test_lanes_that_call_from_different_places_keep_their_own_values() -> None:
    i = THREADS
    want = np.where(i % 3 == 0, 2 * i, np.where(i % 3 == 1, 7 * i, 1))
    np.testing.assert_array_equal(_out("diverging"), want)


def test_lanes_join_behind_a_call_before_the_barrier() -> None:
    i = 63 - THREADS
    np.testing.assert_array_equal(_out("joining"), np.where(i & 1, 3 * i, i))


@pytest.mark.parametrize("threads", [64, 37])
def test_recursion_keeps_registers_and_local_arrays_of_every_level(threads: int) -> None:
    i = THREADS[:threads]
    fib = np.array([0, 1, 1, 2, 3, 5, 8, 13])
    n = i & 7
    digits = 10 * n * (n + 1) // 2 + (n + 1) * (n & 3)
    alternating = np.where(i & 1, 1, 0)
    want = fib[n] + 100 * alternating + 1000 * digits
    np.testing.assert_array_equal(_out("recursive", threads=threads), want)


def test_recursion_without_end_is_an_error_at_its_line() -> None:
    with pytest.raises(StepLimitError, match=r"^k\.cu:15: endless .* calls 256 deep"):
        _run("endless", np.zeros(1, np.int32), 1)


def test_virtual_functions_and_tables_call_what_each_lane_asks_for() -> None:
    start = (THREADS * 5 % 4).astype(np.int32)
    want = np.where(start & 1, THREADS + 4, 2 * THREADS)
    want += 1000 * np.where(start >> 1, 5 * THREADS, THREADS + 1)
    np.testing.assert_array_equal(_out("virtuals", start), want)


def test_function_writes_the_caller_s_own_array_through_a_pointer() -> None:
    i = THREADS
    places = [np.where(i & 3 == n, i, 9) for n in range(3)]
    want = places[0] + 100 * places[1] + 10000 * places[2]
    np.testing.assert_array_equal(_out("pointers"), want)


def test_access_out_of_bounds_inside_a_function_is_reported_at_its_own_line() -> None:
    report = _run("outside", np.zeros(64, np.int32), 4)
    (hazard,) = report.hazards
    assert (hazard.kind, hazard.line, hazard.count) == ("out-of-bounds write", 25, 2)


def test_lanes_that_return_early_from_the_kernel_are_gone() -> None:
    np.testing.assert_array_equal(_out("early"), np.where(THREADS < 10, 7 * THREADS, 9 * THREADS))


def test_heap_in_a_kernel_is_not_emulated_by_name() -> None:
    with pytest.raises(NotEmulatedError, match=r"k\.cu:77: not emulated: call\.uni .*malloc"):
        _run("heap", np.zeros(4, np.int32))


_CALLED = """
.func (.param .b32 r) f(.param .b32 a)
{ .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, 1; st.param.b32 [r], %x; }
"""


def _call(arguments: str, target: str = "f") -> str:
    return (
        f"{{ .param .b32 q; .param .b64 w; st.param.b32 [q], 41; call (q), {target}, {arguments}; "
    )


def test_function_may_end_without_a_return() -> None:
    out = np.zeros(1, np.uint32)
    body = (
        f"ld.param.u64 %rd0, [p0]; {_call('(q)')} ld.param.b32 %r0, [q]; "
        "st.global.u32 [%rd0], %r0; }"
    )
    launch(entry(body, outside=_CALLED), Buffer(name="out", data=out), block=(1, 1, 1))
    assert out[0] == 42


@pytest.mark.parametrize(
    "body",
    [
        _call("(w)") + "}",
        _call("(q, q)") + "}",
        _call("(%r0)") + "}",
        "mov.u64 %rd1, f; add.u64 %rd1, %rd1, 1; " + _call("(q)", "%rd1") + "}",
        _call("(q)", "gone") + "}",
        "{ .param .b32 q; ld.param.b64 %rd0, [q]; }",
        "{ .param .b32 q; st.global.u32 [q], %r0; }",
        "{ .param .b32 q; mov.b32 %r0, q; }",
    ],
)
def test_calls_that_cannot_be_passed_on_never_pass(body: str) -> None:
    outside = ".extern .func (.param .b32 r) gone(.param .b32 a);" + _CALLED
    with pytest.raises(NotEmulatedError):
        launch(entry(body, "", outside))


@pytest.mark.parametrize("indices", [[0, 1, 2, 2], [1, 1, 1, 1], [0, 1, 2, 3]])
def test_indexed_branch_sends_each_lane_to_its_place(indices: list[int]) -> None:
    index = np.array(indices, np.uint32)
    body = """
    ld.param.u64 %rd0, [p0]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd0, %r0, 4, %rd0;
    ld.global.u32 %r1, [%rd0];
    PLACES: .branchtargets A, B,
      C;
    .loc 1 9 0
    brx.idx %r1, PLACES;
    A: mov.u32 %r2, 10; bra OUT;
    B: mov.u32 %r2, 20; bra OUT;
    C: mov.u32 %r2, 30;
    OUT: add.u32 %r2, %r2, %r0; st.global.u32 [%rd0], %r2;
    """
    buffer = Buffer(name="out", data=index)
    if max(indices) > 2:
        with pytest.raises(LaunchError, match=r"k\.cu:9: .* target 3 of a list of 3"):
            launch(entry(body), buffer, block=(4, 1, 1))
        return
    launch(entry(body), buffer, block=(4, 1, 1))
    np.testing.assert_array_equal(index, np.array([10, 20, 30])[indices] + np.arange(4))


def test_kernels_of_one_module_share_its_functions() -> None:
    text = f"{HEADER}{_CALLED}"
    for name, value in (("k", 1), ("l", 2)):
        text += f".entry {name}(.param .u64 p)\n{{ .reg .b64 %a; .reg .b32 %b; .param .b32 q;\n"
        text += f"ld.param.u64 %a, [p]; st.param.b32 [q], {value}; call (q), f, (q);\n"
        text += "ld.param.b32 %b, [q]; st.global.b32 [%a], %b; }\n"
    out = np.zeros(1, np.uint32)
    launch(text, Buffer(name="out", data=out))
    assert out[0] == 2
