"""Read the sections and symbols of a 64-bit little-endian ELF file; nothing here knows CUDA."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ci.static.errors import StaticError

_MAGIC = b"\x7fELF\x02\x01"
"""ELF, 64 bit, little-endian."""
_FILE_HEADER = struct.Struct("<8xB7xHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE = 2
_NO_BYTES_IN_FILE = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """One section."""

    name: str
    size_bytes: int
    """Size in memory; the file may hold fewer bytes (none of a zero-initialised section)."""
    data: bytes
    """What the file holds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Elf:
    """An ELF file, taken apart."""

    machine: int
    abi_version: int
    flags: int
    """``e_flags``: their meaning belongs to the machine."""
    sections: Mapping[str, Section]
    symbols: tuple[str, ...]
    """Symbol names by index; empty where a symbol has no name."""


def unpack(layout: struct.Struct, data: bytes, offset: int, what: str) -> tuple[int, ...]:
    """Return the integers of ``layout`` at ``offset``.

    Raises:
        StaticError: ``data`` ends before ``what`` does.
    """
    _expect_bytes(data, offset, layout.size, what)
    return layout.unpack_from(data, offset)


def read_elf(data: bytes) -> Elf:
    """Return the sections and symbols of an ELF file.

    Raises:
        StaticError: The bytes are no such file, or end too early.

    Source: System V ABI, chapters "Object Files" and "Symbol Table".
    """
    if not data.startswith(_MAGIC):
        msg = f"ELF header: expected {_MAGIC!r}, got {data[: len(_MAGIC)]!r}; build the cubin again"
        raise StaticError(msg)
    (
        abi_version, _type, machine, _version, _entry, first_segment, first_header, flags,
        _header_size, segment_size, segment_count, _section_size, count, names_at,
    ) = unpack(_FILE_HEADER, data, 0, "ELF header")  # fmt: skip
    _expect_bytes(data, first_segment, segment_size * segment_count, "program headers")
    headers = [
        unpack(_SECTION_HEADER, data, first_header + index * _SECTION_HEADER.size, "section header")
        for index in range(count)
    ]
    if names_at >= count:
        msg = f"ELF header: names in section {names_at} of {count}; build the cubin again"
        raise StaticError(msg)
    names = _contents(data, headers[names_at], "section names")
    sections: dict[str, Section] = {}
    symbols: tuple[str, ...] = ()
    for header in headers:
        name = _string(names, header[0], "section name")
        content = _contents(data, header, name)
        sections[name] = Section(name=name, size_bytes=header[5], data=content)
        if header[1] == _SYMBOL_TABLE:
            symbols = tuple(_symbol_names(data, headers, header, content))
    return Elf(
        machine=machine,
        abi_version=abi_version,
        flags=flags,
        sections=sections,
        symbols=symbols,
    )


def _expect_bytes(data: bytes, offset: int, size: int, what: str) -> None:
    """Raise if ``data`` ends before ``what`` does."""
    if offset + size > len(data):
        msg = (
            f"{what}: expected {size} bytes at offset {offset}, got an end at {len(data)}; "
            "the file is cut off or damaged, build it again"
        )
        raise StaticError(msg)


def _contents(data: bytes, header: tuple[int, ...], what: str) -> bytes:
    """Return the bytes that the file holds of a section."""
    kind, offset, size = header[1], header[4], header[5]
    if kind == _NO_BYTES_IN_FILE:
        return b""
    _expect_bytes(data, offset, size, f"section {what}")
    return data[offset : offset + size]


def _symbol_names(
    data: bytes, headers: list[tuple[int, ...]], table: tuple[int, ...], content: bytes
) -> Iterator[str]:
    """Yield the name of every symbol of a symbol table."""
    link = table[6]
    if link >= len(headers):
        msg = f"symbol table: names in section {link} of {len(headers)}; build the cubin again"
        raise StaticError(msg)
    strings = _contents(data, headers[link], "symbol names")
    for offset in range(0, len(content), _SYMBOL.size):
        yield _string(strings, unpack(_SYMBOL, content, offset, "symbol")[0], "symbol name")


def _string(table: bytes, offset: int, what: str) -> str:
    """Return the zero-terminated string at ``offset``."""
    end = table.find(b"\0", offset)
    if end < 0:
        msg = f"{what}: no string at offset {offset} of a table of {len(table)} bytes"
        raise StaticError(msg)
    return table[offset:end].decode("utf-8", errors="replace")
