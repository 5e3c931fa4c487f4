"""What a launch checks before it begins, and what its report holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ci.simulator import Buffer, Counts, LaunchError, Place, parse, run
from tests.simulator.ptx_text import entry

ADD = """
ld.param.u64 %rd0, [p0]; ld.param.f32 %f0, [p1]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x;
mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r0, %r1, %r2; mad.wide.u32 %rd1, %r3, 4, %rd0;
.loc 1 3 0
ld.global.f32 %f1, [%rd1]; add.f32 %f1, %f1, %f0;
.loc 1 4 0
st.global.f32 [%rd1], %f1;
"""
MODULE = parse(entry(ADD, ".param .u64 p0, .param .f32 p1"))


def launch(**options: Any):  # noqa: ANN201, ANN401
    data = np.arange(128, dtype=np.float32)
    settings = {
        "grid": (2, 1, 1),
        "block": (64, 1, 1),
        "arguments": [Buffer(name="x", data=data), np.float32(2)],
    }
    return data, run(MODULE, "k", **(settings | options))


def test_buffers_are_written_in_place() -> None:
    data, report = launch()
    np.testing.assert_array_equal(data, np.arange(128) + 2)
    assert not report.hazards
    assert not report.stopped


def test_counts_are_given_by_line_and_add_up() -> None:
    _, report = launch()
    assert report.lines == {
        Place(file="k.cu", line=3): Counts(
            global_load_requests=4,
            global_load_sectors=16,
            global_load_ideal_sectors=16,
            global_load_elements=128,
        ),
        Place(file="k.cu", line=4): Counts(
            global_store_requests=4, global_store_sectors=16, global_store_ideal_sectors=16
        ),
    }
    assert report.totals == sum(report.lines.values(), Counts())


def test_nothing_is_counted_unless_asked() -> None:
    _, report = launch(count=False)
    assert report.totals == Counts()
    assert report.lines == {}


def test_launches_of_one_kernel_do_not_see_each_other() -> None:
    first, _ = launch()
    second, report = launch(grid=(1, 1, 1))
    assert first[64] == 66
    assert second[64] == 64
    assert report.totals.global_load_requests == 2


X = Buffer(name="x", data=np.zeros(128, np.float32))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arguments": [X]}, "expected 2 arguments, got 1"),
        ({"arguments": [X, np.float64(2)]}, "argument 1: expected 4 bytes, got 8"),
        ({"arguments": [np.int32(0), np.float32(2)]}, "argument 0: expected 8 bytes, got 4"),
        ({"block": (32, 33, 1)}, "at most 1024 threads a block, got 1056"),
        ({"block": (1, 1, 65)}, "expected a block of 1 to"),
        ({"grid": (0, 1, 1)}, "expected a grid of 1 to"),
        ({"grid": (1, 70000, 1)}, "expected a grid of 1 to"),
        ({"dynamic_shared_bytes": 232449}, "232448 bytes of shared memory"),
        (
            {"arguments": [Buffer(name="x", data=np.zeros((4, 4))), np.float32(2)]},
            "x: expected a one-dimensional",
        ),
        (
            {"arguments": [Buffer(name="x", data=np.zeros(8)[::2]), np.float32(2)]},
            "x: expected a one-dimensional",
        ),
        (
            {"arguments": [Buffer(name="x", data=X.data, misalignment_bytes=256), np.float32(2)]},
            "misalignment of 0 to 255",
        ),
    ],
)
def test_launch_that_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        launch(**options)


def test_unknown_kernel_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LaunchError, match="no kernel q: the module has k"):
        run(MODULE, "q", grid=(1, 1, 1), block=(1, 1, 1), arguments=[])


def test_buffers_that_overlap_are_refused() -> None:
    module = parse(entry("", ".param .u64 p0, .param .u64 p1"))
    data = np.zeros(8)
    buffers = [Buffer(name="a", data=data), Buffer(name="b", data=data[4:])]
    with pytest.raises(LaunchError, match="b and a share memory"):
        run(module, "k", grid=(1, 1, 1), block=(1, 1, 1), arguments=buffers)


def test_empty_buffer_has_no_bytes_to_touch() -> None:
    _, report = launch(arguments=[Buffer(name="x", data=np.zeros(0, np.float32)), np.float32(1)])
    assert {h.kind for h in report.hazards} == {"out-of-bounds read", "out-of-bounds write"}
    assert all(h.count == 128 for h in report.hazards)


def test_blocks_of_several_slices_are_numbered_through() -> None:
    text = entry("ld.param.u64 %rd0, [p0]; .loc 1 2 0\nst.global.u32 [%rd0+4], 1;")
    data = np.zeros(1, np.uint32)
    report = run(
        parse(text),
        "k",
        grid=(100, 1, 1),
        block=(1024, 1, 1),
        arguments=[Buffer(name="x", data=data)],
    )
    assert report.hazards[0].count == 102400
