"""A search tries every tile, times the right ones only and finds the fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from ci.measure.tiles import with_tile
from ci.measure.tune import candidates, search
from ci.results import codec
from ci.results.model import Machine, Status
from ci.results.tuning import TriedTile, Tuning
from ci.verbs.tune import sentence, with_winner
from kernels.errors import DeclarationError
from kernels.spec import CudaStage, Launch

STAGE = CudaStage(
    source="01_tile.cu",
    entry="tile",
    launch=lambda size, _: Launch(grid=(size["M"], 1, 1), block=(32, 1, 1)),
    idea="a stage that only the tests know",
    tile={"BM": 16, "BN": 16},
    tile_by_arch={"sm_80": {"BM": 8, "BN": 8}},
    tile_space={"BM": (8, 16, 32), "BN": (16, 32)},
)
MACHINE = Machine(
    name="gpu-0", device="cuda", versions={}, architectures=("sm_90",), origin="checkout"
)
TUNING = Tuning(
    schema_version=1,
    ladder="product",
    stage="01_tile",
    source_digest="0",
    started="2026-11-30T00:00:00+00:00",
    machine=MACHINE,
    size={"M": 64},
    winner=None,
    winner_s=None,
    declared_s=None,
    tried=(),
)


def tried(tiles: Sequence[Mapping[str, int]]) -> list[TriedTile]:
    """A planted world: 8 is wrong, 32 x 32 does not compile."""
    results = []
    for tile in tiles:
        passed = TriedTile(tile=tile, status=Status.PASSED, reason="")
        if tile["BM"] == 8:
            passed = replace(passed, status=Status.INCORRECT, reason="M=1: wrong")
        elif tile == {"BM": 32, "BN": 32}:
            passed = replace(passed, status=Status.COMPILE_ERROR, reason="static assertion")
        results.append(passed)
    return results


def timed(tiles: Sequence[Mapping[str, int]]) -> list[TriedTile]:
    """A large tile is fast, but for one replay that was disturbed."""
    return [
        TriedTile(
            tile=tile,
            status=Status.PASSED,
            reason="",
            samples_s=(1 / tile["BM"] / tile["BN"], 1 / tile["BM"] / tile["BN"], 9.0),
        )
        for tile in tiles
    ]


def test_the_space_is_every_combination_in_order() -> None:
    assert [tuple(tile.values()) for tile in candidates(STAGE)] == [
        (8, 16), (8, 32), (16, 16), (16, 32), (32, 16), (32, 32),
    ]  # fmt: skip


def test_what_is_wrong_or_does_not_compile_is_never_timed_and_stays_in_the_record() -> None:
    asked: list[Mapping[str, int]] = []

    def time_tiles(tiles: Sequence[Mapping[str, int]]) -> list[TriedTile]:
        asked.extend(tiles)
        return timed(tiles)

    found = search(candidates(STAGE), try_tiles=tried, time_tiles=time_tiles)
    assert all(tile["BM"] != 8 and tile != {"BM": 32, "BN": 32} for tile in asked)
    assert len(found) == len(candidates(STAGE))
    assert [each.status for each in found[-3:]] == [
        Status.INCORRECT, Status.INCORRECT, Status.COMPILE_ERROR,
    ]  # fmt: skip


def test_the_fastest_by_median_wins_and_the_declared_tile_is_told_beside_it() -> None:
    found = search(candidates(STAGE), try_tiles=tried, time_tiles=timed)
    tuning = with_winner(replace(TUNING, tried=found), STAGE.tile_for("sm_90"))
    assert tuning.winner == {"BM": 16, "BN": 32}
    assert tuning.winner_s == pytest.approx(1 / 512)
    assert tuning.declared_s == pytest.approx(1 / 256)
    assert sentence(tuning) == (
        "product/01_tile: BM=16 BN=32 is the fastest, 1.953 ms, the declared tile 3.906 ms "
        "(3 PASSED, 2 INCORRECT, 1 COMPILE_ERROR)"
    )


def test_a_search_without_a_working_tile_has_no_winner() -> None:
    wrong = tried([{"BM": 8, "BN": 16}])
    found = search([wrong[0].tile], try_tiles=lambda _: wrong, time_tiles=timed)
    tuning = with_winner(replace(TUNING, tried=found), STAGE.tile)
    assert tuning.winner is None
    assert "none of 1 tiles" in sentence(tuning)


def test_a_record_survives_its_file() -> None:
    found = search(candidates(STAGE), try_tiles=tried, time_tiles=timed)
    tuning = with_winner(replace(TUNING, tried=found), STAGE.tile)
    assert codec.decode(codec.encode(tuning), Tuning, "memory") == tuning


def test_a_tile_under_trial_is_in_force_on_every_architecture() -> None:
    assert with_tile(STAGE, {"BM": 32, "BN": 16}).tile_for("sm_80") == {"BM": 32, "BN": 16}


def test_a_space_with_other_parameters_than_the_tile_is_refused() -> None:
    with pytest.raises(DeclarationError, match="tile_space names BM, expected BM, BN"):
        replace(STAGE, tile_space={"BM": (8,)})
