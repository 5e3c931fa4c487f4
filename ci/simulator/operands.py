"""Operands of PTX instructions: their syntax, and the scopes of their names."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from ci.simulator.errors import PtxError
from ci.simulator.ptx import (
    Address,
    Immediate,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)

TYPE_BYTES = {
    **{f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)},
    "f16": 2,
    "f16x2": 4,
    "bf16": 2,
    "bf16x2": 4,
    "f32": 4,
    "f64": 8,
    "pred": 1,
    "b128": 16,
}
"""Size of every type a variable or register may have."""

PARAM = "param"
"""Begins the type of a register that is a variable in ``.param`` space; its bytes follow."""

REGISTERS_MAX = 1 << 20
"""More registers than any kernel has: a declaration above this is not PTX but noise."""

WARP_THREADS = 32
"""What PTX calls ``WARP_SZ``."""

NAME = r"[A-Za-z_$%][\w$]*"
_OFFSET_MAX = 1 << 40
"""Farther than any offset of real code, and near enough for 64-bit address arithmetic."""
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]{1,99}|0[bB][01]{1,99}|\d{1,99})U?$", re.ASCII)
_BITS = re.compile(r"0([fFdD])([0-9a-fA-F]+)$")
_DECIMAL = re.compile(r"-?\d+\.\d*(?:[eE][+-]?\d+)?$")
_SPECIAL = re.compile(
    r"%(?:(?:n?tid|n?ctaid|clusterid|nclusterid|cluster_n?ctaid)(?:\.[xyzw])|n?warpid|laneid|n?smid"
    r"|gridid|lanemask_(?:eq|lt|le|gt|ge)|clock(?:_hi|64)?|globaltimer(?:_lo|_hi)?"
    r"|dynamic_smem_size|total_smem_size|is_explicit_cluster|cluster_n?ctarank|pm\d+|envreg\d+)$"
)
_ADDRESS = re.compile(rf"({NAME})\s*(?:\+\s*(-?\w+))?$")
_RANGE = re.compile(rf"({NAME})\s*<\s*(\d{{1,99}})\s*>$", re.ASCII)
_NUMBERED = re.compile(r"(.*?)(\d{1,99})$", re.ASCII)
_PARTS = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|[^,{}\[\]]+")


def integer(text: str) -> int:
    """Return the value of an integer literal.

    Raises:
        PtxError: It is none.
    """
    if not _INTEGER.match(text):
        msg = f"expected an integer, got {text!r}"
        raise PtxError(msg)
    digits = text.rstrip("U")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("-")
    try:
        # PTX writes octal with a bare leading zero, as C does.
        octal = len(digits) > 1 and digits.isdigit() and digits.startswith("0")
        return sign * int(digits, 8 if octal else 0)
    except ValueError as error:
        msg = f"expected an integer, got {text!r}"
        raise PtxError(msg) from error


@dataclass(kw_only=True, slots=True)
class Scope:
    """The registers of one pair of braces; looks outwards for the rest."""

    outer: Scope | None
    suffix: str
    """Makes names of this scope unique in the kernel; empty in the outermost one."""
    named: dict[str, Register] = field(default_factory=dict)
    numbered: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Prefix of ``%r<32>`` → (32, type)."""

    def declare(self, declared: str, kind: str) -> None:
        """Add the registers of one item of a ``.reg`` list.

        Raises:
            PtxError: Not a name, an unknown type, or too many registers.
        """
        if kind not in TYPE_BYTES:
            msg = f"unknown register type .{kind}"
            raise PtxError(msg)
        numbered = _RANGE.match(declared)
        if numbered:
            count = int(numbered[2])
            if count > REGISTERS_MAX:
                msg = f"{declared}: more than {REGISTERS_MAX} registers"
                raise PtxError(msg)
            self.numbered[numbered[1]] = (count, kind)
        elif re.fullmatch(NAME, declared):
            self.named[declared] = Register(name=declared + self.suffix, type=kind)
        else:
            msg = f"expected a register name, got {declared!r}"
            raise PtxError(msg)

    def declare_param(self, name: str, size_bytes: int) -> Register:
        """Add a variable in a function's ``.param`` space, which behaves as a register."""
        register = Register(name=name + self.suffix, type=f"{PARAM}{size_bytes}")
        self.named[name] = register
        return register

    def register(self, name: str) -> Register | None:
        """Return the register that ``name`` means here; None if it is not one."""
        found = self.named.get(name)
        if found is not None:
            return found
        split = _NUMBERED.match(name)
        if split and split[1] in self.numbered:
            count, kind = self.numbered[split[1]]
            if int(split[2]) < count:
                found = Register(name=name + self.suffix, type=kind)
        if found is None and self.outer is not None:
            found = self.outer.register(name)
        if found is not None:
            self.named[name] = found
        return found


