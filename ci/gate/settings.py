"""The numbers of the timing rule. Where they come from: ``docs/timing-rule.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What counts as slower, and with which certainty.

    Margins are natural logarithms of head's time over base's.
    """

    name: str
    fail_margin: float
    """REGRESSION says that head is shown to be slower by more than this."""
    pass_margin: float
    """UNCHANGED says that head is shown to be slower by less than this."""
    false_alarms: float = 0.005
    """Probability of any false REGRESSION in a gate, spread evenly over ``fail_looks``."""
    misses: float = 0.025
    """Probability, at one look, of UNCHANGED for a case exactly at ``pass_margin``."""
    screen_rounds: int = 4
    """Rounds of every case. Even, as every look is: both orders of starting count equally."""
    pass_looks: tuple[int, ...] = (4, 8, 12, 16, 20)
    """Numbers of fresh rounds at which a suspect may become UNCHANGED."""
    fail_looks: tuple[int, ...] = (8, 12, 16, 20)
    """Numbers of fresh rounds at which a suspect may become REGRESSION."""
    ledger_weight: int = 12
    """Degrees of freedom that the noise ledger counts for at the screen."""
    least_variance: float = 1e-10
    """Floor under the variance of a round's estimate: (0.001 %)²."""
    most_invalid_rounds: int = 4
    """A case with more rounds thrown away than this gets no verdict."""

    @property
    def looks(self) -> tuple[int, ...]:
        """Return every number of fresh rounds at which something is decided, ascending."""
        return tuple(sorted({*self.pass_looks, *self.fail_looks}))

    @property
    def level(self) -> float:
        """Return the level of one fail look."""
        return self.false_alarms / len(self.fail_looks)


STANDARD = Settings(name="standard", fail_margin=math.log(1.005), pass_margin=math.log(1.0125))
SENSITIVE = Settings(name="sensitive", fail_margin=math.log(1.0025), pass_margin=math.log(1.0075))


def other_than(settings: Settings) -> Settings:
    """Return the setting whose word is recorded beside that of ``settings``."""
    return STANDARD if settings.name == SENSITIVE.name else SENSITIVE
