"""Why a planted fault was not found as expected; one sentence for each that was not."""

from __future__ import annotations

REASONS = {
    "softmax: rows past the end are written": (
        "It writes the last row twice, with the same values."
    ),
    "softmax: the tree's halves overlap": (
        "The read past the end of the array is told, which ends the launch before the race."
    ),
    "leaders: lanes past the end do not take part in the match": (
        "No fault after all: lanes that have exited hold nobody up, and the counts are right."
    ),
    "partition: lanes past the end do not vote": (
        "Lanes that have exited hold nobody up; the zeros that they should have written are named."
    ),
    "fragments: lanes whose lower row is past M skip the mma": (
        "It is told at another line of the same `asm` statement than the one that was named."
    ),
    "named barriers: the barrier counts the threads of one warp": (
        "A partial barrier orders the whole block for the race check; the wrong numbers are named."
    ),
    "named barriers: nobody waits for a buffer to be empty": (
        "Its second arrival completes a barrier alone; told is who waits for that barrier in vain."
    ),
}
"""Fault → the reason."""
