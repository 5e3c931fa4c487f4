"""Count a cubin's machine instructions with NVIDIA's disassembler."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from ci.static.errors import StaticError

Disassembly = Mapping[str, Mapping[str, int]]
"""Kernel symbol → opcode → static count. An opcode keeps its access width, as in ``LDS.128``,
and loses every other modifier."""

_COUNTING_RULE = 1
"""Part of the name of a cached file; raise it when opcodes are counted differently."""
_WIDTHS = ("64", "128", "256")
"""Modifiers that an opcode keeps: bits moved by one thread, 32 where there is none."""
_MAY_BE_LOCAL = {"LDL", "STL", "LD", "ST", "CALL"}
"""Generic accesses may, and so may what is called."""
_TIME_LIMIT_S = 120


def disassemble(cubin: bytes, cache: Path) -> Disassembly:
    """Return the instruction counts of every kernel in a cubin.

    Args:
        cubin: The file's bytes.
        cache: Folder for results, made if absent; a cubin is disassembled once.

    Raises:
        StaticError: The disassembler is not installed, or refused the cubin.
    """
    digest = hashlib.sha256(cubin).hexdigest()
    cached = cache / f"{digest}.sass{_COUNTING_RULE}.json"
    counts = _read_cached(cached)
    if counts is None:
        counts = _counts(_run(cubin))
        _write_cached(cached, counts)
    return counts


def machine_accesses(
    disassembly: Disassembly,
) -> dict[str, tuple[frozenset[int], frozenset[int], bool]]:
    """Return what each kernel's accesses are like.

    Returns:
        Kernel symbol → widths in bytes (8, 16) that occur in its loads from shared memory and in
        its stores there, and whether anything in it may reach local memory.
    """
    return {
        symbol: (
            _widths(counts, "LDS"),
            _widths(counts, "STS"),
            any(opcode.partition(".")[0] in _MAY_BE_LOCAL for opcode in counts),
        )
        for symbol, counts in disassembly.items()
    }


def nvdisasm_path() -> Path:
    """Return the path of NVIDIA's disassembler: in its wheel, else in the CUDA toolkit on PATH.

    Raises:
        StaticError: It is in neither.
    """
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        program = Path(folder, "cu13", "bin", "nvdisasm")
        if program.is_file():
            return program
    on_path = shutil.which("nvdisasm")
    if on_path:
        return Path(on_path)
    msg = "nvdisasm is not installed; run: python -m pip install 'nvidia-cuda-nvdisasm>=13.2'"
    raise StaticError(msg)


def nvdisasm_version() -> str:
    """Return the disassembler's version as it tells it, such as ``13.5.37``.

    Raises:
        StaticError: It is not installed or does not run.
    """
    program = nvdisasm_path()
    try:
        told = subprocess.run(
            [str(program), "--version"],
            capture_output=True,
            check=True,
            text=True,
            timeout=_TIME_LIMIT_S,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        msg = f"{program} --version did not run: {error}; run it by hand to see why"
        raise StaticError(msg) from error
    match = re.search(r"\bV(\d+(?:\.\d+)+)", told)
    return match[1] if match else "unknown"


def _widths(counts: Mapping[str, int], opcode: str) -> frozenset[int]:
    """Return the widths in bytes above 4 in which ``opcode`` occurs."""
    return frozenset(int(bits) // 8 for bits in _WIDTHS if f"{opcode}.{bits}" in counts)


def _run(cubin: bytes) -> str:
    """Return the disassembler's JSON text."""
    with tempfile.TemporaryDirectory(prefix="flopwatch-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        try:
            done = subprocess.run(
                [str(nvdisasm_path()), "-json", str(path)],
                capture_output=True,
                check=False,
                text=True,
                timeout=_TIME_LIMIT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            msg = f"nvdisasm did not run: {error}; run it by hand to see why"
            raise StaticError(msg) from error
    if done.returncode != 0:
        msg = f"nvdisasm refused a cubin: {done.stderr.strip()}; build it again"
        raise StaticError(msg)
    return done.stdout


def _counts(text: str) -> dict[str, dict[str, int]]:
    """Count opcodes in the disassembler's JSON: a header, then a list of functions."""
    try:
        _, functions = json.loads(text)
        return {each["function-name"]: _count(each["sass-instructions"]) for each in functions}
    except (ValueError, TypeError, KeyError) as error:
        msg = (
            "nvdisasm -json: expected [header, [function, ...]] as version 13.5 writes it, "
            f"got {text[:80]!r} ({error!r}); install nvidia-cuda-nvdisasm==13.5.*"
        )
        raise StaticError(msg) from error


def _count(instructions: Iterable[Mapping[str, str]]) -> dict[str, int]:
    """Return opcode → count, in the opcodes' order."""
    return dict(sorted(Counter(_opcode(each["opcode"]) for each in instructions).items()))


def _opcode(full: str) -> str:
    """Return an opcode with its access width only: ``LDS.U.128`` becomes ``LDS.128``."""
    base, *modifiers = full.split(".")
    return ".".join([base, *(word for word in modifiers if word in _WIDTHS)])


def _read_cached(path: Path) -> dict[str, dict[str, int]] | None:
    """Return the counts in a cached file; None if there is none or it is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if _is_disassembly(found) else None


def _is_disassembly(found: object) -> bool:
    """Return whether a JSON value has the shape of a disassembly."""
    return isinstance(found, dict) and all(
        isinstance(counts, dict) and all(type(count) is int for count in counts.values())
        for counts in found.values()
    )


def _write_cached(path: Path, counts: Disassembly) -> None:
    """Write the file whole or not at all, so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(counts, file, allow_nan=False)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
