"""Random kernels: their statements, as CUDA C++ and as NumPy computes them."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from scripts.fuzz.operations import F4, FLOATING, U4, UNSIGNED, Operation, Values

THREADS = 64
"""Of a block."""
BLOCKS = 3
BINS = 16
_WARP = 32
_EDGES, _SPECIAL = 0.3, 0.2
"""Share of inputs that are easy to get wrong."""
_VARIABLES = 4
"""Unsigned ones, and as many floats."""

State = dict[str, Values]
"""Variable → (blocks * threads,) value; ``bins`` and ``peaks`` → (16,)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assign:
    """``target = operation(operands)``."""

    target: str
    operation: Operation
    operands: tuple[str, ...]

    def text(self) -> str:
        """Return it in C++."""
        return f"{self.target} = {self.operation.text.format(*self.operands)};"

    def apply(self, state: State, active: Values) -> None:
        """Change the state where threads are active."""
        value = self.operation.compute(*(state[name] for name in self.operands))
        state[self.target] = np.where(active, value, state[self.target])


@dataclass(frozen=True, kw_only=True, slots=True)
class Branch:
    """``if (test & 1)`` with a few assignments on each side."""

    test: str
    then: tuple[Assign, ...]
    otherwise: tuple[Assign, ...]

    def text(self) -> str:
        """Return it in C++."""
        then, otherwise = (" ".join(s.text() for s in side) for side in (self.then, self.otherwise))
        return f"if ({self.test} & 1u) {{ {then} }} else {{ {otherwise} }}"

    def apply(self, state: State, active: Values) -> None:
        """Change the state where threads are active."""
        taken = (state[self.test] & 1).astype(np.bool_)
        for statement in self.then:
            statement.apply(state, active & taken)
        for statement in self.otherwise:
            statement.apply(state, active & ~taken)


