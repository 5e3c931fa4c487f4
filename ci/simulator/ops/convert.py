"""Moves, conversions and address spaces of pointers.

Source: PTX ISA, "Data Movement and Conversion Instructions": cvt, mov, cvta, isspacep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ci.simulator.forms import (
    BOOL,
    F2,
    F4,
    F8,
    I8,
    U4,
    U8,
    Form,
    UnsupportedError,
    dtype_of,
    unsigned,
)
from ci.simulator.memory import GLOBAL_WINDOW, LOCAL_WINDOW, SHARED_WINDOW
from ci.simulator.ops.directed import double_of_integers
from ci.simulator.ops.narrow import (
    BYTE_KINDS,
    from_bytes,
    integers_to_double,
    to_bf16,
    to_bytes,
    to_tf32,
)
from ci.simulator.ops.rounding import (
    bf16_to_f32,
    f32_to_bf16,
    flush,
    rectify,
    round_directed,
    saturate,
)
from ci.simulator.ptx import Vector

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci.simulator.code import Code
    from ci.simulator.forms import Array, Mask, Step

DType = np.dtype[Any]

_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
"""Rounding mode → rounding to an integer."""
_MODES = ("rn", "rz", "rm", "rp")
_F16_FAMILY = ("f16", "bf16")


def _convert(code: Code, form: Form) -> Step:
    """Decode cvt by the kinds of its two types."""
    source_kind, result_kind = form.last(), form.last()
    if source_kind in BYTE_KINDS:
        if result_kind != "f16x2":
            raise UnsupportedError(form.instruction.text)
        return from_bytes(code, form, source_kind)
    if result_kind in BYTE_KINDS:
        return to_bytes(code, form, result_kind, source_kind)
    if result_kind in ("f16x2", "bf16x2"):
        return _pack_halves(code, form, result_kind[:-2], source_kind)
    if result_kind == "tf32":
        return to_tf32(code, form)
    source, result = dtype_of(source_kind), dtype_of(result_kind)
    if source_kind[0] in "us" and result_kind[0] in "us":
        function = _between_integers(form, source, result)
    elif source_kind[0] in "us":
        function = _to_float(form, result_kind)
    elif result_kind[0] in "us":
        function = _to_integer(form, source_kind, result)
    else:
        function = _between_floats(form, source_kind, result_kind)
    destination, value = form.operands(2)
    return code.compute(function, result, destination, [(value, source)])


def _between_integers(form: Form, source: DType, result: DType) -> Callable[[Array], Array]:
    if not form.flag("sat"):
        return lambda x: x.astype(result)
    low, high = np.iinfo(result).min, np.iinfo(result).max
    source_limits = np.iinfo(source)
    low, high = max(low, source_limits.min), min(high, source_limits.max)
    return lambda x: np.clip(x, source.type(low), source.type(high)).astype(result)


def _to_float(form: Form, result_kind: str) -> Callable[[Array], Array]:
    mode = form.one_of(*_MODES)
    if result_kind == "bf16":
        return lambda x: to_bf16(integers_to_double(x), mode)
    result = dtype_of(result_kind)
    if mode == "rn":
        return lambda x: x.astype(result)
    if result == F8:
        return lambda x: double_of_integers(x, mode)
    return lambda x: round_directed(integers_to_double(x), result, mode)


def to_integer(value: Array, result: DType) -> Array:
    """Return whole f64 values as integers: NaN is 0, what lies outside becomes the limit."""
    limits = np.iinfo(result)
    # The largest integers are no doubles, but the powers of two above them are.
    above = value >= float(int(limits.max) + 1)
    below = value < float(limits.min)
    inside = np.where(above | below | np.isnan(value), 0.0, value).astype(result)
    high = np.where(above, result.type(limits.max), inside)
    return np.where(below, result.type(limits.min), high)


def _to_integer(form: Form, source_kind: str, result: DType) -> Callable[[Array], Array]:
    whole = _WHOLE[form.one_of(*_WHOLE)]
    form.flag("sat")
    ftz = form.flag("ftz")
    # What a GPU makes of a NaN where one of the two is 64 bits wide: the top bit alone.
    wide = source_kind == "f64" or result.itemsize == F8.itemsize
    top = unsigned(result).type(1 << 8 * result.itemsize - 1).view(result)
    nan = top if wide else result.type(0)

    def convert(x: Array) -> Array:
        value = bf16_to_f32(x) if source_kind == "bf16" else x
        whole_value = whole((flush(value) if ftz else value).astype(F8))
        return np.where(np.isnan(whole_value), nan, to_integer(whole_value, result))

    return convert


def _between_floats(form: Form, source_kind: str, result_kind: str) -> Callable[[Array], Array]:
    mode = form.flag(*_MODES)
    whole = form.flag(*_WHOLE)
    ftz, sat, relu = form.flag("ftz"), form.flag("sat"), form.flag("relu")
    result = dtype_of(result_kind)

    def convert(x: Array) -> Array:
        value = bf16_to_f32(x) if source_kind == "bf16" else x
        if ftz and value.dtype == F4 and result_kind != "f16":
            value = flush(value)
        if whole:
            value = _WHOLE[whole](value)
        if result_kind == "bf16":
            value = value.astype(F8)
        elif mode in ("", "rn"):
            value = value.astype(result)
        else:
            value = round_directed(value.astype(F8), result, mode)
        if ftz and value.dtype == F4:
            value = flush(value)
        value = saturate(value) if sat else value
        value = rectify(value) if relu else value
        return to_bf16(value, mode or "rn") if result_kind == "bf16" else value

    return convert


def _pack_halves(code: Code, form: Form, half: str, source_kind: str) -> Step:
    """Decode a conversion of two f32: the first operand becomes the upper half."""
    mode, relu = form.one_of("rn", "rz"), form.flag("relu")
    destination, high, low = form.operands(3)
    if source_kind != "f32":
        raise UnsupportedError(form.instruction.text)

    def narrow(x: Array) -> Array:
        value = rectify(x) if relu else x
        if half == "bf16":
            return f32_to_bf16(value, toward_zero=mode == "rz")
        return round_directed(value.astype(F8), F2, mode).view(np.uint16)

    def pack(x: Array, y: Array) -> Array:
        return np.asarray(narrow(x).astype(U4) << U4.type(16) | narrow(y))

    return code.compute(pack, U4, destination, [(high, F4), (low, F4)])


def _same(x: Array) -> Array:
    return x


def _move(code: Code, form: Form) -> Step:
    dtype = dtype_of(form.last())
    destination, source = form.operands(2)
    if isinstance(destination, Vector):
        return _unpack(code, destination, source, dtype)
    if isinstance(source, Vector):
        part = np.dtype(f"u{dtype.itemsize // len(source.items)}")
        width = U8.type(8 * part.itemsize)

        def pack(*parts: Array) -> Array:
            word = np.zeros((1, 1), U8)
            for piece in reversed(parts):
                word = word << width | piece
            return np.asarray(word).astype(dtype)

        return code.compute(pack, dtype, destination, [(item, part) for item in source.items])
    return code.compute(_same, dtype, destination, [(source, dtype)])


def _unpack(code: Code, destination: Vector, source: object, dtype: DType) -> Step:
    part = np.dtype(f"u{dtype.itemsize // len(destination.items)}")
    bits = dtype.type(8 * part.itemsize)
    fetch = code.fetch(source, dtype)  # type: ignore[arg-type]
    stores = [code.store(item, part) for item in destination.items]

    def step(_: Mask) -> None:
        word = fetch()
        for store in stores:
            store(word.astype(part))
            word = word >> bits

    return step


def _to_generic(code: Code, form: Form) -> Step:
    """Decode cvta: addresses of shared and local memory move into their windows and back."""
    dtype = dtype_of(form.last())
    back = form.flag("to")
    space = form.one_of("global", "const", "shared", "local")
    destination, source = form.operands(2)
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space, 0)
    if dtype.itemsize != U8.itemsize:
        raise UnsupportedError(form.instruction.text)
    if not window:
        return code.compute(_same, I8, destination, [(source, I8)])
    shift = np.full((1, 1), -window if back else window, I8)
    return code.compute(lambda x: x + shift, I8, destination, [(source, I8)])


_WINDOWS = {
    "shared": (SHARED_WINDOW, LOCAL_WINDOW),
    "local": (LOCAL_WINDOW, 2 * LOCAL_WINDOW),
    "global": (GLOBAL_WINDOW, 1 << 62),
}


def _is_space(code: Code, form: Form) -> Step:
    """Decode isspacep: whether a generic address lies in a space."""
    low, high = _WINDOWS[form.one_of(*_WINDOWS)]
    destination, address = form.operands(2)
    return code.compute(lambda x: (x >= low) & (x < high), BOOL, destination, [(address, I8)])


DECODERS: dict[str, Callable[[Code, Form], Step]] = {
    "cvt": _convert,
    "mov": _move,
    "cvta": _to_generic,
    "isspacep": _is_space,
}
"""Opcode → decoder."""
