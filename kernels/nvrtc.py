"""How NVRTC is called: one text in, PTX or a cubin out, with no driver and no GPU."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from kernels.errors import CompileError, ToolError

_WHEELS = ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-crt")
_ERROR = re.compile(
    r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<text>.+)$", re.MULTILINE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiled:
    """What NVRTC made of one text."""

    data: bytes
    """PTX as text for ``compute_NN``, a cubin for ``sm_NN``."""
    log: str
    """The compiler's log; for a cubin with ``--ptxas-options=-v`` it has resources and spills."""
    symbols: tuple[str, ...]
    """The mangled name of each name expression, in order."""


@cache
def toolchain() -> str:
    """Return the compiler and header wheels with their versions, in one line.

    Raises:
        ToolError: A wheel is not installed.
    """
    try:
        return " ".join(f"{wheel}=={importlib.metadata.version(wheel)}" for wheel in _WHEELS)
    except importlib.metadata.PackageNotFoundError as error:
        msg = f"the wheel {error.name} is not installed, expected all of {', '.join(_WHEELS)}"
        raise ToolError(f"{msg} (pip install {error.name}==13.0.*)") from error


def compile_text(
    text: str, name: str, *, arch: str, options: Sequence[str], expressions: Sequence[str]
) -> Compiled:
    """Compile one text for one architecture.

    NVRTC serialises its work inside a process: use processes, not threads, for parallelism.

    Args:
        text: CUDA C++ source, includes in angle brackets only.
        name: What the compiler calls the text until its first ``#line``.
        arch: ``compute_NN`` for PTX, ``sm_NN`` for a cubin.
        options: Further compiler options.
        expressions: Name expressions to instantiate, such as ``sgemm_naive<true, false>``.

    Raises:
        CompileError: The compiler refused the text; carries its log and the first error's place.
        ToolError: A wheel is not installed.
    """
    nvrtc = _binding()
    # Beside a driver NVRTC keeps cubins of its own, and answers from them without a log.
    flags = [f"--gpu-architecture={arch}", "--no-cache", *options, f"-I{_include_folder()}"]
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], [])
    _expect(nvrtc, status, "nvrtcCreateProgram")
    try:
        for expression in expressions:
            (status,) = nvrtc.nvrtcAddNameExpression(program, expression.encode())
            _expect(nvrtc, status, f"nvrtcAddNameExpression {expression}")
        (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [f.encode() for f in flags])
        log = _fetch(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise _refusal(name, arch, log or str(status))
        is_ptx = arch.startswith("compute_")
        data = _fetch(nvrtc, program, "PTX" if is_ptx else "CUBIN")
        return Compiled(
            data=_without_working_folder(data.rstrip(b"\0")) if is_ptx else data,
            log=log,
            symbols=tuple(_lowered(nvrtc, program, expression) for expression in expressions),
        )
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _binding() -> ModuleType:
    """Return the NVRTC binding; imported late so that declaring needs no compiler."""
    try:
        return importlib.import_module("cuda.bindings.nvrtc")
    except ImportError as error:
        msg = f"cuda.bindings.nvrtc cannot be imported: {error} (pip install 'cuda-bindings>=13')"
        raise ToolError(msg) from error


@cache
def _include_folder() -> Path:
    """Return the folder of CUDA headers that the wheels bring."""
    toolchain()
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(root) / "cu13" / "include"
        if folder.is_dir():
            return folder
    msg = "no nvidia/cu13/include folder in this environment"
    raise ToolError(f"{msg} (pip install --force-reinstall nvidia-cuda-runtime==13.0.*)")


def _expect(nvrtc: ModuleType, status: object, call: str) -> None:
    """Raise if a call that cannot fail on valid input failed."""
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        msg = f"{call} failed: {status} (is the nvidia-cuda-nvrtc wheel intact?)"
        raise ToolError(msg)


def _fetch(nvrtc: ModuleType, program: object, what: str) -> bytes:
    """Return one of the program's outputs."""
    status, size = getattr(nvrtc, f"nvrtcGet{what}Size")(program)
    _expect(nvrtc, status, f"nvrtcGet{what}Size")
    # NVRTC writes into it. Python keeps one object for all bytes of length 1, so that an empty log
    # would change every such byte in the process: never pass fewer than two.
    data = bytes(int(size) + 1)
    (status,) = getattr(nvrtc, f"nvrtcGet{what}")(program, data)
    _expect(nvrtc, status, f"nvrtcGet{what}")
    return data[: int(size)]


def _without_working_folder(ptx: bytes) -> bytes:
    """Return PTX that names files as ``#line`` did; NVRTC prefixes the folder it ran in."""
    prefix = f'"{Path.cwd()}'.rstrip("/") + "/"
    return re.sub(rb"(?m)^(\s*\.file\s+\d+ )" + re.escape(prefix.encode()), rb'\1"', ptx)


def _lowered(nvrtc: ModuleType, program: object, expression: str) -> str:
    """Return the mangled name of a name expression."""
    status, symbol = nvrtc.nvrtcGetLoweredName(program, expression.encode())
    _expect(nvrtc, status, f"nvrtcGetLoweredName {expression}")
    return str(symbol.decode())


def _refusal(name: str, arch: str, log: str) -> CompileError:
    """Return the error for a text the compiler refused."""
    errors = list(_ERROR.finditer(log))
    if not errors:
        msg = f"{name}: does not compile for {arch}: {log.strip()} (correct the source)"
        return CompileError(msg, log=log)
    first = errors[0]
    more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
    place = f"{first['file']}:{first['line']}"
    msg = f"{name}: does not compile for {arch}: {place}: {first['text']}{more}"
    hint = f"correct the source, or leave {arch} out of the stage's architectures"
    return CompileError(f"{msg} ({hint})", log=log, file=first["file"], line=int(first["line"]))
