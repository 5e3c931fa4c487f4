"""Declarations of variables and kernel parameters: sizes, alignment, initial bytes."""

from __future__ import annotations

import re
import struct

from ci.simulator.errors import PtxError
from ci.simulator.operands import NAME, TYPE_BYTES, immediate, integer
from ci.simulator.ptx import Link, Parameter, Variable

VARIABLE_MAX_BYTES = 1 << 28
"""A larger variable is not held in memory."""
PARAMETERS_MAX_BYTES = 32764
"""What PTX allows a parameter list."""

_VARIABLE = re.compile(
    r"\.(?P<space>shared|local|const|global)\s+(?:\.attribute\([^)]*\)\s*)?"
    r"(?:\.align\s+(?P<align>\d+)\s+)?(?:\.v(?P<vector>[24])\s+)?\.(?P<type>\w+)\s+"
    r"(?P<name>[\w$%]+)\s*(?P<extents>(?:\[\s*\d*\s*\]\s*)*)(?:=\s*(?P<initial>.*))?$",
    re.DOTALL,
)
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)\s+"
    r"(?:\.ptr\s*(?:\.\w+\s*)?(?:\.align\s+\d+\s+)?)?"
    r"(?P<name>[\w$%]+)\s*(?:\[\s*(?P<extent>\d+)\s*\])?$"
)
_ADDRESS = re.compile(
    rf"(?:generic\s*\(\s*(?P<generic>{NAME})\s*\)|(?P<plain>{NAME}))\s*(?P<addend>[+-]\s*\w+)?$"
)
_PACK = {("f", 4): "<f", ("f", 8): "<d"}


def _size(kind: str) -> int:
    if kind not in TYPE_BYTES:
        msg = f"unknown type .{kind}"
        raise PtxError(msg)
    return TYPE_BYTES[kind]


def _alignment(text: str | None, natural: int) -> int:
    align = int(text) if text else natural
    if align < 1 or align > 1 << 16 or align & (align - 1):
        msg = f"expected an alignment that is a power of two, got {align}"
        raise PtxError(msg)
    return align


def variable(statement: str) -> Variable:
    """Return the variable that a declaration without linking directives declares.

    Raises:
        PtxError: It is malformed, or initialised with something else than numbers and addresses.
    """
    found = _VARIABLE.match(" ".join(statement.split()))
    if not found:
        msg = f"malformed declaration {statement[:60]!r}"
        raise PtxError(msg)
    width = _size(found["type"])
    extents = re.findall(r"\[\s*(\d*)\s*\]", found["extents"])
    dynamic = extents == [""]
    count = int(found["vector"] or 1)
    for extent in extents:
        count *= int(extent or (0 if dynamic else 1))
    if count * width > VARIABLE_MAX_BYTES:
        msg = f"{found['name']}: {count * width} bytes is more than a variable may have"
        raise PtxError(msg)
    initial, links = _initial(found["initial"] or "", found["type"], width)
    count = max(count, len(initial) // width)
    return Variable(
        name=found["name"],
        space=found["space"],
        size_bytes=count * width,
        align_bytes=_alignment(found["align"], width * int(found["vector"] or 1)),
        initial=initial,
        links=links,
        dynamic=dynamic,
    )


def _initial(text: str, kind: str, width: int) -> tuple[bytes, tuple[Link, ...]]:
    """Return the initial bytes of a variable, and the addresses among them, which are zeros."""
    content = bytearray()
    links = []
    for item in filter(None, (part.strip() for part in re.split("[{},]", text))):
        address = _ADDRESS.match(item)
        if address:
            addend = integer("".join((address["addend"] or "+0").split()).lstrip("+"))
            symbol = address["generic"] or address["plain"]
            links.append(Link(offset=len(content), symbol=symbol, addend=addend, width_bytes=width))
        content += bytes(width) if address else _bytes(item, kind[0], width)
    return bytes(content), tuple(links)


def _bytes(number: str, kind: str, width: int) -> bytes:
    literal = immediate(number)
    if literal is None:
        msg = f"expected a number or an address as initial value, got {number[:60]!r}"
        raise PtxError(msg)
    bits = literal.bits
    if literal.kind == "f64" and (kind, width) in _PACK:
        (value,) = struct.unpack("<d", struct.pack("<Q", bits))
        return struct.pack(_PACK[kind, width], value)
    return (bits & (1 << 8 * width) - 1).to_bytes(width, "little")


def parameters(text: str) -> tuple[Parameter, ...]:
    """Return the parameters of a list, laid out in the parameter block of a kernel.

    ``.ptr .align`` describes what a pointer points to; ``.align`` before the type moves the
    parameter itself.

    Raises:
        PtxError: A declaration is malformed.
    """
    found: list[Parameter] = []
    end = 0
    for declaration in filter(None, (part.strip() for part in text.split(","))):
        parts = _PARAMETER.match(declaration)
        if not parts:
            msg = f"malformed parameter {declaration[:60]!r}"
            raise PtxError(msg)
        width = _size(parts["type"])
        size = width * int(parts["extent"] or 1)
        align = _alignment(parts["align"], width)
        offset = -(-end // align) * align
        found.append(Parameter(name=parts["name"], size_bytes=size, offset=offset))
        end = offset + size
        if size < 1 or end > PARAMETERS_MAX_BYTES:
            msg = f"expected 1 to {PARAMETERS_MAX_BYTES} bytes of parameters, got {end}"
            raise PtxError(msg)
    return tuple(found)
