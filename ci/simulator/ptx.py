"""The model of PTX text: modules, kernels, instructions and their operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ci.simulator.report import Place


@dataclass(frozen=True, kw_only=True, slots=True)
class Register:
    """A declared register."""

    name: str
    """Unique in its kernel: a name declared again in an inner scope gets a suffix."""
    type: str
    """Declared type without the dot: ``pred``, ``b32``, ``f32`` …; of a variable in a function's
    ``.param`` space, which only calls and whole accesses touch, ``param`` and its bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Special:
    """A special register, such as ``%tid.x``."""

    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Immediate:
    """A literal."""

    bits: int
    """Bit pattern: 64 bits of two's complement for integers, else as ``kind`` says."""
    kind: str
    """``int``, ``f32`` (``0f`` and 8 digits) or ``f64`` (``0d`` and 16 digits, or a decimal)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Symbol:
    """A variable or parameter by name; its value is its address."""

    name: str
    offset: int = 0
    """Bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A label that a branch names."""

    pc: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """A memory operand, ``[base+offset]``."""

    base: Register | Symbol | Immediate
    """A Symbol base carries no offset of its own."""
    offset: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Vector:
    """Operands in braces."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two results of one instruction, ``d|p``."""

    first: Operand
    second: Operand


@dataclass(frozen=True, kw_only=True, slots=True)
class Negated:
    """A predicate operand read inverted, ``!p``."""

    register: Register


@dataclass(frozen=True, kw_only=True, slots=True)
class Sink:
    """The bit bucket ``_``."""


Operand = (
    Register | Special | Immediate | Symbol | Target | Address | Vector | Pair | Negated | Sink
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Guard:
    """The predicate in front of an instruction, ``@p`` or ``@!p``."""

    register: Register
    negated: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Instruction:
    """One instruction."""

    pc: int
    """Index in its kernel."""
    opcode: str
    """First dotted part: ``ld``, ``fma``, ``cp``."""
    modifiers: tuple[str, ...]
    """The other parts; ``shared::cta`` is written ``shared``."""
    operands: tuple[Operand, ...]
    guard: Guard | None
    text: str
    """As in the PTX, blanks folded."""
    place: Place
    leader: bool
    """True at the first instruction, at a branch target and behind a branch or exit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """An initial value that is the address of a variable or function."""

    offset: int
    """In the variable, bytes."""
    symbol: str
    addend: int
    """Bytes."""
    width_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Variable:
    """A variable in shared, local, constant or global memory."""

    name: str
    space: str
    """``shared``, ``local``, ``const`` or ``global``."""
    size_bytes: int
    align_bytes: int
    initial: bytes
    """Initial bytes; empty: zeros (undefined in shared and local memory)."""
    links: tuple[Link, ...]
    """Which of them are addresses."""
    dynamic: bool
    """True for ``extern .shared`` without a size: the launch gives it one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A kernel parameter."""

    name: str
    size_bytes: int
    offset: int
    """In the parameter block, bytes."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Routine:
    """The body of an ``.entry`` or ``.func``, with program counters of its own."""

    name: str
    parameters: tuple[Parameter, ...]
    """Of an entry."""
    formals: tuple[Register, ...]
    """Parameters of a function."""
    returns: tuple[Register, ...]
    """Return parameters of a function."""
    instructions: tuple[Instruction, ...]
    own: tuple[Variable, ...]
    """Variables declared inside."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Function:
    """A device function as part of a kernel."""

    name: str
    start: int
    """Program counters of its first instruction …"""
    end: int
    """… and behind its last one."""
    formals: tuple[Register, ...]
    returns: tuple[Register, ...]
    local: tuple[Variable, ...]
    """Variables of which every call has its own."""
    address: int
    """What a pointer to it holds."""


@dataclass(kw_only=True, slots=True, eq=False)
class State:
    """The variables of a loaded module, from launch to launch."""

    contents: dict[str, bytes] = field(default_factory=dict)
    """Variable → what was written to it; the others hold their initial values."""
    numbers: dict[str, int] = field(default_factory=dict)
    """Variable → its number, which fixes its address."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Kernel:
    """An ``.entry``, the functions it can reach and the variables they name."""

    name: str
    parameters: tuple[Parameter, ...]
    instructions: tuple[Instruction, ...]
    """Its own, then those of the functions."""
    shared: tuple[Variable, ...]
    """Static variables in layout order, then the dynamic ones."""
    local: tuple[Variable, ...]
    variables: Mapping[str, Variable]
    """Module variables in constant and global memory."""
    functions: Mapping[str, Function]
    state: State


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Module:
    """A PTX text, loaded: its variables keep their values from launch to launch."""

    kernels: Mapping[str, Kernel]
    """Kernel symbol → kernel."""
