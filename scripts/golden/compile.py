"""Machine code of many forms at once, without those that the assembler refuses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernels.errors import CompileError
from kernels.nvrtc import compile_text
from scripts.golden.kernels import cuda_kernel
from scripts.golden.model import Form, InputSet

_OPTIONS = ("--std=c++17",)
_REFUSAL = re.compile(r"line (\d+); (?:error|fatal)\s*: (.*)")

Work = tuple[int, Form, InputSet]
"""A form with its number, which names its kernel, and its input set."""
Machine = tuple[bytes, list[int], list[tuple[int, str]]]
"""Cubin, numbers of the forms in it, and (number, reason) of the refused ones."""


def symbol(number: int) -> str:
    """Return the name of the kernel of a form."""
    return f"form_{number}"


def compile_forms(work: Sequence[Work], architecture: str) -> Machine:
    """Compile forms into one cubin; ones that the assembler refuses are left out.

    Args:
        work: The forms.
        architecture: ``sm_90`` or another.
    """
    refused: dict[int, str] = {}
    while True:
        kept = [each for each in work if each[0] not in refused]
        text = "".join(cuda_kernel(form, given, symbol(n)) for n, form, given in kept)
        if not kept:
            return b"", [], sorted(refused.items())
        try:
            built = compile_text(
                text, "golden.cu", arch=architecture, options=_OPTIONS, expressions=()
            )
            return built.data, [n for n, _, _ in kept], sorted(refused.items())
        except CompileError as error:
            found = _refusals(text, architecture, error.log)
            if not found:
                raise
            refused |= found


def _refusals(text: str, architecture: str, log: str) -> dict[int, str]:
    """Return number and first complaint of each kernel that the assembler's log speaks of."""
    virtual = architecture.replace("sm_", "compute_")
    ptx = compile_text(text, "golden.cu", arch=virtual, options=_OPTIONS, expressions=())
    owners: list[int] = []
    current = -1
    for line in ptx.data.decode().splitlines():
        entry = re.search(r"\.entry form_(\d+)\(", line)
        current = int(entry[1]) if entry else current
        owners.append(current)
    found: dict[int, str] = {}
    for line_number, complaint in _REFUSAL.findall(log):
        found.setdefault(owners[int(line_number) - 1], complaint.strip())
    return found
