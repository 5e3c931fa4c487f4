"""Comparisons and tests of floating-point values, and selection by a sign.

Source: PTX ISA, "Comparison and Selection Instructions", "Half Precision Comparison
Instructions", "Floating Point Instructions" (testp).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import BOOL, F2, F4, I4, U4, Form, UnsupportedError, dtype_of
from ci.simulator.ops.integer import COMBINE, compare_integers, set_predicate
from ci.simulator.ops.rounding import FLOATS, bf16_to_f32, flush
from ci.simulator.ptx import Pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Step

    Compare = Callable[[Array, Array], Array]

DType = np.dtype[Any]

_U2 = np.dtype("u2")

_FLOAT_ORDERS: dict[str, Compare] = {
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "ne": lambda a, b: (a < b) | (a > b),
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": np.not_equal,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}
"""Ordered comparisons are false on NaN, unordered ones true."""
_INTEGER_ORDERS = ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")

_TRUE = {
    "u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "u16": 0xFFFF, "s16": 0xFFFF,
    "f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80,
}  # fmt: skip
"""What ``set`` writes for a true comparison, by the type of its result."""


def _compare(form: Form, kind: str) -> Compare:
    """Take an order and return the comparison it names, on the bits of a type."""
    if kind not in FLOATS:
        return compare_integers(form.one_of(*_INTEGER_ORDERS), dtype_of(kind))
    ftz = form.flag("ftz")
    order = _FLOAT_ORDERS[form.one_of(*_FLOAT_ORDERS)]
    half = kind.removesuffix("x2")

    def compare(a: Array, b: Array) -> Array:
        if half == "bf16":
            a, b = bf16_to_f32(a), bf16_to_f32(b)
        return order(flush(a), flush(b)) if ftz else order(a, b)

    return compare


def _halves(x: Array, kind: str) -> tuple[Array, Array]:
    """Return the lower and the upper half of packed values."""
    parts = np.ascontiguousarray(x)[..., None].view(F2 if kind == "f16x2" else _U2)
    return parts[..., 0], parts[..., 1]


def _set_predicate(code: Code, form: Form) -> Step:
    """Decode setp of floating types."""
    kind = form.last()
    compare = _compare(form, kind)
    if not kind.endswith("x2"):
        return set_predicate(code, form, dtype_of(kind), compare)
    combine = form.flag(*COMBINE)
    destination, a, b, *rest = form.operands(4 if combine else 3)
    if not isinstance(destination, Pair):
        raise UnsupportedError(form.instruction.text)
    sources = [code.fetch(operand, U4) for operand in (a, b)]
    other = code.fetch(rest[0], BOOL) if rest else None
    stores = code.store(destination.first, BOOL), code.store(destination.second, BOOL)

    def step(_: Array | None) -> None:
        x, y = (_halves(fetch(), kind) for fetch in sources)
        results = [compare(*pair) for pair in zip(x, y, strict=True)]
        if other is not None:
            given = other()
            results = [np.asarray(COMBINE[combine](result, given)) for result in results]
        for store, result in zip(stores, results, strict=True):
            store(result)

    return step


def _set(code: Code, form: Form) -> Step:
    """Decode set: a comparison whose result is a value, in halves for packed operands."""
    kind, result = form.last(), form.last()
    compare = _compare(form, kind)
    combine = form.flag(*COMBINE)
    destination, a, b, *rest = form.operands(4 if combine else 3)
    packed = kind.endswith("x2")
    if result.removesuffix("x2") not in _TRUE or result.endswith("x2") > packed:
        raise UnsupportedError(form.instruction.text)
    held = dtype_of(kind)
    # A packed comparison fills each half of a 32-bit result.
    true = _TRUE["u16" if packed and result in ("u32", "s32") else result.removesuffix("x2")]
    written = U4 if packed else np.dtype(f"u{dtype_of(result).itemsize}")

    def decide(x: Array, y: Array, *given: Array) -> Array:
        holds = compare(x, y)
        return np.asarray(COMBINE[combine](holds, given[0]) if given else holds)

    def select(x: Array, y: Array, *given: Array) -> Array:
        if not packed:
            return np.where(decide(x, y, *given), written.type(true), written.type(0))
        low, high = (
            np.where(decide(*pair, *given), U4.type(true), U4.type(0))
            for pair in zip(_halves(x, kind), _halves(y, kind), strict=True)
        )
        return np.asarray(high << U4.type(16) | low)

    sources = [(a, held), (b, held), *((c, BOOL) for c in rest)]
    return code.compute(select, written, destination, sources)


def _select_by_sign(code: Code, form: Form) -> Step:
    """Decode slct: the first operand where the third is not negative, else the second."""
    kind = form.last()
    if kind not in ("f32", "s32"):
        raise UnsupportedError(form.instruction.text)
    decider = F4 if kind == "f32" else I4
    dtype = dtype_of(form.last())
    ftz = form.flag("ftz")
    destination, a, b, c = form.operands(4)

    def choose(x: Array, y: Array, z: Array) -> Array:
        return np.where((flush(z) if ftz else z) >= 0, x, y)

    return code.compute(choose, dtype, destination, [(a, dtype), (b, dtype), (c, decider)])


_CLASSES: dict[str, Callable[[Array], Array]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda x: ~np.isnan(x),
    "notanumber": np.isnan,
    # A zero counts as normal.
    "normal": lambda x: np.isfinite(x) & ((np.abs(x) >= np.finfo(x.dtype).tiny) | (x == 0)),
    "subnormal": lambda x: (np.abs(x) < np.finfo(x.dtype).tiny) & (x != 0),
}


def _test(code: Code, form: Form) -> Step:
    """Decode testp."""
    dtype = dtype_of(form.last())
    function = _CLASSES[form.one_of(*_CLASSES)]
    destination, source = form.operands(2)
    return code.compute(function, BOOL, destination, [(source, dtype)])


FLOAT_DECODERS: dict[str, Callable[[Code, Form], Step]] = {"setp": _set_predicate, "testp": _test}
"""Opcode → decoder, for floating types."""
DECODERS: dict[str, Callable[[Code, Form], Step]] = {"set": _set, "slct": _select_by_sign}
"""Opcode → decoder, for any type."""
