"""Fragments of nvcuda::wmma: where their elements lie, and what their products are."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ci.simulator import Buffer, Report, run
from scripts.wmma.forms import PITCH, WARP, all_forms, program
from scripts.wmma_layout import derive, read, show_all
from tests.simulator.cuda_text import module_of
from tests.simulator.ptx_text import Array

_FOLDER = Path(__file__).parents[1] / "data" / "wmma-layout"
_FORMS = [form.name for form in all_forms()]
RNG = np.random.default_rng(5)


def launched(source: str, *arrays: Array, shared_bytes: int = 0) -> Report:
    """Launch the kernel ``k`` of a source on one block."""
    buffers = [Buffer(name=f"array {n}", data=a) for n, a in enumerate(arrays)]
    return run(
        module_of(source),
        "k",
        grid=(1, 1, 1),
        block=(WARP, 1, 1),
        arguments=buffers,
        dynamic_shared_bytes=shared_bytes,
    )


@cache
def simulated() -> tuple[dict[str, list[list[int]]], dict[str, tuple[int, int]]]:
    """Return the places of every form on the simulator, and its requests and sectors."""
    module = module_of(program())
    traffic: dict[str, tuple[int, int]] = {}

    def one(kernel: str, memory: NDArray[np.uint8], registers: NDArray[np.uint8]) -> None:
        buffers = [Buffer(name="memory", data=memory), Buffer(name="registers", data=registers)]
        report = run(module, kernel, grid=(1, 1, 1), block=(WARP, 1, 1), arguments=buffers)
        assert not report.hazards
        # The registers cross memory the other way.
        kind = kernel.split("_", maxsplit=1)[0]
        traffic[kernel] = (
            getattr(report.totals, f"global_{kind}_requests"),
            getattr(report.totals, f"global_{kind}_sectors"),
        )

    return show_all(one), traffic


@pytest.mark.parametrize("file", ["machine-code.json", "h200.json"])
def test_lanes_hold_what_they_hold_on_a_gpu(file: str) -> None:
    places, _ = simulated()
    known = read(_FOLDER / file)
    assert set(known) == set(places)
    wrong = [name for name, form in known.items() if form.places != places[name]]
    assert not wrong


def test_fragments_cross_global_memory_in_the_requests_of_the_machine_code() -> None:
    _, traffic = simulated()
    known = read(_FOLDER / "machine-code.json")
    assert traffic == {name: (form.requests, form.sectors) for name, form in known.items()}


def test_the_committed_layout_is_what_the_compiler_makes_today() -> None:
    assert derive() == read(_FOLDER / "machine-code.json")


def element(kind: str) -> tuple[str, str]:
    """Return the C++ types of an element in a fragment and in memory."""
    names = {"f16": "__half", "bf16": "__nv_bfloat16", "s8": "signed char", "u8": "unsigned char"}
    names |= {"tf32": "wmma::precision::tf32", "f64": "double", "f32": "float", "s32": "int"}
    return names[kind], "float" if kind == "tf32" else names[kind]


def to_memory(values: Array, kind: str, *, row_major: bool) -> Array:
    """Return a matrix of numbers as the elements of memory."""
    ordered = np.ascontiguousarray(values if row_major else values.T).reshape(-1)
    if kind == "bf16":
        return (ordered.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    types = {"f16": "f2", "s8": "i1", "u8": "u1", "tf32": "f4", "f64": "f8", "f32": "f4"}
    return ordered.astype(types.get(kind, "i4"))


def product_source(kind: str, sums: str, extents: tuple[int, int, int], orders: str) -> str:
    m, n, k = extents
    a_order, b_order, c_order = (("row", "col")[int(o)] for o in orders)
    (inside, factor), (_, total) = element(kind), element(sums)
    pitch = [
        k if a_order == "row" else m,
        n if b_order == "row" else k,
        n if c_order == "row" else m,
    ]
    shape = f"{m}, {n}, {k}"
    return f"""
    #include <mma.h>
    using namespace nvcuda;
    extern "C" __global__ void k(const {factor}* a, const {factor}* b, {total}* c) {{
      wmma::fragment<wmma::matrix_a, {shape}, {inside}, wmma::{a_order}_major> x;
      wmma::fragment<wmma::matrix_b, {shape}, {inside}, wmma::{b_order}_major> y;
      wmma::fragment<wmma::accumulator, {shape}, {total}> z;
      wmma::load_matrix_sync(x, a, {pitch[0]});
      wmma::load_matrix_sync(y, b, {pitch[1]});
      wmma::load_matrix_sync(z, c, {pitch[2]}, wmma::mem_{c_order}_major);
      for (int i = 0; i < z.num_elements; i++) z.x[i] += z.x[i];
      wmma::mma_sync(z, x, y, z);
      wmma::store_matrix_sync(c, z, {pitch[2]}, wmma::mem_{c_order}_major);
    }}
    """


@pytest.mark.parametrize(
    ("kind", "sums", "extents", "orders"),
    [
        ("f16", "f32", (16, 16, 16), "000"),
        ("f16", "f32", (32, 8, 16), "011"),
        ("f16", "f16", (8, 32, 16), "100"),
        ("f16", "f16", (16, 16, 16), "111"),
        ("bf16", "f32", (16, 16, 16), "001"),
        ("bf16", "f32", (8, 32, 16), "110"),
        ("s8", "s32", (16, 16, 16), "010"),
        ("s8", "s32", (32, 8, 16), "101"),
        ("u8", "s32", (8, 32, 16), "001"),
        ("tf32", "f32", (16, 16, 8), "010"),
        ("tf32", "f32", (16, 16, 8), "101"),
        ("f64", "f64", (8, 8, 4), "011"),
    ],
)
def test_a_product_of_small_integers_is_exact(
    kind: str, sums: str, extents: tuple[int, int, int], orders: str
) -> None:
    m, n, k = extents
    low = 0 if kind == "u8" else -5
    a, b = RNG.integers(low, 6, (m, k)), RNG.integers(low, 6, (k, n))
    c = RNG.integers(-9, 9, (m, n))
    a_row, b_row, c_row = (order == "0" for order in orders)
    result = to_memory(c, sums, row_major=c_row)
    report = launched(
        product_source(kind, sums, extents, orders),
        to_memory(a, kind, row_major=a_row),
        to_memory(b, kind, row_major=b_row),
        result,
    )
    assert not report.hazards
    np.testing.assert_array_equal(result, to_memory(a @ b + 2 * c, sums, row_major=c_row))


SHARED = """
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const float4* in, float* out) {
  extern __shared__ float4 words[];
  for (int i = threadIdx.x; i < 256; i += 32) words[i] = in[i];
  __syncthreads();
  const __half* h = (const __half*)words;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::%s_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::%s_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
  wmma::fill_fragment(z, 0.f);
  wmma::load_matrix_sync(x, h, PITCH);
  wmma::load_matrix_sync(y, h + 16, PITCH);
  wmma::mma_sync(z, x, y, z);
  __syncthreads();
  wmma::store_matrix_sync((float*)words, z, 16, wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 32) out[i] = ((float*)words)[i];
}
"""


@pytest.mark.parametrize(("a_order", "b_order"), [("row", "row"), ("col", "col")])
def test_fragments_from_shared_memory_are_loaded_as_matrices(a_order: str, b_order: str) -> None:
    lines = RNG.integers(-5, 6, (32, PITCH)).astype(np.float16)
    result = np.zeros(256, np.float32)
    source = SHARED.replace("PITCH", str(PITCH)) % (a_order, b_order)
    report = launched(source, lines.reshape(-1).view(np.uint8), result, shared_bytes=4096)
    assert not report.hazards
    x, y = lines[:16, :16].astype(np.float32), lines[:16, 16:32].astype(np.float32)
    x, y = (x if a_order == "row" else x.T), (y if b_order == "row" else y.T)
    np.testing.assert_array_equal(result.reshape(16, 16), x @ y)
    # Two matrix loads of four matrices whose rows all begin in the same bank: 8-way conflicts.
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "sync(x, h" in text)
    counts = [report.lines[p] for p in report.lines if p.line in (line, line + 1)]
    assert [c.shared_load_wavefronts for c in counts] == [32, 32]
    assert [c.shared_load_conflicts for c in counts] == [28, 28]


def test_a_fragment_loaded_by_a_part_of_a_warp_is_a_hazard() -> None:
    source = """
    #include <mma.h>
    using namespace nvcuda;
    extern "C" __global__ void k(const __half* a, float* out) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
      if (threadIdx.x < 20) {
        wmma::load_matrix_sync(x, a, 16);
        out[threadIdx.x] = x.x[0];
      }
    }
    """
    report = launched(source, np.zeros(256, np.float16), np.zeros(32, np.float32))
    assert "matrix instruction with a partial warp" in [h.kind for h in report.hazards]


def test_a_leading_dimension_too_large_is_out_of_bounds() -> None:
    source = product_source("f16", "f32", (16, 16, 16), "000").replace("(x, a, 16)", "(x, a, 17)")
    report = launched(source, np.zeros(256, "f2"), np.zeros(256, "f2"), np.zeros(256, "f4"))
    assert next(h.kind for h in report.hazards) == "misaligned read"


def test_saturated_sums_stop_at_the_limits() -> None:
    source = product_source("s8", "s32", (16, 16, 16), "000").replace("y, z)", "y, z, true)")
    source = source.replace("z.x[i] += z.x[i]", "z.x[i] = z.x[i]")
    result = np.full(256, 2**31 - 100, np.int32)
    launched(source, np.full(256, 9, np.int8), np.full(256, 9, np.int8), result)
    assert (result == 2**31 - 1).all()
