"""Kernels that show where each lane holds which element of a wmma fragment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PITCH = 64
"""Elements from one line of the matrix in memory to the next: more than any matrix has."""
WARP = 32

Bits = NDArray[np.unsignedinteger]
Run = Callable[[str, NDArray[np.uint8], NDArray[np.uint8]], None]
"""Launches a kernel with one warp on (matrix, registers), both changed in place."""

_SHAPES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
_FACTORS = {
    "f16": ("__half", "__half", 2, _SHAPES),
    "bf16": ("__nv_bfloat16", "__nv_bfloat16", 2, _SHAPES),
    "s8": ("signed char", "signed char", 1, _SHAPES),
    "tf32": ("wmma::precision::tf32", "float", 4, ((16, 16, 8),)),
    "f64": ("double", "double", 8, ((8, 8, 4),)),
}
_SUMS = {
    "f16": ("__half", "__half", 2, _SHAPES),
    "f32": ("float", "float", 4, (*_SHAPES, (16, 16, 8))),
    "s32": ("int", "int", 4, _SHAPES),
    "f64": ("double", "double", 8, ((8, 8, 4),)),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """A load or a store of one kind of fragment."""

    action: str
    """``load`` or ``store``."""
    use: str
    """``a``, ``b`` or ``c``, which stands for accumulators."""
    kind: str
    extents: tuple[int, int, int]
    """M, N, K."""
    order: str
    """``row`` or ``col``."""

    @property
    def name(self) -> str:
        """Return a name that is also the kernel's."""
        m, n, k = self.extents
        return f"{self.action}_{self.use}_{self.kind}_m{m}n{n}k{k}_{self.order}"

    @property
    def shape(self) -> tuple[int, int]:
        """Return rows and columns."""
        m, n, k = self.extents
        return {"a": (m, k), "b": (k, n), "c": (m, n)}[self.use]

    @property
    def width_bytes(self) -> int:
        """Return the bytes of an element."""
        return (_SUMS if self.use == "c" else _FACTORS)[self.kind][2]

    def source(self) -> str:
        """Return the kernel, in CUDA C++."""
        m, n, k = self.extents
        element, pointer = (_SUMS if self.use == "c" else _FACTORS)[self.kind][:2]
        order = f"wmma::mem_{self.order}_major"
        if self.use == "c":
            kind = f"wmma::accumulator, {m}, {n}, {k}, {element}"
        else:
            kind = f"wmma::matrix_{self.use}, {m}, {n}, {k}, {element}, wmma::{self.order}_major"
        crossing = f", {order}" if self.use == "c" else ""
        load = f"wmma::load_matrix_sync(f, memory, {PITCH}{crossing});"
        copy = "for (int i = 0; i < WORDS(f); i++) registers[threadIdx.x * WORDS(f) + i] = x[i];"
        if self.action == "store":
            load = f"wmma::store_matrix_sync(memory, f, {PITCH}{crossing});"
            copy = (
                "for (int i = 0; i < WORDS(f); i++) x[i] = registers[threadIdx.x * WORDS(f) + i];"
            )
        steps = [copy, load] if self.action == "store" else [load, copy]
        return (
            f'extern "C" __global__ void {self.name}({pointer}* memory, unsigned* registers) {{\n'
            f"  wmma::fragment<{kind}> f;\n  unsigned* x = (unsigned*)f.x;\n"
            f"  {steps[0]}\n  {steps[1]}\n}}\n"
        )


def all_forms() -> list[Form]:
    """Return every form that NVRTC knows for sm_80 and that the simulator emulates."""
    return list(_forms())


def _forms() -> Iterator[Form]:
    for use, kinds in (("a", _FACTORS), ("b", _FACTORS), ("c", _SUMS)):
        for kind, (_, _, _, shapes) in kinds.items():
            for extents in shapes:
                for order in ("row", "col"):
                    for action in ("load", "store")[: 2 if use == "c" else 1]:
                        yield Form(action=action, use=use, kind=kind, extents=extents, order=order)


def program() -> str:
    """Return one source with a kernel for each form."""
    head = (
        "#include <mma.h>\nusing namespace nvcuda;\n#define WORDS(f) (int)(sizeof((f).x) / 4)\n\n"
    )
    return head + "\n".join(form.source() for form in all_forms())


def places(form: Form, registers: int, run: Run) -> list[list[int]]:
    """Return which element, counted row by row, is each of a lane's.

    Elements are numbered, and a number that does not fit an element goes through in two halves.

    Args:
        form: The load or store.
        registers: 32-bit registers of a lane's fragment.
        run: Executes it.
    """
    shifts = (0, 8) if form.width_bytes == 1 else (0,)
    found = np.zeros((1, 1), np.int64)
    for shift in shifts:
        found = found | _numbers(form, registers, run, shift).astype(np.int64) << shift
    return [[int(place) for place in lane] for lane in found]


def _numbers(form: Form, registers: int, run: Run, shift: int) -> Bits:
    """Return the numbers, shifted, that lanes (32, elements) and elements of a matrix share."""
    rows, columns = form.shape
    kind = np.dtype(f"u{form.width_bytes}")
    lines = np.zeros((PITCH, PITCH), kind)
    matrix = lines[:rows, :columns] if form.order == "row" else lines.T[:rows, :columns]
    held = np.zeros(WARP * registers, np.uint32)
    if form.action == "load":
        number = np.arange(rows * columns).reshape(rows, columns)
        matrix[:] = (number >> shift).astype(kind)
        run(form.name, lines.reshape(-1).view(np.uint8), held.view(np.uint8))
        return np.asarray(held.view(kind).reshape(WARP, -1))
    lanes = held.view(kind)
    lanes[:] = np.arange(lanes.size)
    run(form.name, lines.reshape(-1).view(np.uint8), held.view(np.uint8))
    # Where a lane's number arrived is what it holds.
    place = np.zeros(lanes.size, kind)
    place[matrix.reshape(-1)] = np.arange(rows * columns)
    return np.asarray(place.reshape(WARP, -1))