@dataclass(frozen=True, kw_only=True, slots=True)
class Loop:
    """Assignments, as often as three bits of a variable say."""

    count: str
    body: tuple[Assign, ...]

    def text(self) -> str:
        """Return it in C++."""
        body = " ".join(statement.text() for statement in self.body)
        return f"for (unsigned i = 0, n = {self.count} & 7u; i < n; ++i) {{ {body} }}"

    def apply(self, state: State, active: Values) -> None:
        """Change the state where threads are active."""
        turns = state[self.count] & 7
        for turn in range(7):
            for statement in self.body:
                statement.apply(state, active & (turns > turn))


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """A value of another thread of the block, through shared memory."""

    target: str
    source: str
    stride: int
    offset: int

    def text(self) -> str:
        """Return it in C++."""
        slot = "slots" if self.source[0] == "u" else "reals"
        where = f"(threadIdx.x * {self.stride}u + {self.offset}u) % {THREADS}u"
        return (
            f"{slot}[threadIdx.x] = {self.source}; __syncthreads(); "
            f"{self.target} = {slot}[{where}]; __syncthreads();"
        )

    def apply(self, state: State, active: Values) -> None:
        """Change the state; all threads are active."""
        del active
        thread = np.arange(THREADS) * self.stride + self.offset
        rows = state[self.source].reshape(-1, THREADS)
        state[self.target] = rows[:, thread % THREADS].reshape(-1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shuffle:
    """A value of another lane."""

    target: str
    source: str
    mode: str
    distance: int
    width: int

    def text(self) -> str:
        """Return it in C++."""
        suffix = {"idx": ""}.get(self.mode, f"_{self.mode}")
        call = f"__shfl{suffix}_sync(0xffffffffu, {self.source}, {self.distance}, {self.width})"
        return f"{self.target} = {call};"

    def apply(self, state: State, active: Values) -> None:
        """Change the state; all threads are active."""
        del active
        lane = np.arange(_WARP)
        first = lane // self.width * self.width
        source = {
            "up": lane - self.distance,
            "down": lane + self.distance,
            "xor": lane ^ self.distance,
            "idx": first + self.distance % self.width,
        }[self.mode]
        low = np.zeros_like(first) if self.mode == "xor" else first
        source = np.where((source >= low) & (source < first + self.width), source, lane)
        state[self.target] = state[self.source].reshape(-1, _WARP)[:, source].reshape(-1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ballot:
    """Which lanes have a bit set."""

    target: str
    source: str

    def text(self) -> str:
        """Return it in C++."""
        return f"{self.target} = __ballot_sync(0xffffffffu, {self.source} & 2u);"

    def apply(self, state: State, active: Values) -> None:
        """Change the state; all threads are active."""
        del active
        set_ = (state[self.source].reshape(-1, _WARP) >> 1 & 1).astype(np.uint64)
        words = (set_ << np.arange(_WARP, dtype=np.uint64)).sum(axis=1)
        state[self.target] = np.repeat(words, _WARP).astype(U4)


@dataclass(frozen=True, kw_only=True, slots=True)
class Atomic:
    """A global counter that many threads change."""

    name: str
    """``bins`` adds, ``peaks`` takes the largest."""
    index: str
    value: str

    def text(self) -> str:
        """Return it in C++."""
        call = {"bins": "atomicAdd", "peaks": "atomicMax"}[self.name]
        return f"{call}(&{self.name}[{self.index} % {BINS}u], {self.value});"

    def apply(self, state: State, active: Values) -> None:
        """Change the state; all threads are active."""
        del active
        change = {"bins": np.add, "peaks": np.maximum}[self.name]
        change.at(state[self.name], state[self.index] % BINS, state[self.value])


Statement = Assign | Branch | Loop | Exchange | Shuffle | Ballot | Atomic
Program = tuple[Statement, ...]


def generate(seed: int) -> Program:
    """Return the random program of a seed."""
    rng = random.Random(seed)  # noqa: S311
    return tuple(_statement(rng) for _ in range(rng.randint(3, 14)))


def _name(rng: random.Random, letter: str) -> str:
    return f"{letter}{rng.randrange(_VARIABLES)}"


def _assign(rng: random.Random) -> Assign:
    letter = rng.choice("uuf")
    operation = rng.choice(UNSIGNED if letter == "u" else FLOATING)
    return Assign(
        target=_name(rng, letter),
        operation=operation,
        operands=tuple(_name(rng, kind) for kind in operation.takes),
    )


def _assigns(rng: random.Random, least: int) -> tuple[Assign, ...]:
    return tuple(_assign(rng) for _ in range(rng.randint(least, 3)))


def _branch(rng: random.Random) -> Branch:
    return Branch(test=_name(rng, "u"), then=_assigns(rng, 1), otherwise=_assigns(rng, 0))


def _loop(rng: random.Random) -> Loop:
    return Loop(count=_name(rng, "u"), body=_assigns(rng, 1))


def _exchange(rng: random.Random) -> Exchange:
    letter = rng.choice("uf")
    return Exchange(
        target=_name(rng, letter),
        source=_name(rng, letter),
        stride=2 * rng.randrange(16) + 1,
        offset=rng.randrange(THREADS),
    )


def _shuffle(rng: random.Random) -> Shuffle:
    letter = rng.choice("uf")
    return Shuffle(
        target=_name(rng, letter),
        source=_name(rng, letter),
        mode=rng.choice(("up", "down", "xor", "idx")),
        distance=rng.randrange(_WARP),
        width=rng.choice((4, 8, 16, 32)),
    )


def _ballot(rng: random.Random) -> Ballot:
    return Ballot(target=_name(rng, "u"), source=_name(rng, "u"))


def _atomic(rng: random.Random) -> Atomic:
    name = rng.choice(("bins", "peaks"))
    return Atomic(name=name, index=_name(rng, "u"), value=_name(rng, "u"))


def _statement(rng: random.Random) -> Statement:
    makers = (_branch, _loop, _exchange, _shuffle, _ballot, _atomic, *(_assign,) * 6)
    return rng.choice(makers)(rng)


def source(program: Program, symbol: str) -> str:
    """Return the kernel of a program in CUDA C++."""
    names = [f"{letter}{n}" for letter in "uf" for n in range(_VARIABLES)]
    loads = [f"unsigned u{n} = a.{x};" for n, x in enumerate("xyzw")]
    loads += [f"float f{n} = b.{x};" for n, x in enumerate("xyzw")]
    stores = [
        f"{'words' if name[0] == 'u' else 'numbers'}[i * {_VARIABLES} + {name[1]}] = {name};"
        for name in names
    ]
    body = [
        f"__shared__ unsigned slots[{THREADS}]; __shared__ float reals[{THREADS}];",
        f"const unsigned i = blockIdx.x * {THREADS}u + threadIdx.x;",
        "const uint4 a = reinterpret_cast<const uint4*>(words)[i];",
        "const float4 b = reinterpret_cast<const float4*>(numbers)[i];",
        *loads,
        *(statement.text() for statement in program),
        *stores,
    ]
    head = f'extern "C" __global__ void {symbol}(unsigned* words, float* numbers, '
    head += "unsigned* bins, unsigned* peaks)"
    return "\n".join([head, "{", *(f"    {line}" for line in body), "}", ""])


def inputs(seed: int) -> dict[str, Values]:
    """Return the arguments of the kernel of a seed, in parameter order."""
    rng = np.random.default_rng(seed)
    count = BLOCKS * THREADS * _VARIABLES
    edges = np.array([0, 1, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], U4)
    words = np.where(
        rng.random(count) < _EDGES, rng.choice(edges, count), rng.integers(0, 1 << 32, count)
    )
    numbers = rng.standard_normal(count) * 2.0 ** rng.integers(-30, 31, count)
    special = np.array([0, -0.0, 1, -1, np.inf, 1e-40, 2.0**31, 0.5])
    numbers = np.where(rng.random(count) < _SPECIAL, rng.choice(special, count), numbers)
    return {
        "words": words.astype(U4),
        "numbers": numbers.astype(F4),
        "bins": np.zeros(BINS, U4),
        "peaks": np.zeros(BINS, U4),
    }


def evaluate(program: Program, given: dict[str, Values]) -> dict[str, Values]:
    """Return the arguments as the kernel leaves them, computed by NumPy."""
    state: State = {name: given[name].copy() for name in ("bins", "peaks")}
    for letter, name in (("u", "words"), ("f", "numbers")):
        for n in range(_VARIABLES):
            state[f"{letter}{n}"] = given[name][n::_VARIABLES].copy()
    everyone = np.ones(BLOCKS * THREADS, np.bool_)
    with np.errstate(all="ignore"):
        for statement in program:
            statement.apply(state, everyone)
    words, numbers = (
        np.stack([state[f"{letter}{n}"] for n in range(_VARIABLES)], axis=1).reshape(-1)
        for letter in "uf"
    )
    return {"words": words, "numbers": numbers, "bins": state["bins"], "peaks": state["peaks"]}