def split_operands(text: str) -> list[str]:
    """Return the operands of an instruction, cut at the commas outside brackets.

    Raises:
        PtxError: Something other than operands and commas is left over.
    """
    parts: list[str] = []
    position = 0
    while position < len(text):
        pieces: list[str] = []
        while position < len(text) and text[position] != ",":
            part = _PARTS.match(text, position)
            if not part:
                msg = f"unbalanced brackets in {text!r}"
                raise PtxError(msg)
            pieces.append(part[0])
            position = part.end()
        position += 1
        parts.append("".join(pieces).strip())
    if text.endswith(",") or "" in parts:
        msg = f"empty operand in {text!r}"
        raise PtxError(msg)
    return parts


def immediate(text: str) -> Immediate | None:
    """Return the literal that ``text`` writes; None if it is none."""
    bits = _BITS.match(text)
    if bits:
        kind, digits = ("f32", 8) if bits[1] in "fF" else ("f64", 16)
        if len(bits[2]) == digits:
            return Immediate(bits=int(bits[2], 16), kind=kind)
    if _INTEGER.match(text):
        return Immediate(bits=integer(text) & (1 << 64) - 1, kind="int")
    if _DECIMAL.match(text):
        (pattern,) = struct.unpack("<Q", struct.pack("<d", float(text)))
        return Immediate(bits=pattern, kind="f64")
    return None


def operand(text: str, scope: Scope, symbols: Mapping[str, str]) -> Operand:
    """Return the operand that ``text`` means in ``scope``.

    Args:
        text: One operand, without blanks around it.
        scope: Where registers are looked up.
        symbols: Variables, parameters and functions in sight → names unique in the module.

    Raises:
        PtxError: It means nothing.
    """
    register = scope.register(text)
    if register is not None:
        return register
    return _composite(text, scope, symbols) or immediate(text) or _named(text, symbols)


def _composite(text: str, scope: Scope, symbols: Mapping[str, str]) -> Operand | None:
    """Return the operand if it is made of others, else None."""
    if text.startswith("{") and text.endswith("}"):
        items = split_operands(text[1:-1].strip())
        return Vector(items=tuple(operand(item, scope, symbols) for item in items))
    if text.startswith("[") and text.endswith("]"):
        return _address(text[1:-1].strip(), scope, symbols)
    if "|" in text:
        first, second = (operand(o.strip(), scope, symbols) for o in text.split("|", 1))
        return Pair(first=first, second=second)
    negated = scope.register(text[1:].strip()) if text.startswith("!") else None
    return Negated(register=negated) if negated is not None else None


def _named(text: str, symbols: Mapping[str, str]) -> Operand:
    if text == "_":
        return Sink()
    if text == "WARP_SZ":
        return Immediate(bits=WARP_THREADS, kind="int")
    return Special(name=text) if _SPECIAL.match(text) else _symbol(text, symbols)


def _symbol(text: str, symbols: Mapping[str, str]) -> Symbol:
    split = _ADDRESS.match(text)
    if split and split[1] in symbols:
        return Symbol(name=symbols[split[1]], offset=_offset(split[2]))
    msg = f"unknown name {text!r}"
    raise PtxError(msg)


def _offset(text: str | None) -> int:
    offset = integer(text) if text else 0
    if abs(offset) > _OFFSET_MAX:
        msg = f"expected an offset of at most {_OFFSET_MAX} bytes, got {offset}"
        raise PtxError(msg)
    return offset


def _address(text: str, scope: Scope, symbols: Mapping[str, str]) -> Address:
    split = _ADDRESS.match(text)
    if not split:
        return Address(base=Immediate(bits=integer(text) & (1 << 64) - 1, kind="int"), offset=0)
    offset = _offset(split[2])
    register = scope.register(split[1])
    if register is not None:
        return Address(base=register, offset=offset)
    return Address(base=_symbol(split[1], symbols), offset=offset)
