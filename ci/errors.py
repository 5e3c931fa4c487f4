"""What a user can ask for that cannot be done. Each ends in one line and exit code 2."""

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C, also of a gate that still wrote its report."""


class CiError(Exception):
    """Base of everything the command line raises on purpose."""


class UsageError(CiError):
    """The arguments do not fit, or name something that is not there."""


class OriginError(CiError):
    """Parts of flopwatch come from different places."""
