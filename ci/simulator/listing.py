"""Accesses of an epoch, checked when it ends, and not again if a loop repeats them.

A list without races has none when it is repeated: races lie within an epoch, and what is written
stays written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from ci.simulator.marks import Touches

    Values = Sequence[NDArray[Any]] | None
    Check = Callable[[int, Touches, Values], None]
    Access = tuple[Check, int, Touches]

_MOST_REMEMBERED = 1024
_LONGEST = 4096


class Listing:
    """The accesses since the last barrier, as long as they need not be checked."""

    def __init__(self) -> None:
        """Begin with an empty list."""
        self.suspects = 0
        """Counts what may be a hazard; a list that adds to it is checked every time."""
        self.postpones = True
        """Whether accesses are listed; else they are checked at once."""
        self._accesses: list[Access] = []
        self._values: list[Values] = []
        self._harmless: set[tuple[Access, ...]] = set()

    def take(self, check: Check, pc: int, touches: Touches, values: Values = None) -> None:
        """Check an access, now or later.

        Args:
            check: Function of the other arguments.
            pc: The instruction.
            touches: What it touches.
            values: What it stores, if that matters.
        """
        if not self.postpones:
            check(pc, touches, values)
            return
        self._accesses.append((check, pc, touches))
        self._values.append(values)
        if len(self._accesses) == _LONGEST:
            self.catch_up()

    def ends_with(self, access: Access) -> bool:
        """Return whether an access is the last one that is listed."""
        return bool(self._accesses) and self._accesses[-1] == access

    def settle(self) -> None:
        """Check what the epoch that ends has left, unless it is known to be harmless."""
        accesses = tuple(self._accesses)
        if accesses and accesses not in self._harmless:
            before = self.suspects
            self.catch_up()
            if self.suspects == before:
                if len(self._harmless) == _MOST_REMEMBERED:
                    self._harmless.clear()
                self._harmless.add(accesses)
        self._clear()

    def catch_up(self) -> None:
        """Check the listed accesses, and the following ones of this epoch at once."""
        for (check, pc, touches), values in zip(self._accesses, self._values, strict=True):
            check(pc, touches, values)
        self._clear()
        self.postpones = False

    def _clear(self) -> None:
        self._accesses.clear()
        self._values.clear()
