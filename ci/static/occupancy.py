"""How many blocks of a kernel one multiprocessor holds: theoretical occupancy."""

from __future__ import annotations

from dataclasses import dataclass

from ci.static.errors import StaticError

_WARP_THREADS = 32
_MAX_BLOCK_THREADS = 1024
_PARTITIONS = 4
"""Parts of a multiprocessor, each with its own registers."""
_PARTITION_REGISTERS = 16384
_REGISTER_UNIT = 256
"""Registers are given to a warp in multiples of this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Multiprocessor:
    """What one multiprocessor has to share among blocks."""

    threads: int
    blocks: int
    shared_bytes: int
    block_shared_bytes: int
    """The most that one block may ask for."""
    reserved_shared_bytes: int = 1024
    """Taken by the system from every resident block."""
    shared_unit_bytes: int = 128
    """Shared memory is given to a block in multiples of this."""
    barriers: int | None = None
    """Named barriers; None where they cannot be what binds."""


_HOPPER = Multiprocessor(
    threads=2048, blocks=32, shared_bytes=233472, block_shared_bytes=232448, barriers=64
)
_MULTIPROCESSORS = {
    "75": Multiprocessor(
        threads=1024,
        blocks=16,
        shared_bytes=65536,
        block_shared_bytes=65536,
        reserved_shared_bytes=0,
        shared_unit_bytes=256,
    ),
    "80": Multiprocessor(threads=2048, blocks=32, shared_bytes=167936, block_shared_bytes=166912),
    "86": Multiprocessor(threads=1536, blocks=16, shared_bytes=102400, block_shared_bytes=101376),
    "89": Multiprocessor(threads=1536, blocks=24, shared_bytes=102400, block_shared_bytes=101376),
    "90": _HOPPER,
    "100": _HOPPER,
    "103": _HOPPER,
    "120": Multiprocessor(
        threads=1536, blocks=24, shared_bytes=102400, block_shared_bytes=101376, barriers=24
    ),
}
"""By architecture number. Source: CUDA C++ Programming Guide, table "Technical Specifications
per Compute Capability"; allocation units and barriers from NVIDIA's ``cuda_occupancy.h``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Occupancy:
    """How full a multiprocessor gets with one kernel."""

    resident_blocks: int
    """0: the kernel cannot be launched."""
    fraction: float
    """Resident warps over the most the multiprocessor holds, 0 to 1."""
    limited_by: tuple[str, ...]
    """What binds: ``threads``, ``blocks``, ``registers``, ``shared memory``, ``barriers``."""


def multiprocessor(arch: str) -> Multiprocessor:
    """Return the multiprocessor of an architecture such as ``sm_90`` or ``sm_90a``.

    Raises:
        StaticError: It is not in the table.
    """
    number = arch.removeprefix("sm_").rstrip("af")
    if not arch.startswith("sm_") or number not in _MULTIPROCESSORS:
        known = ", ".join(f"sm_{name}" for name in _MULTIPROCESSORS)
        msg = f"architecture {arch}: expected one of {known}; add it to ci/static/occupancy.py"
        raise StaticError(msg)
    return _MULTIPROCESSORS[number]


def occupancy(
    arch: str,
    *,
    registers: int,
    shared_bytes: int,
    threads_per_block: int,
    barriers: int = 1,
    max_threads_per_block: int = _MAX_BLOCK_THREADS,
) -> Occupancy:
    """Return how many blocks of a kernel are resident on one multiprocessor.

    Args:
        arch: Architecture, such as ``sm_90``.
        registers: Per thread, at least 1.
        shared_bytes: Per block, static and dynamic, without what the system reserves.
        threads_per_block: At least 1.
        barriers: Named barriers per block.
        max_threads_per_block: The kernel's launch bound.

    Raises:
        StaticError: The architecture is unknown.

    Source: NVIDIA's ``cuda_occupancy.h``, with which every result agrees (``tests/static``).
    """
    whole = multiprocessor(arch)
    warps = _divide_up(threads_per_block, _WARP_THREADS)
    whole_warps = whole.threads // _WARP_THREADS
    warp_registers = _round_up(registers * _WARP_THREADS, _REGISTER_UNIT)
    fits = threads_per_block <= min(max_threads_per_block, _MAX_BLOCK_THREADS)
    limits = {
        "threads": whole_warps // warps if fits else 0,
        "blocks": whole.blocks,
        "registers": _PARTITION_REGISTERS // warp_registers * _PARTITIONS // warps,
    }
    shared = _round_up(shared_bytes + whole.reserved_shared_bytes, whole.shared_unit_bytes)
    if shared > whole.block_shared_bytes + whole.reserved_shared_bytes:
        limits["shared memory"] = 0
    elif shared:
        limits["shared memory"] = whole.shared_bytes // shared
    if barriers and whole.barriers is not None:
        limits["barriers"] = whole.barriers // barriers
    blocks = min(limits.values())
    return Occupancy(
        resident_blocks=blocks,
        fraction=blocks * warps / whole_warps,
        limited_by=tuple(name for name, limit in limits.items() if limit == blocks),
    )


def _divide_up(value: int, unit: int) -> int:
    """Return how many units hold ``value``."""
    return -(-value // unit)


def _round_up(value: int, unit: int) -> int:
    """Return the smallest multiple of ``unit`` that is not below ``value``."""
    return _divide_up(value, unit) * unit
