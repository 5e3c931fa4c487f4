"""What can be wrong with stored results. Every message says what, where and what to do."""


class ResultsError(Exception):
    """Base of everything this room raises on purpose."""


class RecordError(ResultsError):
    """A stored file, or a value to be stored, does not follow the data contract."""


class StoreError(ResultsError):
    """A record has no place in the store, or another one has it already."""
