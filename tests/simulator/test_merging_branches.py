"""Loads from shared memory that branches part, against the machine code of short kernels."""

from __future__ import annotations

import functools

import pytest

from tests.simulator.golden_kernels import Program, shared_accesses, static_widths

# Long enough that neither compiler turns the branch into selects.
_WORK = " ".join(f"x = fmaf(x, x, {number}.0f);" for number in range(12))
_OTHER = " ".join(f"x = fmaf(x, x, -{number}.5f);" for number in range(12))


def _either(one: str, other: str) -> str:
    return f"if (side) {{ {_WORK} {one} {_WORK} }} else {{ {_OTHER} {other} {_OTHER} }}"


def _only(one: str) -> str:
    return f"if (side) {{ {_WORK} {one} {_WORK} }}"


_MERGED = {
    "both_sides": "x += p[0]; " + _either("x *= p[1];", "x -= p[1];"),
    "one_side": "x += p[0]; " + _either("x *= p[1];", ""),
    "other_side": "x += p[0]; " + _either("", "x *= p[1];"),
    "only_side": "x += p[0]; " + _only("x *= p[1];"),
    "behind_both": "x += p[0]; " + _either("", "") + " x *= p[1];",
    "behind_one": "x += p[0]; " + _only("") + " x *= p[1];",
    "one_word_a_side": "x += p[0] + p[3]; " + _either("x *= p[1];", "x *= p[2];"),
    "global_atomic": "x += p[0]; atomicAdd(out, x); x *= p[1];",
    "in_a_loop": f"for (int i = 0; i < n; ++i) {{ x += p[4 * i]; {_only('x *= p[4 * i + 1];')} }}",
}
_APART = {
    "a_word_a_side": _either("x += p[0];", "x *= p[1];"),
    "behind_one_side": _either("x += p[0];", "") + " x *= p[1];",
    "store_on_a_side": "x += p[0]; " + _only("s[t + 900] = x;") + " x *= p[1];",
    "barrier_on_a_side": "x += p[0]; " + _only("__syncthreads();") + " x *= p[1];",
    "another_unit": "x += p[9]; " + _either("x *= p[0];", "x *= p[1];"),
    "loop_behind": f"x += p[0]; for (int i = 0; i < n; ++i) {{ {_WORK} if (x > 3.0f) {{ {_OTHER} "
    "x *= p[1]; } }",
}


@functools.cache
def _program() -> Program:
    kernels = (
        f'extern "C" __global__ void {name}(float* out, const float* in, int n) {{'
        " __shared__ __align__(16) float s[2048]; const int t = threadIdx.x;"
        " s[t] = in[t]; s[t + 512] = in[t + 1];"
        " const bool side = __syncthreads_or(in[t] == 0.0f);"
        f" const float* p = &s[t / 32 * 36]; float x = out[t]; {body} out[t] = x; }}"
        for name, body in (_MERGED | _APART).items()
    )
    return Program("\n".join(kernels), "branches.cu")


@pytest.mark.parametrize("kernel", [*_MERGED, *_APART])
def test_loads_around_branches_are_those_of_the_machine_code(kernel: str) -> None:
    program = _program()
    found = shared_accesses(program, kernel)
    assert static_widths(program, kernel) == found
    wide = {"LDS.64", "LDS.128"} & found.keys()
    assert bool(wide) == (kernel in _MERGED)
