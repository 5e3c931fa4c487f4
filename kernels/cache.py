"""How compiled texts are kept: a folder of results, each named by everything it depends on."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kernels.nvrtc import Compiled, compile_text, toolchain


def compile_cached(
    folder: Path,
    text: str,
    name: str,
    *,
    arch: str,
    options: Sequence[str],
    expressions: Sequence[str],
) -> Compiled:
    """Return what ``compile_text`` returns, from the cache folder if it is there.

    The key holds compiler and headers, architecture, options, text and name expressions; the
    text already holds every local include. A damaged entry is rebuilt. Only successes are kept.

    Args:
        folder: Cache folder, made if missing; processes may share it.
        text: As for ``compile_text``, like the rest.
        name: What the compiler calls the text until its first ``#line``.
        arch: ``compute_NN`` for PTX, ``sm_NN`` for a cubin.
        options: Further compiler options.
        expressions: Name expressions to instantiate.

    Raises:
        CompileError: The compiler refused the text.
        ToolError: A wheel is not installed.
    """
    key = _digest(json.dumps([toolchain(), arch, name, *options, text, *expressions]).encode())
    stem = folder / key[:2] / key
    compiled = _read(stem)
    if compiled is None:
        compiled = compile_text(text, name, arch=arch, options=options, expressions=expressions)
        _write(stem, compiled)
    return compiled


def _digest(data: bytes) -> str:
    """Return the sha256 of some bytes (hexadecimal)."""
    return hashlib.sha256(data).hexdigest()


def _read(stem: Path) -> Compiled | None:
    """Return a stored result, or None if it is missing or damaged."""
    try:
        data = stem.with_suffix(".bin").read_bytes()
        about = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
        if about["sha256"] != _digest(data):
            return None
        return Compiled(data=data, log=str(about["log"]), symbols=tuple(map(str, about["symbols"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(stem: Path, compiled: Compiled) -> None:
    """Store a result; a reader sees each file whole or not at all, and checks the digest."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "sha256": _digest(compiled.data),
        "log": compiled.log,
        "symbols": list(compiled.symbols),
    }
    _replace(stem.with_suffix(".bin"), compiled.data)
    _replace(stem.with_suffix(".json"), json.dumps(about, indent=1, allow_nan=False).encode())


def _replace(path: Path, data: bytes) -> None:
    """Put a file in place in one step."""
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
