"""How device printf formats, and where the text of a launch collects.

Source: CUDA C++ Programming Guide, "Formatted Output"; C standard, "The fprintf function".
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import Protocol

OUTPUT_MAX_CHARACTERS = 1 << 16
"""What a launch may print; CUDA's buffer of 1 MiB overwrites its oldest text instead."""
_WIDTH_MAX = 1024

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?(?P<size>hh|h|ll|l|j|z|t)?"
    r"(?P<kind>[diouxXcsaAeEfFgGp%])",
    re.ASCII,
)
_LONG = ("l", "ll", "j", "z", "t")
_BITS = {"hh": 8, "h": 16}


class Memory(Protocol):
    """What a thread can read."""

    def read(self, address: int, count: int) -> bytes:
        """Return up to ``count`` bytes at a generic address."""
        ...

    def text(self, address: int) -> str:
        """Return a string that ends with a zero byte."""
        ...


@dataclass(slots=True)
class Output:
    """The text that a launch prints, up to a limit."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    dropped: int = 0
    """Calls of printf whose text was left out."""

    @property
    def full(self) -> bool:
        """Return whether the limit is reached."""
        return self.length >= OUTPUT_MAX_CHARACTERS

    def add(self, text: str) -> None:
        """Append what one thread prints."""
        self.parts.append(text)
        self.length += len(text)

    def lines(self) -> tuple[str, ...]:
        """Return the lines, the last of which says what was left out."""
        found = "".join(self.parts).split("\n")
        if not found[-1]:
            found.pop()
        if self.dropped:
            found.append(f"... and what {self.dropped} more calls of printf wrote")
        return tuple(found)


class _Values:
    """The arguments behind each other in memory, each at its natural alignment."""

    def __init__(self, memory: Memory, address: int) -> None:
        self._memory = memory
        self._address = address
        self.count = 0

    def next(self, code: str) -> int | float:
        """Return the next one, of a type that ``struct`` names; zero where memory ends."""
        size = struct.calcsize(code)
        self._address = -(-self._address // size) * size
        content = self._memory.read(self._address, size).ljust(size, b"\0")
        self._address += size
        self.count += 1
        (value,) = struct.unpack("<" + code, content)
        return value if isinstance(value, float) else int(value)


def formatted(pattern: str, memory: Memory, address: int) -> tuple[str, int]:
    """Return the text of one call of printf, and the number of its arguments.

    Args:
        pattern: The format.
        memory: What the thread can read.
        address: Where the arguments lie.
    """
    values = _Values(memory, address)
    text = _CONVERSION.sub(lambda found: _converted(found, memory, values), pattern)
    return text, values.count


def _converted(found: re.Match[str], memory: Memory, values: _Values) -> str:
    kind, flags = found["kind"], found["flags"]
    if kind == "%":
        return "%"
    width = _number(found["width"], values)
    precision = None if found["precision"] is None else _number(found["precision"], values)
    if width < 0:
        flags, width = flags + "-", -width
    if precision is not None and precision < 0:
        precision = None
    width, limit = min(width, _WIDTH_MAX), None if precision is None else min(precision, _WIDTH_MAX)
    if kind == "c":
        return _padded(chr(int(values.next("i")) & 0xFF), "", flags, width, zeros=False)
    if kind == "s":
        return _padded(memory.text(int(values.next("q")))[:limit], "", flags, width, zeros=False)
    if kind == "p":
        return _padded(f"0x{int(values.next('Q')):x}", "", flags, width, zeros=False)
    if kind in "diouxX":
        return _integer(found, flags, width, limit, values)
    return _float(kind, flags, width, limit, float(values.next("d")))


def _number(text: str, values: _Values) -> int:
    if text == "*":
        return int(values.next("i"))
    return int(text[:9] or 0)


def _integer(
    found: re.Match[str], flags: str, width: int, precision: int | None, values: _Values
) -> str:
    size, kind = found["size"] or "", found["kind"]
    signed = kind in "di"
    code = "q" if size in _LONG else "i"
    value = int(values.next(code if signed else code.upper()))
    if size in _BITS:
        value &= (1 << _BITS[size]) - 1
        if signed and value >> _BITS[size] - 1:
            value -= 1 << _BITS[size]
    digits = format(abs(value), {"o": "o", "x": "x", "X": "X"}.get(kind, "d"))
    digits = "" if precision == 0 and not value else digits.zfill(precision or 0)
    sign = _sign(flags, negative=value < 0) if signed else ""
    if "#" in flags and kind == "o" and not digits.startswith("0"):
        digits = "0" + digits
    if "#" in flags and kind in "xX" and value:
        sign = "0" + kind
    return _padded(digits, sign, flags, width, zeros=precision is None)


def _float(kind: str, flags: str, width: int, precision: int | None, value: float) -> str:
    magnitude = abs(value)
    negative = struct.pack("<d", value)[7] >= 0x80  # noqa: PLR2004
    sign = _sign(flags, negative=negative)
    if magnitude != magnitude or magnitude == float("inf"):  # noqa: PLR0124
        word = "nan" if magnitude != magnitude else "inf"  # noqa: PLR0124
        return _padded(word.upper() if kind.isupper() else word, sign, flags, width, zeros=False)
    if kind in "aA":
        # The shortest exact form, as C writes it without a precision.
        head, _, exponent = magnitude.hex().removeprefix("0x").partition("p")
        head = head.rstrip("0").rstrip(".") if "." in head else head
        digits = f"{head}p{exponent}"
        sign += "0x"
        if kind == "A":
            digits, sign = digits.upper(), sign.upper()
    else:
        alternate = "#" if "#" in flags else ""
        limit = 6 if precision is None else precision
        digits = format(magnitude, f"{alternate}.{limit}{kind}")
    return _padded(digits, sign, flags, width, zeros=True)


def _sign(flags: str, *, negative: bool) -> str:
    if negative:
        return "-"
    return "+" if "+" in flags else " " if " " in flags else ""


def _padded(text: str, sign: str, flags: str, width: int, *, zeros: bool) -> str:
    """Return the text with its sign or prefix, as wide as asked for."""
    missing = " " * (width - len(sign) - len(text))
    if "-" in flags:
        return sign + text + missing
    if zeros and "0" in flags:
        return sign + "0" * len(missing) + text
    return missing + sign + text
