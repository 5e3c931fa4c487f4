"""Read what NVIDIA's compiler notes in a cubin about each kernel."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ci.static.elf import Elf, read_elf, unpack
from ci.static.errors import StaticError

_CUDA_MACHINE = 190
_ABI_VERSION = 8
_RESERVES_FROM_SM = 90
_RESERVED_SHARED_BYTES = 1024
"""Part of ``.nv.shared.<kernel>`` from sm_90: kept for the system."""

_HARDWARE_MAX_THREADS = 1024

_ENTRY = struct.Struct("<BBH")
_PAIR = struct.Struct("<II")
_TRIPLE = struct.Struct("<III")
_WITH_PAYLOAD = 4
"""Entry format whose value is the number of payload bytes that follow."""

_MAX_THREADS = 0x05
_MIN_STACK_SIZE = 0x12
_REGISTER_COUNT = 0x2F
_BARRIER_COUNT = 0x4C


@dataclass(frozen=True, kw_only=True, slots=True)
class CompiledKernel:
    """One kernel, as its cubin describes it."""

    registers: int
    """Per thread."""
    stack_bytes: int
    """Per thread, functions it calls included."""
    static_shared_bytes: int
    """Per block, without what the system reserves."""
    barriers: int
    """Named barriers per block."""
    max_threads_per_block: int
    """From ``__launch_bounds__``; the hardware's 1024 if the source states none."""
    code_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CubinContents:
    """The kernels of a cubin and the hardware they are for."""

    sm: int
    """Compute capability times ten: 90 for sm_90 and for sm_90a."""
    kernels: Mapping[str, CompiledKernel]
    """By symbol."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Attribute:
    """One entry of a ``.nv.info`` section."""

    kind: int
    value: int
    payload: bytes


def read_cubin(data: bytes) -> CubinContents:
    """Return what a cubin says about its kernels.

    Raises:
        StaticError: The bytes are not a cubin of the known format, or end too early.

    Source: entry layout as ``cuobjdump -elf`` prints it for NVRTC 13.0 and 13.5; the figures
    agree with the compiler's own log on every architecture (``tests/static``).
    """
    elf = read_elf(data)
    if elf.machine != _CUDA_MACHINE or elf.abi_version != _ABI_VERSION:
        msg = (
            f"cubin: expected machine {_CUDA_MACHINE} with ABI version {_ABI_VERSION}, got machine "
            f"{elf.machine} with {elf.abi_version}; compile with NVRTC 13"
        )
        raise StaticError(msg)
    sm = elf.flags >> 8 & 0xFF
    registers = _per_symbol(elf, _REGISTER_COUNT)
    stacks = _per_symbol(elf, _MIN_STACK_SIZE)
    prefix = ".text."
    return CubinContents(
        sm=sm,
        kernels={
            symbol: _kernel(elf, symbol, sm, registers, stacks)
            for symbol in (name[len(prefix) :] for name in elf.sections if name.startswith(prefix))
        },
    )


def _kernel(
    elf: Elf, symbol: str, sm: int, registers: Mapping[str, int], stacks: Mapping[str, int]
) -> CompiledKernel:
    """Collect the figures of one kernel."""
    if symbol not in registers or symbol not in stacks:
        missing = "register count" if symbol not in registers else "stack size"
        msg = f"cubin, .nv.info: no {missing} of {symbol}; compile with NVRTC 13"
        raise StaticError(msg)
    barriers = 0
    max_threads = _HARDWARE_MAX_THREADS
    section = f".nv.info.{symbol}"
    for attribute in _attributes(elf, section):
        if attribute.kind == _BARRIER_COUNT:
            barriers = attribute.value & 0xFF
        elif attribute.kind == _MAX_THREADS:
            x, y, z = unpack(_TRIPLE, attribute.payload, 0, f"{section}, launch bounds")
            max_threads = x * y * z
    return CompiledKernel(
        registers=registers[symbol],
        stack_bytes=stacks[symbol],
        static_shared_bytes=_static_shared_bytes(elf, symbol, sm),
        barriers=barriers,
        max_threads_per_block=max_threads,
        code_bytes=elf.sections[f".text.{symbol}"].size_bytes,
    )


def _static_shared_bytes(elf: Elf, symbol: str, sm: int) -> int:
    """Return the shared memory that the kernel itself declares, per block."""
    section = elf.sections.get(f".nv.shared.{symbol}")
    if section is None:
        return 0
    reserved = _RESERVED_SHARED_BYTES if sm >= _RESERVES_FROM_SM else 0
    if section.size_bytes < reserved:
        msg = (
            f"cubin, {section.name}: expected at least the {reserved} bytes that sm_{sm} reserves, "
            f"got {section.size_bytes}; compile with NVRTC 13"
        )
        raise StaticError(msg)
    return section.size_bytes - reserved


def _per_symbol(elf: Elf, kind: int) -> dict[str, int]:
    """Return one attribute of every symbol that has it."""
    values = {}
    for attribute in _attributes(elf, ".nv.info"):
        if attribute.kind != kind:
            continue
        index, value = unpack(_PAIR, attribute.payload, 0, f".nv.info, attribute {kind:#x}")
        if index >= len(elf.symbols):
            msg = f"cubin, .nv.info: symbol {index} of {len(elf.symbols)}; build the cubin again"
            raise StaticError(msg)
        values[elf.symbols[index]] = value
    return values


def _attributes(elf: Elf, section: str) -> Iterator[_Attribute]:
    """Yield the entries of a ``.nv.info`` section; none if the cubin has no such section."""
    data = elf.sections[section].data if section in elf.sections else b""
    offset = 0
    while offset < len(data):
        layout, kind, value = unpack(_ENTRY, data, offset, section)
        offset += _ENTRY.size
        length = value if layout == _WITH_PAYLOAD else 0
        yield _Attribute(kind=kind, value=value, payload=data[offset : offset + length])
        offset += length
