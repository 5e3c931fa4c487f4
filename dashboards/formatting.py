"""How numbers, dates, commits and strangers' text are written on a page."""

from __future__ import annotations

import datetime as dt
import math
import unicodedata

DASH = "\u2013"
"""Stands where there is no value. Never a zero."""

_MINUS = "\u2212"
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_LONG_S = 120
_SHORT_HASH = 7
_SHORT_DIGEST = 4
_SUBJECT_CHARACTERS = 200
_MESSAGE_CHARACTERS = 8000
_BYTES_PER_KIB = 1024
_REDIRECTING = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))
"""Bidirectional classes of the characters that change the direction of what follows."""


def whole(value: float) -> str:
    """Return a count with thousands separators."""
    return f"{value:,.0f}"


def tenths(value: float) -> str:
    """Return a number of percent with one decimal."""
    return f"{value:,.1f}"


def hundredths(value: float) -> str:
    """Return a ratio with two decimals."""
    return f"{value:,.2f}"


def thousandths(value: float) -> str:
    """Return a small ratio with three decimals."""
    return f"{value:,.3f}"


def percent(fraction: float) -> str:
    """Return a fraction of 1 as a percentage, without the sign."""
    return f"{100 * fraction:.1f}"


def ratio(value: float) -> str:
    """Return a ratio of two times, to the hundredth of a percent that can be told apart."""
    return f"{value:.4f}"


def signed_percent(value: float) -> str:
    """Return a number of percent with its sign and unit: ``+0.25 %``."""
    return f"{value:+.3g} %".replace("-", _MINUS)


def significant(value: float, digits: int = 4) -> str:
    """Return a measured figure with so many significant digits and no exponent."""
    if not value:
        return "0"
    return f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def with_prefix(value: float, unit: str, digits: int = 4) -> str:
    """Return a large figure with its unit and decimal prefix: ``137.0 GFLOP``, ``267.9 MB``."""
    power, prefix = next((entry for entry in _PREFIXES if value >= entry[0]), (1.0, ""))
    return f"{significant(value / power, digits)} {prefix}{unit}"


def kib(size_bytes: float) -> str:
    """Return bytes as KiB, without the unit."""
    return f"{size_bytes / _BYTES_PER_KIB:,.2f}"


def scientific(value: float | None) -> str:
    """Return an error or bound with three significant digits, or a dash."""
    if value is None:
        return DASH
    return "0" if value == 0 else f"{value:.2e}"


def difference(base: float, head: float) -> str:
    """Return head - base with its sign, and its share of base where base is not zero."""
    if base == head:
        return "same"
    delta = head - base
    digits = ",.0f" if float(delta).is_integer() else ",.3f"
    text = f"{delta:+{digits}}"
    if base:
        text += f" ({100 * delta / abs(base):+,.1f} %)"
    return text.replace("-", _MINUS)


def duration(seconds: float) -> str:
    """Return a wall time in seconds, or in minutes and seconds from two minutes on."""
    if seconds < _LONG_S:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest} s"


def moment(text: str) -> str:
    """Return an ISO 8601 time in UTC to the minute; text that is no such time as it is."""
    instant = parse_moment(text)
    return text or DASH if instant is None else f"{instant:%Y-%m-%d %H:%M} UTC"


def parse_moment(text: str) -> dt.datetime | None:
    """Return an ISO 8601 time as an aware UTC time, or None if it is not one."""
    try:
        instant = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=dt.UTC)
    return instant.astimezone(dt.UTC)


def short_commit(commit: str) -> str:
    """Return a commit as pages name it: ``1a2b3c4``, and ``1a2b3c4+9f8e`` for an edited tree."""
    base, dirty, digest = commit.partition("-dirty-")
    if dirty:
        return f"{base[:_SHORT_HASH]}+{digest[:_SHORT_DIGEST]}"
    if base.startswith("tree-"):
        return base[: len("tree-") + _SHORT_HASH]
    return base[:_SHORT_HASH]


def subject(text: str) -> str:
    """Return a commit's subject on one line, cut where it would fill the page."""
    return shortened(" ".join(text.split()), _SUBJECT_CHARACTERS)


def message(text: str) -> str:
    """Return a tool's message, cut where it would fill the page."""
    return shortened(text.strip("\n"), _MESSAGE_CHARACTERS)


def shortened(text: str, most: int) -> str:
    """Return at most ``most`` characters of the text; an ellipsis says that some are missing."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 case``, ``1,024 cases``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def legible(text: str) -> str:
    """Return text in which nothing invisible is left.

    Control characters, lone surrogates and the marks that change the direction of writing become
    visible escapes, so that no commit subject can reorder or break the page around it.
    """
    return "".join(
        character if _is_legible(character) else f"\\u{ord(character):04x}" for character in text
    )


def _is_legible(character: str) -> bool:
    if character in "\n\t":
        return True
    redirects = unicodedata.bidirectional(character) in _REDIRECTING
    return not redirects and unicodedata.category(character) not in ("Cc", "Cs")
