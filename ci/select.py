"""Reads ``-k`` expressions, which select case ids the way pytest selects tests."""

from __future__ import annotations

import re
from collections.abc import Callable

from ci.errors import UsageError

Selector = Callable[[str], bool]
"""Case id → whether it is selected."""

_TOKEN = re.compile(r"\s*(?:(?P<paren>[()])|(?P<word>[\w:+\-.\[\]\\/=,*]+))")


def selector(expression: str) -> Selector:
    """Return the test a ``-k`` expression stands for.

    A word selects the ids that contain it, whatever the case of its letters; ``not``, ``and``,
    ``or`` and parentheses combine words. The empty expression selects everything.

    Raises:
        UsageError: The expression cannot be read.

    Source: pytest's documentation, "Using -k expr to select tests based on their name".
    """
    if not expression.strip():
        return lambda _: True
    return _Reader(expression).whole()


class _Reader:
    """A recursive descent over or, and, not, word; loosest first."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = self._split()

    def whole(self) -> Selector:
        chosen = self._either()
        if self._tokens:
            raise self._error(f"unexpected '{self._tokens[0]}'")
        return chosen

    def _split(self) -> list[str]:
        tokens, position = [], 0
        text = self._expression.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._error(f"'{text[position:].strip()[0]}' has no meaning here")
            tokens.append(match["paren"] or match["word"])
            position = match.end()
        return tokens

    def _either(self) -> Selector:
        options = [self._all()]
        while self._take("or"):
            options.append(self._all())
        return lambda case: any(option(case) for option in options)

    def _all(self) -> Selector:
        conditions = [self._one()]
        while self._take("and"):
            conditions.append(self._one())
        return lambda case: all(condition(case) for condition in conditions)

    def _one(self) -> Selector:
        if self._take("not"):
            inner = self._one()
            return lambda case: not inner(case)
        if self._take("("):
            inner = self._either()
            if not self._take(")"):
                raise self._error("a ')' is missing")
            return inner
        if not self._tokens or self._tokens[0] in ("and", "or", ")"):
            raise self._error("a word is missing")
        word = self._tokens.pop(0).lower()
        return lambda case: word in case.lower()

    def _take(self, token: str) -> bool:
        if self._tokens and self._tokens[0] == token:
            self._tokens.pop(0)
            return True
        return False

    def _error(self, trouble: str) -> UsageError:
        return UsageError(f"-k '{self._expression}': {trouble} (words, and, or, not, parentheses)")
