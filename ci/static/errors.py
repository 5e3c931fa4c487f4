"""What can be wrong with a cubin, its log or the tools that read them."""


class StaticError(Exception):
    """Everything this room raises on purpose; the message says what, where and what to do."""
