"""Executes the few sm_80 instructions that NVRTC makes of a wmma load or store.

Just enough to read a layout off the compiler's output on a machine without a GPU. What it does
not know it refuses.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ci.static.disassembly import nvdisasm_path

WARP = 32
_FIRST_PARAMETER = 0x160
_MEMORY, _REGISTERS = 0x10000, 0x80000
"""Addresses of the two arguments."""
_ADDRESS = re.compile(r"\[(R\d+)(?:\.64)?(?:\+(-?0x[0-9a-f]+))?\]$")
_CONSTANT = re.compile(r"c\[0x0\]\[(0x[0-9a-f]+)\]$")
_PREDICATE = re.compile(r"!?U?P[0-9T]+$")
_IGNORED = {"ULDC.64", "NOP", "BRA"}

Lanes = NDArray[np.int64]


class UnknownInstructionError(Exception):
    """The code holds an instruction that is not modelled."""


def disassembled(cubin: bytes) -> dict[str, list[str]]:
    """Return the instructions of every kernel of a cubin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(nvdisasm_path()), "-c", str(Path(file.name))]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    kernels: dict[str, list[str]] = {}
    code: list[str] = []
    for line in text.splitlines():
        begins = re.match(r"\.text\.(\w+):", line)
        if begins:
            code = kernels.setdefault(begins[1], [])
        plain = re.sub(r"/\*.*?\*/", "", line).strip().rstrip("; ")
        if plain and plain[0].isupper():
            code.append(plain)
    return kernels


class Warp:
    """One warp of one kernel, with its memory."""

    def __init__(self, memory: NDArray[np.uint8], registers: NDArray[np.uint8]) -> None:
        """Take the two arguments of the kernel."""
        self._bytes = np.zeros(1 << 20, np.uint8)
        self._arguments = {_MEMORY: memory, _REGISTERS: registers}
        for address, content in self._arguments.items():
            self._bytes[address : address + content.size] = content
        self._values: dict[str, Lanes] = {}
        self.accesses: list[tuple[int, Lanes]] = []
        """Bytes a lane and addresses of every access to the matrix."""

    def run(self, code: list[str]) -> None:
        """Execute a kernel up to its exit.

        Raises:
            UnknownInstructionError: It holds an instruction that is not modelled.
        """
        for line in code:
            opcode, _, rest = line.partition(" ")
            if opcode == "EXIT":
                break
            if opcode not in _IGNORED:
                words = [word.strip().replace(".reuse", "") for word in rest.split(",")]
                self._execute(opcode, [word for word in words if not _PREDICATE.match(word)])
        for address, content in self._arguments.items():
            content[:] = self._bytes[address : address + content.size]

    def _execute(self, opcode: str, words: list[str]) -> None:
        root = opcode.split(".", maxsplit=1)[0]
        if root in ("LDG", "LD", "STG", "ST"):
            self._access(opcode, *words)
            return
        target, sources = words[0], words[1:]
        if root == "S2R":
            value = np.arange(WARP)
        elif root == "HFMA2":
            high, low = (int(np.float16(float(word)).view(np.uint16)) for word in sources[-2:])
            value = np.full(WARP, high << 16 | low)
        elif root == "MOVM":
            value = _transposed(self._get(sources[0]))
        else:
            value = self._arithmetic(opcode, [self._get(source) for source in sources])
        self._values[target] = value & 0xFFFFFFFF
        if opcode.startswith("IMAD.WIDE"):
            self._values[f"R{int(target[1:]) + 1}"] = np.zeros(WARP, np.int64)

    def _arithmetic(self, opcode: str, x: list[Lanes]) -> Lanes:
        result = np.zeros(WARP, np.int64)
        match opcode.split("."):
            case [*_, "X"]:
                # Addresses here are small: their upper halves are zero.
                pass
            case ["MOV" | "ULDC" | "UMOV", *_] | ["IMAD", "MOV", *_]:
                result = x[-1]
            case ["IMAD", *_]:
                result = x[0] * x[1] + x[2]
            case ["IADD3"]:
                result = x[0] + x[1] + x[2]
            case ["SHF" | "USHF", "R", *_]:
                result = x[2] >> x[1]
            case ["SHF", "L", *_]:
                result = x[0] << x[1]
            case ["LEA"]:
                result = (x[0] << x[2]) + x[1]
            case ["LOP3", "LUT"]:
                result = _looked_up(x[0], x[1], x[2], int(x[3][0]))
            case ["PRMT"]:
                result = _permuted(x[0] | x[2] << 32, int(x[1][0]))
            case _:
                raise UnknownInstructionError(opcode)
        return result

    def _get(self, word: str) -> Lanes:
        sign, word = (-1, word[1:]) if word.startswith("-") else (1, word)
        constant = _CONSTANT.match(word)
        if word in ("RZ", "URZ"):
            return np.zeros(WARP, np.int64)
        if constant:
            offset = int(constant[1], 16) - _FIRST_PARAMETER
            return np.full(WARP, {0: _MEMORY, 8: _REGISTERS}.get(offset, 0))
        if word.startswith("0x"):
            return np.full(WARP, sign * int(word, 16))
        return sign * self._values.get(word, np.zeros(WARP, np.int64))

    def _access(self, opcode: str, first: str, second: str) -> None:
        loads = opcode.startswith("L")
        text, register = (second, first) if loads else (first, second)
        found = _ADDRESS.match(text)
        if not found:
            raise UnknownInstructionError(f"{opcode} {first}, {second}")
        address = self._get(found[1]) + int(found[2] or "0", 16)
        width = {"U8": 1, "64": 8, "128": 16}.get(opcode.rsplit(".", maxsplit=1)[-1], 4)
        if address.max() < _REGISTERS:
            self.accesses.append((width, address))
        for number in range(max(1, width // 4)):
            name = f"R{int(register[1:]) + number}" if register != "RZ" else register
            byte = np.arange(min(width, 4))
            where = (address + 4 * number)[:, None] + byte
            if loads:
                self._values[name] = (self._bytes[where].astype(np.int64) << 8 * byte).sum(axis=1)
            else:
                self._bytes[where] = self._get(name)[:, None] >> 8 * byte & 0xFF


def _looked_up(a: Lanes, b: Lanes, c: Lanes, table: int) -> Lanes:
    result = np.zeros(WARP, np.int64)
    for row in range(8):
        if table >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


def _permuted(pair: Lanes, selector: int) -> Lanes:
    picked = [(pair >> 8 * (selector >> 4 * n & 7) & 0xFF) << 8 * n for n in range(4)]
    return picked[0] | picked[1] | picked[2] | picked[3]


def _transposed(words: Lanes) -> Lanes:
    """Return an 8 x 8 matrix of 16-bit elements, two a lane, transposed."""
    matrix = words.astype(np.uint32).view(np.uint16).reshape(8, 8)
    return np.ascontiguousarray(matrix.T).reshape(-1).view(np.uint32).astype(np.int64)
