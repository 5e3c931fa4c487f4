"""What the rungs compute and load, on the simulator: exact, without hazards, by the textbook."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ci.simulator import Buffer, Module, Report, parse, run
from kernels import load_suite
from kernels.build import build_stage, variants
from kernels.spec import CudaStage, Layout

SUITE = load_suite(Path(__file__).parents[2] / "kernels")
(LADDER,) = [ladder for ladder in SUITE.ladders if ladder.name == "sgemm"]
STAGES = [stage for stage in LADDER.stages if isinstance(stage, CudaStage)]
VARIANTS = dict(variants(LADDER.problem))


def in_memory(matrix: NDArray[np.float32], layout: Layout, pad: int) -> NDArray[np.float32]:
    """Return a matrix's elements as they lie in memory, NaN in the ``pad`` elements of a line."""
    lines = matrix if layout is Layout.ROW else matrix.T
    padded = np.pad(lines, ((0, 0), (0, pad)), constant_values=np.nan)
    return np.ascontiguousarray(padded).ravel()[: padded.size - pad]


@functools.cache
def parsed(ptx: str) -> Module:
    """Return a module, parsed once a session."""
    return parse(ptx)


class Product:
    """One problem with known answers, launched on the simulator."""

    def __init__(self, m: int, n: int, k: int, *, alpha: float = 1.0, beta: float = 0.0) -> None:
        random = np.random.default_rng(m * n * k)
        self.size = {"M": m, "N": n, "K": k}
        self.scalars = {"alpha": alpha, "beta": beta}
        # Integers of a few bits: every sum is exact, so the result must be equal.
        self.a, self.b, self.c = (
            random.integers(-8, 9, shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n))
        )

    def want(self) -> NDArray[np.float32]:
        """Return alpha*A*B + beta*C."""
        product = self.scalars["alpha"] * (self.a @ self.b)
        return product + self.scalars["beta"] * self.c if self.scalars["beta"] else product

    def launch(
        self, stage: CudaStage, variant: str, cache: Path, *, pad: int = 0, offset: int = 0
    ) -> tuple[Report, NDArray[np.float32]]:
        """Run a stage; ``pad`` extra elements a line, addresses ``offset`` bytes off."""
        built = build_stage(SUITE, LADDER, stage, architectures=(), cache=cache)
        layouts = {**VARIANTS[variant], "C": Layout.ROW}
        c = self.c if self.scalars["beta"] else np.full_like(self.c, np.nan)
        arguments: dict[str, Buffer | np.generic] = {}
        for name, matrix in (("A", self.a), ("B", self.b), ("C", c)):
            contiguous = matrix.shape[layouts[name] is Layout.ROW]
            data = in_memory(matrix, layouts[name], pad)
            arguments[name] = Buffer(name=name, data=data, misalignment_bytes=offset)
            arguments[f"ld{name.lower()}"] = np.int32(contiguous + pad)
        arguments |= {axis: np.int32(extent) for axis, extent in self.size.items()}
        arguments |= {name: np.float32(value) for name, value in self.scalars.items()}
        shape = stage.launch(self.size, built.tile)
        report = run(
            parsed(built.ptx),
            built.ptx_kernels[variant].symbol,
            grid=shape.grid,
            block=shape.block,
            arguments=[arguments[name] for name in LADDER.problem.parameters],
        )
        buffer = arguments["C"]
        assert isinstance(buffer, Buffer)
        m, n = self.c.shape
        whole = np.append(buffer.data, np.full(pad, np.nan, np.float32)).reshape(m, n + pad)
        assert np.isnan(whole[:, n:]).all()
        return report, whole[:, :n]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_rung_is_exact_on_ragged_tiles_in_every_layout(
    stage: CudaStage, variant: str, cache: Path
) -> None:
    problem = Product(37, 29, 19, alpha=2.0, beta=-3.0)
    report, got = problem.launch(stage, variant, cache, pad=3, offset=4)
    assert report.hazards == ()
    np.testing.assert_array_equal(got, problem.want())


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("stage", STAGES[6:], ids=lambda stage: stage.name)
def test_a_vector_rung_is_exact_on_ragged_tiles_made_of_vectors(
    stage: CudaStage, variant: str, cache: Path
) -> None:
    problem = Product(36, 28, 20)
    report, got = problem.launch(stage, variant, cache, pad=4)
    assert report.hazards == ()
    np.testing.assert_array_equal(got, problem.want())


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_alpha_zero_reads_neither_a_nor_b(stage: CudaStage, cache: Path) -> None:
    problem = Product(5, 3, 4, alpha=0.0, beta=2.0)
    want = problem.want()
    problem.a[:] = np.nan
    report, got = problem.launch(stage, "A=row,B=row", cache)
    np.testing.assert_array_equal(got, want)
    assert report.totals.global_load_elements == problem.c.size


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_one_element_is_a_matrix(stage: CudaStage, cache: Path) -> None:
    problem = Product(1, 1, 1)
    report, got = problem.launch(stage, "A=column,B=row", cache)
    assert report.hazards == ()
    np.testing.assert_array_equal(got, problem.want())


@pytest.mark.parametrize(("stage", "m", "n"), [(0, 1, 524_289), (1, 524_289, 1)])
def test_a_grid_longer_than_its_y_axis_goes_on_along_z(
    stage: int, m: int, n: int, cache: Path
) -> None:
    problem = Product(m, n, 1)
    report, got = problem.launch(STAGES[stage], "A=row,B=row", cache)
    assert report.hazards == ()
    np.testing.assert_array_equal(got, problem.want())


SERVED = {
    "01_naive": (1, 1), "02_coalesced": (1, 1), "03_shared_tile_16": (16, 16),
    "04_shared_tile_32": (32, 32), "05_block_tile_1d": (64, 64), "06_block_tile_2d": (128, 128),
    "07_vectorized": (128, 128), "08_autotuned": (64, 128), "09_warp_tile": (128, 128),
    "10_double_buffer": (128, 256),
}  # fmt: skip
"""Rung → rows and columns of C that a loaded element of B, and of A, serves: MNK/rows + MNK/columns
elements are loaded where sizes divide the tile, 2MNK by the naive one."""


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_rung_loads_exactly_the_textbook_number_of_elements(
    stage: CudaStage, cache: Path
) -> None:
    problem = Product(128, 256, 32)
    report, _ = problem.launch(stage, "A=row,B=row", cache)
    rows, columns = SERVED[stage.name]
    products = 128 * 256 * 32
    assert report.totals.global_load_elements == products // rows + products // columns
    assert report.totals.local_bytes == 0


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("stage", STAGES[8:], ids=lambda stage: stage.name)
def test_warp_tiles_have_no_bank_conflicts(stage: CudaStage, variant: str, cache: Path) -> None:
    report, _ = Product(128, 256, 32).launch(stage, variant, cache)
    assert report.totals.shared_load_conflicts == 0
    assert report.totals.shared_store_conflicts == 0
