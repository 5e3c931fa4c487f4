"""Counts that can be worked out by hand, on the golden kernels."""

from __future__ import annotations

import pytest

from tests.simulator.golden_kernels import arguments_of, compiled, launch

_SIDE = 64
_PRODUCT = 2 * _SIDE**3


@pytest.mark.parametrize(
    ("kernel", "reuse", "grid", "block"),
    [
        ("mm_naive", 1, (2, 8, 1), (32, 8, 1)),
        ("mm_tiled16", 16, (4, 4, 1), (16, 16, 1)),
        ("mm_tiled32", 32, (2, 2, 1), (32, 32, 1)),
    ],
)
def test_a_tile_divides_the_loads_of_a_product_by_its_side(
    kernel: str, reuse: int, grid: tuple[int, int, int], block: tuple[int, int, int]
) -> None:
    report = launch(
        compiled("suite.cu"), kernel, arguments_of(kernel, _SIDE), grid=grid, block=block
    )
    assert report.totals.global_load_elements == _PRODUCT // reuse
    assert report.totals.global_store_requests == _SIDE**2 // 32


@pytest.mark.parametrize(("kernel", "ways"), [("tr_conflict", 32), ("tr_pad", 1)])
def test_padding_takes_the_conflicts_out_of_a_transpose(kernel: str, ways: int) -> None:
    report = launch(
        compiled("suite.cu"), kernel, arguments_of(kernel, _SIDE), grid=(2, 2, 1), block=(32, 8, 1)
    )
    requests = _SIDE**2 // 32
    assert report.totals.shared_load_wavefronts == ways * requests
    assert report.totals.shared_load_conflicts == (ways - 1) * requests
    assert report.hazards == ()


def test_uncoalesced_loads_show_in_the_sectors_of_their_line() -> None:
    program = compiled("suite.cu")
    sectors = [
        launch(
            program, kernel, arguments_of(kernel, _SIDE), grid=(2, 8, 1), block=(32, 8, 1)
        ).totals.global_load_sectors
        for kernel in ("mm_naive", "mm_naive_uncoal")
    ]
    warps = _SIDE**3 // 32
    assert sectors == [warps * (1 + 4), warps * (1 + 32)]
