"""Read the figures that only the compiler's log gives: register spills."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ci.static.errors import StaticError

_ENTRY = re.compile(r"Compiling entry function '(?P<symbol>[^']+)' for ")
_SPILLS = re.compile(r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads")


@dataclass(frozen=True, kw_only=True, slots=True)
class Spills:
    """Register spills of one kernel and the functions it calls, per thread, loops counted once."""

    store_bytes: int
    load_bytes: int


def read_spills(log: str) -> Mapping[str, Spills]:
    """Return the spills of every kernel that the log of ``--ptxas-options=-v`` reports.

    The log names a kernel by its symbol, then gives one line of spills for it and one for each
    function that it calls and that was not inlined. A kernel without such a line is left out.

    Args:
        log: NVRTC's program log. Prefixes vary with the version and are not looked at.
    """
    found: dict[str, Spills] = {}
    symbol = ""
    for line in log.splitlines():
        if entry := _ENTRY.search(line):
            symbol = entry["symbol"]
        elif symbol and (figures := _SPILLS.search(line)):
            before = found.get(symbol, Spills(store_bytes=0, load_bytes=0))
            found[symbol] = Spills(
                store_bytes=before.store_bytes + int(figures["stores"]),
                load_bytes=before.load_bytes + int(figures["loads"]),
            )
    return found


def spills_of(spills: Mapping[str, Spills], symbol: str) -> Spills:
    """Return the spills of one kernel.

    Raises:
        StaticError: The log says nothing about it, which is not the same as no spills.
    """
    if symbol not in spills:
        msg = (
            f"compiler's log: expected the spills of {symbol}, got those of "
            f"{', '.join(sorted(spills)) or 'no kernel'}; compile with --ptxas-options=-v "
            "and keep the program log"
        )
        raise StaticError(msg)
    return spills[symbol]
