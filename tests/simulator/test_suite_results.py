"""Every kernel of the measured suite computes what NumPy computes, without a hazard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.signal import correlate2d

from ci.simulator import Buffer, Report, run
from tests.simulator.golden_kernels import compiled
from tests.simulator.ptx_text import Array

RNG = np.random.default_rng(2024)
Triple = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """One launch of a suite kernel, and what it must leave behind."""

    kernel: str
    grid: Triple
    block: Triple
    arguments: tuple[Array | np.generic, ...]
    result: Array
    """The array among the arguments that the kernel writes."""
    want: Array
    tolerance: float = 0.0
    dynamic_shared_bytes: int = 0
    constants: tuple[tuple[str, bytes], ...] = ()

    def run(self) -> Report:
        buffers: list[Any] = [
            Buffer(name=f"argument {n}", data=a.reshape(-1)) if isinstance(a, np.ndarray) else a
            for n, a in enumerate(self.arguments)
        ]
        return run(
            compiled("suite.cu").module,
            self.kernel,
            grid=self.grid,
            block=self.block,
            arguments=buffers,
            dynamic_shared_bytes=self.dynamic_shared_bytes,
            constants=dict(self.constants),
        )


def over(extent: int, tile: int) -> int:
    return -(-extent // tile)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def integers(low: int, high: int, count: int, dtype: str = "i4") -> Array:
    return RNG.integers(low, high, count).astype(dtype)


# Kernel → grid, block and dynamic shared memory for an M x N result.
PRODUCTS: dict[str, Callable[[int, int], tuple[Triple, Triple, int]]] = {
    "mm_naive": lambda m, n: ((over(n, 32), over(m, 8), 1), (32, 8, 1), 0),
    "mm_naive_uncoal": lambda m, n: ((over(m, 32), over(n, 8), 1), (32, 8, 1), 0),
    "mm_tiled16": lambda m, n: ((over(n, 16), over(m, 16), 1), (16, 16, 1), 0),
    "mm_tiled32": lambda m, n: ((over(n, 32), over(m, 32), 1), (32, 32, 1), 0),
    "mm_reg": lambda m, n: ((n // 64, m // 64, 1), (256, 1, 1), 0),
    "mm_cpasync": lambda m, n: ((n // 32, m // 32, 1), (256, 1, 1), 16384),
    "mm_mma": lambda m, n: ((n // 64, m // 64, 1), (128, 1, 1), 0),
    "mm_wmma": lambda m, n: ((n // 64, m // 16, 1), (128, 1, 1), 0),
}
WHOLE = [(64, 64, 64), (128, 64, 96)]
RAGGED = [(33, 50, 71), (1, 1, 1), (17, 65, 5)]


def product(kernel: str, m: int, n: int, k: int) -> Launch:
    kind = np.float16 if kernel in ("mm_mma", "mm_wmma") else np.float32
    a, b = floats(m, k).astype(kind), floats(k, n).astype(kind)
    c = np.zeros((m, n), np.float32)
    grid, block, dynamic = PRODUCTS[kernel](m, n)
    return Launch(
        kernel=kernel,
        grid=grid,
        block=block,
        dynamic_shared_bytes=dynamic,
        arguments=(a, b, c, np.int32(m), np.int32(n), np.int32(k)),
        result=c,
        want=a.astype(float) @ b.astype(float),
        tolerance=k * 1e-6,
    )


def transpose(kernel: str, side: int) -> Launch:
    x, out = floats(side, side), np.zeros((side, side), np.float32)
    return Launch(
        kernel=kernel,
        grid=(side // 32, side // 32, 1),
        block=(32, 8, 1),
        arguments=(x, out, np.int32(side)),
        result=out,
        want=x.T,
    )


def row_of_blocks(kernel: str, count: int, arguments: tuple[Any, ...], **rest: Any) -> Launch:  # noqa: ANN401
    """Return a launch with a thread for each of ``count`` elements, the last argument."""
    options = {"grid": (over(count, 256), 1, 1), "block": (256, 1, 1)} | rest
    return Launch(kernel=kernel, arguments=(*arguments, np.int32(count)), **options)


def red_shfl() -> Launch:
    x, out = floats(5000), np.zeros(1, np.float32)
    want = np.array([x.sum(dtype=float)])
    return row_of_blocks(
        "red_shfl", 5000, (x, out), result=out, want=want, tolerance=1e-3, grid=(7, 1, 1)
    )


def red_smem() -> Launch:
    x, out = floats(2000), np.zeros(8, np.float32)
    want = np.append(x, np.zeros(48)).reshape(8, 256).sum(1)
    return row_of_blocks("red_smem", 2000, (x, out), result=out, want=want, tolerance=1e-4)


def softmax_row() -> Launch:
    x, out = floats(8, 77), np.zeros((8, 77), np.float32)
    e = np.exp(x.astype(float) - x.max(1, keepdims=True))
    return row_of_blocks(
        "softmax_row", 77, (x, out), result=out, want=e / e.sum(1, keepdims=True),
        tolerance=1e-6, grid=(2, 1, 1), block=(128, 1, 1),
    )  # fmt: skip


def hist() -> Launch:
    x, out = integers(0, 256, 5000, "u1"), np.zeros(256, np.uint32)
    want = np.bincount(x, minlength=256)
    return row_of_blocks("hist", 5000, (x, out), result=out, want=want, grid=(8, 1, 1))


def scan_warp() -> Launch:
    x, out = integers(-9, 9, 1000), np.zeros(1000, np.int32)
    want = np.concatenate([np.cumsum(x[at : at + 256]) for at in range(0, 1000, 256)])
    return row_of_blocks("scan_warp", 1000, (x, out), result=out, want=want)


def stencil5() -> Launch:
    x, out = floats(57, 91), np.zeros((57, 91), np.float32)
    p = np.pad(x, 1)
    around = p[1:-1, :-2] + p[1:-1, 2:] + p[:-2, 1:-1] + p[2:, 1:-1]
    return Launch(
        kernel="stencil5",
        grid=(over(91, 32), over(57, 8), 1),
        block=(32, 8, 1),
        arguments=(x, out, np.int32(91), np.int32(57)),
        result=out,
        want=0.5 * x + 0.125 * around,
        tolerance=1e-6,
    )


def conv3_const() -> Launch:
    x, out, taps = floats(57, 91), np.zeros((57, 91), np.float32), floats(9)
    want = np.zeros((57, 91))
    want[1:-1, 1:-1] = correlate2d(x, taps.reshape(3, 3), "valid")
    return Launch(
        kernel="conv3_const",
        grid=(over(91, 32), over(57, 8), 1),
        block=(32, 8, 1),
        arguments=(x, out, np.int32(91), np.int32(57)),
        result=out,
        want=want,
        tolerance=1e-5,
        constants=(("kern", taps.tobytes()),),
    )


def half2_axpy() -> Launch:
    x, y = floats(1000).astype(np.float16), floats(1000).astype(np.float16)
    want = (x.astype(float) * 0.5 + y).astype(np.float16)
    arguments = (x, y, np.float32(0.5))
    return row_of_blocks("half2_axpy", 500, arguments, result=y, want=want)


def local_arr() -> Launch:
    x, out = integers(0, 1000, 900), np.zeros(900, np.float32)
    return row_of_blocks("local_arr", 900, (x, out), result=out, want=(x & 15) * np.arange(900))


def ballot_compact() -> Launch:
    x, out, count = integers(-9, 9, 900), np.zeros(900, np.int32), np.zeros(1, np.int32)
    want = np.zeros(900)
    positive = x[x > 0]
    want[: len(positive)] = positive
    return row_of_blocks("ballot_compact", 900, (x, out, count), result=out, want=want)


def int8_dot() -> Launch:
    a, b, c = (integers(-(2**31), 2**31, 900) for _ in range(3))
    x, y = (v.view(np.int8).astype(np.int64).reshape(-1, 4) for v in (a, b))
    want = ((x * y).sum(1) + c).astype(np.int32)
    return row_of_blocks("int8_dot", 900, (a, b, c), result=c, want=want)


def mathy() -> Launch:
    x, y = 3 * floats(900), np.zeros(900, np.float32)
    # Large arguments take the slow path of the sine, which works in local memory.
    x[:4] = [-1e6, -3e7, 0, 1e-20]
    v = x.astype(float)
    want = np.sqrt(abs(v)) + np.exp(v) * np.tanh(v) + np.log(1 + v * v) + np.sin(v)
    want += 1 / np.sqrt(1 + v * v) + v / (1 + v * v) + np.floor(v) + np.arange(900) % 7
    return row_of_blocks("mathy", 900, (x, y), result=y, want=want, tolerance=2e-6)


OTHERS = [red_shfl, red_smem, softmax_row, hist, scan_warp, stencil5, conv3_const, half2_axpy]
OTHERS += [local_arr, ballot_compact, int8_dot, mathy]


def check(launch: Launch) -> None:
    report = launch.run()
    assert report.hazards == ()
    np.testing.assert_allclose(
        launch.result, launch.want, rtol=max(launch.tolerance, 1e-7), atol=launch.tolerance
    )


@pytest.mark.parametrize("size", WHOLE)
@pytest.mark.parametrize("kernel", PRODUCTS)
def test_matrix_product_is_right(kernel: str, size: Triple) -> None:
    check(product(kernel, *size))


@pytest.mark.parametrize("size", RAGGED)
@pytest.mark.parametrize("kernel", ["mm_naive", "mm_naive_uncoal", "mm_tiled16", "mm_tiled32"])
def test_matrix_product_of_any_shape_is_right(kernel: str, size: Triple) -> None:
    check(product(kernel, *size))


@pytest.mark.parametrize("kernel", ["tr_conflict", "tr_pad", "tr_naive"])
def test_transpose_is_right(kernel: str) -> None:
    check(transpose(kernel, 96))


@pytest.mark.parametrize("launch", OTHERS, ids=lambda launch: launch.__name__)
def test_kernel_is_right(launch: Callable[[], Launch]) -> None:
    check(launch())
