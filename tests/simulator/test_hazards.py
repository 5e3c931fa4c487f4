"""Races and unwritten reads planted in tiny traces of accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ci.simulator.hazards import SharedShadow
from ci.simulator.report import Place
from ci.simulator.sink import (
    READ_AFTER_WRITE,
    UNINITIALISED,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    HazardSink,
)

_BLOCKS = 3
_THREADS = 64
_LANE = np.arange(_THREADS, dtype=np.int64)[None, :]
_OWN = 4 * _LANE
_MIRRORED = 4 * (_THREADS - 1 - _LANE)


def _sink() -> HazardSink:
    return HazardSink(
        place_of=lambda pc: Place(file="k.cu", line=pc),
        block_of=lambda block: (block, 0, 0),
        thread_of=lambda thread: (thread, 0, 0),
    )


@pytest.fixture
def sink() -> HazardSink:
    return _sink()


@pytest.fixture
def shadow(sink: HazardSink) -> SharedShadow:
    made = SharedShadow(1024, sink)
    made.begin_slice(_BLOCKS, _THREADS)
    return made


def _kinds(shadow: SharedShadow, sink: HazardSink) -> list[tuple[str, int, int]]:
    shadow.end_slice()
    return [(hazard.kind, hazard.line, hazard.count) for hazard in sink.hazards()]


def test_accesses_ordered_by_barriers_are_no_race(shadow: SharedShadow, sink: HazardSink) -> None:
    for _ in range(3):
        shadow.write(1, _OWN, None, 4)
        shadow.barrier(None)
        shadow.read(2, _MIRRORED, None, 4)
        shadow.barrier(None)
    assert _kinds(shadow, sink) == []


def test_reading_what_another_warp_wrote_needs_a_barrier(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    shadow.write(1, _OWN, None, 4)
    shadow.read(2, _MIRRORED, None, 4)
    assert _kinds(shadow, sink) == [(READ_AFTER_WRITE, 2, _BLOCKS * _THREADS)]
    assert sink.hazards()[0].example == (
        "byte 252 of shared memory, written at line 1 by thread (63,0,0), "
        "read by thread (0,0,0) of block (0,0,0)"
    )


def test_overwriting_what_another_warp_read_needs_a_barrier(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    shadow.write(1, _OWN, None, 4)
    shadow.barrier(None)
    shadow.read(2, _MIRRORED, None, 4)
    shadow.write(3, _OWN, None, 4)
    assert _kinds(shadow, sink) == [(WRITE_AFTER_READ, 3, _BLOCKS * _THREADS)]


def test_overwriting_what_another_warp_wrote_needs_a_barrier(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    shadow.write(1, _OWN, None, 4)
    shadow.write(2, _MIRRORED, None, 4)
    assert _kinds(shadow, sink) == [(WRITE_AFTER_WRITE, 2, _BLOCKS * _THREADS)]


def test_two_warps_that_write_one_word_in_one_instruction_race(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    shadow.write(1, 4 * (_LANE % 32), None, 4)
    assert _kinds(shadow, sink) == [(WRITE_AFTER_WRITE, 1, _BLOCKS * _THREADS)]


_BESIDE = 4 * (_LANE ^ 1)


def test_lanes_of_a_warp_need_something_that_orders_them(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    shadow.write(1, _OWN, None, 4)
    shadow.read(2, _BESIDE, None, 4)
    shadow.write(3, _OWN, None, 4)
    assert _kinds(shadow, sink) == [
        (READ_AFTER_WRITE, 2, _BLOCKS * _THREADS),
        (WRITE_AFTER_READ, 3, _BLOCKS * _THREADS),
    ]
    assert sink.hazards()[0].example == (
        "byte 4 of shared memory, written at line 1 by thread (1,0,0) of the same warp, "
        "read by thread (0,0,0) of block (0,0,0)"
    )


def test_what_a_warp_executes_together_orders_its_lanes(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    for _ in range(2):
        shadow.write(1, _OWN, None, 4)
        shadow.order_warps(None)
        shadow.read(2, _BESIDE, None, 4)
        shadow.order_warps(None)
    assert _kinds(shadow, sink) == []


def test_a_part_of_a_warp_orders_only_itself(shadow: SharedShadow, sink: HazardSink) -> None:
    shadow.write(1, _OWN, None, 4)
    shadow.order_warps(_LANE % 32 < 16)
    shadow.read(2, _BESIDE, _LANE % 32 < 18, 4)
    assert _kinds(shadow, sink) == [(READ_AFTER_WRITE, 2, _BLOCKS * 4)]


def test_a_warp_that_was_ordered_more_often_hides_nothing_behind_a_barrier(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    word = np.zeros((1, 1), dtype=np.int64)
    for _ in range(2):
        shadow.order_warps(_LANE >= 32)
        shadow.write(1, word, _LANE == 33, 4)
    shadow.barrier(None)
    shadow.write(2, word, _LANE == 3, 4)
    shadow.write(3, word, _LANE == 4, 4)
    assert _kinds(shadow, sink) == [(WRITE_AFTER_WRITE, 3, _BLOCKS)]


def test_a_thread_is_ordered_against_itself(shadow: SharedShadow, sink: HazardSink) -> None:
    shadow.write(1, _OWN, None, 4)
    shadow.read(2, _OWN, None, 4)
    shadow.write(3, _OWN, None, 4)
    assert _kinds(shadow, sink) == []


def test_lanes_that_store_different_values_in_one_instruction_race(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    one_word_a_warp = 4 * (_LANE // 32)
    equal, unequal = np.full((1, 1), 7, np.int32), (_LANE // 63).astype(np.int32)
    shadow.write(1, one_word_a_warp, None, 4, [equal])
    assert _kinds(shadow, sink) == []
    shadow.write(2, one_word_a_warp + 64, None, 4, [unequal])
    assert _kinds(shadow, sink) == [(WRITE_AFTER_WRITE, 2, _BLOCKS * 32)]


def test_equal_values_are_no_race_until_another_one_is_written(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    flag, one, two = np.zeros((1, 1), np.int64), np.ones((1, 1), np.int32), np.full((1, 1), 2)
    shadow.write(1, flag, None, 4, [one])
    shadow.write(2, flag, _LANE > 40, 4, [one])
    assert _kinds(shadow, sink) == []
    shadow.barrier(None)
    shadow.write(3, flag, _LANE == 3, 4, [two.astype(np.int32)])
    shadow.barrier(None)
    shadow.write(4, flag, _LANE == 3, 4, [one])
    shadow.write(5, flag, _LANE == 40, 4, [two.astype(np.int32)])
    assert _kinds(shadow, sink) == [(WRITE_AFTER_WRITE, 5, _BLOCKS)]


def test_the_lowest_and_the_highest_reader_both_count(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    shadow.write(1, _OWN, None, 4)
    shadow.barrier(None)
    shadow.read(2, np.zeros((1, 1), dtype=np.int64), None, 4)
    shadow.write(3, _OWN, _LANE == 0, 4)
    assert _kinds(shadow, sink) == [(WRITE_AFTER_READ, 3, _BLOCKS)]
    assert "read at line 2 by thread (63,0,0)" in sink.hazards()[0].example


def test_a_word_that_no_thread_wrote_is_reported(shadow: SharedShadow, sink: HazardSink) -> None:
    shadow.write(1, _OWN, _LANE != 5, 4)
    shadow.barrier(None)
    shadow.read(2, _OWN, None, 4)
    assert _kinds(shadow, sink) == [(UNINITIALISED, 2, _BLOCKS)]
    assert "byte 20 of shared memory" in sink.hazards()[0].example


def test_masked_and_padding_lanes_take_no_part(sink: HazardSink) -> None:
    shadow = SharedShadow(1024, sink)
    shadow.begin_slice(1, 40)
    shadow.write(1, _OWN, None, 4)
    shadow.barrier(None)
    shadow.read(2, _OWN, _LANE < 40, 4)
    shadow.read(3, _MIRRORED, _LANE >= 64 - 40, 4)
    assert _kinds(shadow, sink) == []


def test_only_the_blocks_that_passed_a_barrier_are_ordered(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    sink.first_block = 10
    shadow.write(1, _OWN, None, 4)
    shadow.barrier(np.array([[True], [False], [True]]))
    shadow.read(2, _MIRRORED, None, 4)
    assert _kinds(shadow, sink) == [(READ_AFTER_WRITE, 2, _THREADS)]
    assert sink.hazards()[0].example.endswith("of block (11,0,0)")


def test_addresses_that_differ_between_blocks_are_followed_apart(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    shadow.write(1, _OWN, None, 4)
    own_in_two_blocks = np.concatenate([_OWN, _MIRRORED, _OWN])
    shadow.read(2, own_in_two_blocks, None, 4)
    assert _kinds(shadow, sink) == [(READ_AFTER_WRITE, 2, _THREADS)]
    assert sink.hazards()[0].example.endswith("of block (1,0,0)")


def test_blocks_share_a_row_again_once_a_barrier_made_them_alike(shadow: SharedShadow) -> None:
    in_one_block = np.arange(_BLOCKS)[:, None] == 1
    shadow.write(1, _OWN, in_one_block, 4)
    shadow.barrier(None)
    assert len(shadow._now) == _BLOCKS
    shadow.write(2, _OWN, ~in_one_block, 4)
    shadow.barrier(None)
    assert len(shadow._now) == 1


def test_a_wide_access_counts_once_for_each_lane(shadow: SharedShadow, sink: HazardSink) -> None:
    shadow.write(1, 4 * _OWN, None, 16)
    shadow.read(2, 4 * _MIRRORED, None, 16)
    assert _kinds(shadow, sink) == [(READ_AFTER_WRITE, 2, _BLOCKS * _THREADS)]


@pytest.mark.parametrize("width", [1, 2])
def test_two_warps_that_write_different_bytes_of_one_word_are_no_race(
    shadow: SharedShadow, sink: HazardSink, width: int
) -> None:
    interleaved = width * (_LANE % 32 * 2 + _LANE // 32)
    shadow.write(1, 512 + _OWN, None, 4)
    shadow.write(2, interleaved, None, width)
    shadow.read(3, interleaved, None, width)
    assert _kinds(shadow, sink) == []
    shadow.read(4, 512 + _MIRRORED, None, 4)
    assert _kinds(shadow, sink) == [(READ_AFTER_WRITE, 4, _BLOCKS * _THREADS)]


def test_a_narrow_write_initialises_only_its_bytes(shadow: SharedShadow, sink: HazardSink) -> None:
    shadow.write(1, _OWN, None, 2)
    shadow.read(2, _OWN, None, 2)
    assert _kinds(shadow, sink) == []
    shadow.read(3, _OWN, None, 4)
    assert _kinds(shadow, sink) == [(UNINITIALISED, 3, _BLOCKS * _THREADS)]


def test_atomics_do_not_race_with_each_other(shadow: SharedShadow, sink: HazardSink) -> None:
    one_word = np.zeros((1, 1), dtype=np.int64)
    shadow.write(0, one_word, np.arange(_THREADS)[None] == 0, 4)
    shadow.barrier(None)
    shadow.atomic(1, one_word, None, 4)
    shadow.atomic(2, one_word, None, 4)
    shadow.barrier(None)
    shadow.read(3, one_word, None, 4)
    assert _kinds(shadow, sink) == []


def test_an_update_reads_what_was_there_and_an_exchange_does_not(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    shadow.atomic(1, _OWN, None, 4, reads=False)
    shadow.atomic(2, _OWN, None, 4)
    assert _kinds(shadow, sink) == []
    shadow.atomic(3, 512 + _OWN, None, 4)
    assert _kinds(shadow, sink) == [(UNINITIALISED, 3, _BLOCKS * _THREADS)]


@pytest.mark.parametrize(
    ("order", "kind"),
    [
        (("write", "atomic"), WRITE_AFTER_WRITE),
        (("atomic", "write"), WRITE_AFTER_WRITE),
        (("read", "atomic"), WRITE_AFTER_READ),
        (("atomic", "read"), READ_AFTER_WRITE),
    ],
)
def test_a_plain_access_races_with_an_atomic_of_another_warp(
    shadow: SharedShadow, sink: HazardSink, order: tuple[str, str], kind: str
) -> None:
    shadow.write(1, _OWN, None, 4)
    shadow.barrier(None)
    for name, address in zip(order, (_OWN, _MIRRORED), strict=True):
        getattr(shadow, name)(2, address, None, 4)
    assert _kinds(shadow, sink) == [(kind, 2, _BLOCKS * _THREADS)]


def test_a_copy_may_not_start_while_another_warp_reads(
    shadow: SharedShadow, sink: HazardSink
) -> None:
    shadow.write(1, _OWN, None, 4)
    shadow.barrier(None)
    shadow.read(2, _MIRRORED, None, 4)
    shadow.start_copy(3, _OWN, None, 4)
    assert _kinds(shadow, sink) == [(WRITE_AFTER_READ, 3, _BLOCKS * _THREADS)]


def test_a_copy_has_written_when_it_ends(shadow: SharedShadow, sink: HazardSink) -> None:
    shadow.start_copy(1, _OWN, None, 4)
    shadow.barrier(None)
    shadow.end_copy(2, _OWN, None, 4)
    shadow.read(3, _MIRRORED, None, 4)
    assert _kinds(shadow, sink) == [(READ_AFTER_WRITE, 3, _BLOCKS * _THREADS)]


def test_hazards_of_one_line_are_summed_and_keep_their_first_example(sink: HazardSink) -> None:
    sink.add("out-of-bounds read", 7, 2, 0, 3, "byte 64 of A (64 bytes), read")
    sink.add("misaligned address", 7, 1, 0, 4, "byte 3 of A, read")
    sink.first_block = 5
    sink.add("out-of-bounds read", 7, 4, 1, 9, "byte 68 of A (64 bytes), read")
    assert [(hazard.kind, hazard.count, hazard.example) for hazard in sink.hazards()] == [
        (
            "out-of-bounds read",
            6,
            "byte 64 of A (64 bytes), read by thread (3,0,0) of block (0,0,0)",
        ),
        ("misaligned address", 1, "byte 3 of A, read by thread (4,0,0) of block (0,0,0)"),
    ]


def _random_trace(seed: int, shadow: SharedShadow, *, split: bool) -> None:
    """Play a random trace, either as accesses alike in all blocks or with a row per block."""
    random = np.random.default_rng(seed)
    rows = _BLOCKS if split else 1

    def spread(values: Any) -> Any:  # noqa: ANN401
        return np.repeat(values, rows, axis=0)

    for pc in range(12):
        width = int(random.choice([2, 4, 8, 16]))
        address = random.integers(0, 256 // width, (1, _THREADS)) * width
        mask = random.random((1, _THREADS)) < random.random()
        action = random.choice(
            ["read", "write", "atomic", "start_copy", "end_copy", "barrier", "order_warps"]
        )
        if action == "barrier":
            shadow.barrier(np.ones((_BLOCKS, 1), dtype=np.bool_) if split else None)
        elif action == "order_warps":
            shadow.order_warps(spread(mask))
        else:
            getattr(shadow, action)(pc, spread(address), spread(mask), width)


@pytest.mark.parametrize("seed", range(25))
def test_one_row_for_all_blocks_says_what_a_row_for_each_says(seed: int) -> None:
    told = []
    for split in (False, True):
        sink = _sink()
        shadow = SharedShadow(256, sink)
        shadow.begin_slice(_BLOCKS, _THREADS)
        _random_trace(seed, shadow, split=split)
        shadow.end_slice()
        told.append(sink.hazards())
    assert told[0] == told[1]
