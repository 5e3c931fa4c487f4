"""Put the static figures of a cubin's kernels together, one row an instantiation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ci.results.model import StaticFigures
from ci.static.cubin import CompiledKernel, read_cubin
from ci.static.disassembly import Disassembly
from ci.static.errors import StaticError
from ci.static.occupancy import multiprocessor, occupancy
from ci.static.ptxas_log import Spills, read_spills, spills_of

_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelFacts:
    """What the declaration says about one instantiation."""

    variant: str
    """Layout flags, as in ``A=row,B=column``."""
    expression: str
    """Name expression."""
    symbol: str
    """The kernel's name in the cubin."""
    threads_per_block: int
    dynamic_shared_bytes: int
    """Per block."""


def static_figures(
    cubin: bytes,
    log: str,
    arch: str,
    kernels: Sequence[KernelFacts],
    disassembly: Disassembly,
) -> tuple[StaticFigures, ...]:
    """Return what a cubin tells about kernels, in the order given.

    Args:
        cubin: The file's bytes.
        log: The compiler's log of the same build, made with ``--ptxas-options=-v``.
        arch: Architecture the cubin was built for, such as ``sm_90a``.
        kernels: The instantiations to report.
        disassembly: Instruction counts of the same cubin.

    Raises:
        StaticError: The cubin cannot be read or is of another architecture, or the cubin, the
            log or the disassembly lacks a kernel.
    """
    multiprocessor(arch)
    contents = read_cubin(cubin)
    if arch.rstrip("af") != f"sm_{contents.sm}":
        msg = f"cubin: expected architecture {arch}, got sm_{contents.sm}; build it again"
        raise StaticError(msg)
    spills = read_spills(log)
    return tuple(
        _row(
            arch,
            facts,
            _lookup(contents.kernels, facts, "cubin"),
            spills_of(spills, facts.symbol),
            _lookup(disassembly, facts, "disassembly"),
        )
        for facts in kernels
    )


def _lookup(table: Mapping[str, _Value], facts: KernelFacts, where: str) -> _Value:
    """Return a kernel's entry, or say that it is missing."""
    if facts.symbol not in table:
        msg = (
            f"{where}: expected kernel {facts.expression} as {facts.symbol}, got "
            f"{', '.join(sorted(table)) or 'no kernel'}; build it again with this name expression"
        )
        raise StaticError(msg)
    return table[facts.symbol]


def _row(
    arch: str,
    facts: KernelFacts,
    compiled: CompiledKernel,
    spills: Spills,
    instructions: Mapping[str, int],
) -> StaticFigures:
    """Return the row of one instantiation."""
    full = occupancy(
        arch,
        registers=compiled.registers,
        shared_bytes=compiled.static_shared_bytes + facts.dynamic_shared_bytes,
        threads_per_block=facts.threads_per_block,
        barriers=compiled.barriers,
        max_threads_per_block=compiled.max_threads_per_block,
    )
    return StaticFigures(
        arch=arch,
        variant=facts.variant,
        kernel=facts.expression,
        registers=compiled.registers,
        stack_bytes=compiled.stack_bytes,
        spill_store_bytes=spills.store_bytes,
        spill_load_bytes=spills.load_bytes,
        static_shared_bytes=compiled.static_shared_bytes,
        dynamic_shared_bytes=facts.dynamic_shared_bytes,
        threads_per_block=facts.threads_per_block,
        resident_blocks=full.resident_blocks,
        occupancy=full.fraction,
        limited_by=full.limited_by,
        code_bytes=compiled.code_bytes,
        instructions=instructions,
    )
