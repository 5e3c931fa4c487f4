"""Why a check cannot be made. A failed check is no error: it is a sub-check with a detail."""


class CheckError(Exception):
    """Base of everything this room raises on purpose."""


class UntrustedReferenceError(CheckError):
    """A reference is not implemented here, or fails on a problem whose answer is known."""
