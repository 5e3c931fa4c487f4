"""What can be asked of the gate wrongly. Every message says what, where and what to do."""


class GateError(Exception):
    """Base of everything this room raises on purpose."""


class MachineMismatchError(GateError):
    """Base and head were not made on one machine by one toolchain."""


class DuplicateCaseError(GateError):
    """A record holds one case id twice."""


class AcknowledgementError(GateError):
    """A line of the acknowledgements file cannot be read."""


class RoundsError(GateError):
    """Rounds were not taken in the way the timing rule needs."""
