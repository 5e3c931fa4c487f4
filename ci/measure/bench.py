"""What a timing process asks of a device that times: operands in place, batches, samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ci.measure.batch import Batch
from ci.measure.errors import MeasureError
from kernels.spec import Case

_COARSE = 2.0**-10
"""Share of the largest element by which results of one routine on the same operands may differ."""


class BenchError(MeasureError):
    """A case cannot be timed on this device; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Routine:
    """What is timed: a case's stage, or the vendor library's routine at its size."""

    case: Case
    baseline: bool


class Placed(Protocol):
    """One launch of a routine on one operand set, everything decided."""

    def launch(self) -> None:
        """Launch on its own and wait for the end.

        Raises:
            BenchError: The launch was refused or broke.
        """

    def poison(self) -> None:
        """Overwrite the output with NaN."""

    def output(self) -> NDArray[np.generic]:
        """Return a copy of the output, one-dimensional."""
        ...

    def agrees_with(self, other: Placed) -> bool:
        """Return whether both outputs hold the same bytes; nothing is copied off the device."""
        ...


class Replay(Protocol):
    """A recorded batch."""

    def run(self) -> None:
        """Replay every part once and wait for the end."""

    def time(self, count: int) -> tuple[float, ...]:
        """Replay a part untimed, then the next ``count`` timed; return the seconds of each.

        Parts follow one another round and round. The first launch after an idle gap is slow,
        hence the untimed one.
        """
        ...


class Bench(Protocol):
    """A device that times."""

    l2_bytes: int
    """Size of the cache that cold batches have to leave behind."""
    tick_s: float
    """Tick of the timer (s)."""

    def set_bytes(self, routine: Routine) -> int:
        """Return the bytes of one operand set."""
        ...

    def place(self, routine: Routine, sets: int) -> Sequence[Placed]:
        """Return the routine on so many operand sets of equal contents.

        Contents are random, the same for every process. What was placed before is of no more use.

        Raises:
            BenchError: The routine cannot run here, or memory is full.
        """
        ...

    def record(self, parts: Sequence[Sequence[Placed]]) -> Replay:
        """Return a batch of launches in this order.

        Args:
            parts: The launches of each part.

        Raises:
            BenchError: The batch cannot be recorded.
        """
        ...

    def drop(self) -> None:
        """Have the memory of operands free for the next case; nobody uses them any more."""


def require_all_worked_on(
    placed: Sequence[Placed], replay: Replay, batch: Batch, right: NDArray[np.generic]
) -> None:
    """Refuse a batch that leaves an operand set out, or whose results are not right.

    Every output is poisoned and the batch replayed once: an output that is still poison was not
    worked on, and a time that counted it would be of a warm or an idle launch.

    Args:
        placed: The routine on each operand set.
        replay: The recorded batch.
        batch: What the batch should be.
        right: The output of a launch on its own, one-dimensional.

    Raises:
        BenchError: Naming the first operand set that is not as it should be.
    """
    for each in placed:
        each.poison()
    replay.run()
    for number, each in enumerate(placed):
        # The first is looked at, and where it is right most others only have to be like it.
        if number and each.agrees_with(placed[0]):
            continue
        got = each.output()
        if np.array_equal(got.view(np.uint8), right.view(np.uint8)) and not np.isnan(got[0]):
            continue
        where = f"operand set {number + 1} of {batch.sets} after a replay of {batch.launches}"
        if np.isnan(got).all():
            msg = f"{where}: its output was not written, so the times would not be cold"
            raise BenchError(msg)
        if not _near(got, right):
            msg = f"{where}: its output is not that of a launch on its own"
            raise BenchError(msg)


def _near(got: NDArray[np.generic], want: NDArray[np.generic]) -> bool:
    """Return whether two outputs agree; atomics may have summed in another order."""
    margin = _COARSE * float(np.abs(want).max())
    return bool(np.isclose(got, want, rtol=0, atol=margin, equal_nan=True).all())
