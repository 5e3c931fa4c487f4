"""Strict JSON for the data contract: changes when the stored form changes.

Format 1: every dataclass is an object of its fields in declared order, fields equal to their
default left out; enumerations are their values, tuples arrays, mappings objects. What cannot be
read back is not written: types, finiteness and invariants are checked in both directions.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import functools
import json
import math
import reprlib
import types
import typing
from typing import Any, NamedTuple, NoReturn, TypeVar

from ci.results.errors import RecordError
from ci.results.model import SCHEMA_VERSION, GateResult, GateRun, RunRecord

Json: typing.TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What a JSON text can hold."""

T = TypeVar("T")
Stored = TypeVar("Stored", RunRecord, GateResult, GateRun)

_ROW_WIDTH = 120
"""An array or object that fits in this many characters stays on one line."""


class _RefusedError(Exception):
    """A value is not what its place in the data contract asks for."""


class _Field(NamedTuple):
    """One field of a stored dataclass: its type, and its default if it has one."""

    hint: object
    default: object


def dumps(value: RunRecord | GateResult | GateRun) -> str:
    """Return ``value`` as the text of its file.

    Raises:
        RecordError: The value breaks its own declaration, such as a NaN or a wrong type.
    """
    return _layout(encode(value), indent=0) + "\n"


def loads(kind: type[Stored], text: str, source: str) -> Stored:
    """Return the record or gate result that ``text`` holds.

    Args:
        kind: ``RunRecord``, ``GateResult`` or ``GateRun``.
        text: Content of the file.
        source: Name of the file, for messages.

    Raises:
        RecordError: The text is cut short or no strict JSON, has another schema version, or
            differs from the declaration of ``kind``.
    """
    document = parse(text, source)
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, int) and version != SCHEMA_VERSION:
        msg = (
            f"{source}: $.schema_version: expected {SCHEMA_VERSION}, got {version} (read it with "
            f"the flopwatch that wrote it, or measure the commit again)"
        )
        raise RecordError(msg)
    return decode(document, kind, source)


def encode(value: object) -> Json:
    """Return a dataclass of the data contract as JSON.

    Raises:
        RecordError: The value breaks its own declaration, such as a NaN or a wrong type.
    """
    try:
        return _encode(value, type(value), "$")
    except _RefusedError as refused:
        msg = f"{type(value).__name__} not written: {refused} (mend what computed it)"
        raise RecordError(msg) from refused


def decode(document: Json, kind: type[T], source: str) -> T:
    """Return the ``kind`` that ``document`` stands for; ``source`` names it in messages.

    Raises:
        RecordError: The document differs from the declaration of ``kind``.
    """
    try:
        return typing.cast("T", _decode(document, kind, "$"))
    except _RefusedError as refused:
        msg = (
            f"{source}: {refused} (the file is damaged, edited or of another flopwatch: "
            f"move it away and measure the commit again)"
        )
        raise RecordError(msg) from refused


def parse(text: str, source: str) -> Json:
    """Return the JSON value that ``text`` holds; ``source`` names it in messages.

    Raises:
        RecordError: The text is cut short, no JSON, names a key twice, or holds NaN or Infinity.
    """
    try:
        document: Json = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_object_of_distinct_keys
        )
    except (_RefusedError, ValueError, RecursionError) as error:
        msg = (
            f"{source}: expected strict JSON, got {error} (the file is cut short or damaged: "
            f"move it away and measure the commit again)"
        )
        raise RecordError(msg) from error
    return document


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name}, which no JSON number is"
    raise _RefusedError(msg)


def _object_of_distinct_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        msg = f"key {twice!r} twice in one object"
        raise _RefusedError(msg)
    return document


def _layout(value: Json, indent: int) -> str:
    """Return ``value`` indented by two blanks a level, short arrays and objects on one line."""
    row = json.dumps(value, allow_nan=False)
    if not value or not isinstance(value, list | dict) or indent + len(row) <= _ROW_WIDTH:
        return row
    margin = " " * (indent + 2)
    if isinstance(value, list):
        rows = [margin + _layout(item, indent + 2) for item in value]
        opening, closing = "[", "]"
    else:
        rows = [
            f"{margin}{json.dumps(key)}: {_layout(item, indent + 2)}" for key, item in value.items()
        ]
        opening, closing = "{", "}"
    return f"{opening}\n" + ",\n".join(rows) + f"\n{' ' * indent}{closing}"


def _encode(value: object, hint: object, where: str) -> Json:
    """Return ``value`` as JSON; ``hint`` is the declared type of the place ``where``."""
    if dataclasses.is_dataclass(hint):
        return _encode_dataclass(value, typing.cast("type", hint), where)
    origin, inner = _taken_apart(hint)
    if origin is types.UnionType:
        return None if value is None else _encode(value, inner, where)
    if origin is tuple:
        items = _instance(value, tuple, where, "a tuple")
        return [_encode(item, inner, f"{where}[{index}]") for index, item in enumerate(items)]
    if origin is collections.abc.Mapping:
        mapping = _instance(value, collections.abc.Mapping, where, "a mapping")
        return {
            _instance(key, str, where, "keys of text"): _encode(item, inner, f"{where}.{key}")
            for key, item in mapping.items()
        }
    if isinstance(hint, type) and issubclass(hint, enum.StrEnum):
        return str(_instance(value, hint, where, hint.__name__).value)
    return _scalar(value, hint, where)


def _decode(value: Json, hint: object, where: str) -> object:
    """Return what ``value`` stands for; ``hint`` is the declared type of the place ``where``."""
    if dataclasses.is_dataclass(hint):
        return _decode_dataclass(value, typing.cast("type", hint), where)
    origin, inner = _taken_apart(hint)
    if origin is types.UnionType:
        return None if value is None else _decode(value, inner, where)
    if origin is tuple:
        items = _instance(value, list, where, "an array")
        return tuple(_decode(item, inner, f"{where}[{index}]") for index, item in enumerate(items))
    if origin is collections.abc.Mapping:
        mapping = _instance(value, dict, where, "an object")
        return {key: _decode(item, inner, f"{where}.{key}") for key, item in mapping.items()}
    if isinstance(hint, type) and issubclass(hint, enum.StrEnum):
        if value not in list(hint):
            raise _refused(where, f"one of {', '.join(hint)}", value)
        return hint(value)
    return _scalar(value, hint, where)


def _encode_dataclass(value: object, kind: type, where: str) -> Json:
    _instance(value, kind, where, kind.__name__)
    encoded: dict[str, Json] = {}
    for name, field in _fields(kind).items():
        item = getattr(value, name)
        if item != field.default:
            encoded[name] = _encode(item, field.hint, f"{where}.{name}")
    return encoded


def _decode_dataclass(value: Json, kind: type, where: str) -> object:
    document = _instance(value, dict, where, f"an object ({kind.__name__})")
    fields = _fields(kind)
    for name in document:
        if name not in fields:
            msg = f"{where}: expected the fields of {kind.__name__}, got an unknown one, {name!r}"
            raise _RefusedError(msg)
    for name, field in fields.items():
        if field.default is dataclasses.MISSING and name not in document:
            msg = f"{where}: expected the fields of {kind.__name__}, {name!r} is missing"
            raise _RefusedError(msg)
    arguments = {
        name: _decode(item, fields[name].hint, f"{where}.{name}") for name, item in document.items()
    }
    try:
        return kind(**arguments)
    except ValueError as error:
        msg = f"{where}: {error}"
        raise _RefusedError(msg) from error


def _default(field: dataclasses.Field[object]) -> object:
    """Return the value of a field that is left out; MISSING if it must not be."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


@functools.cache
def _fields(kind: type) -> dict[str, _Field]:
    hints = typing.get_type_hints(kind)
    return {
        field.name: _Field(hint=hints[field.name], default=_default(field))
        for field in dataclasses.fields(kind)
    }


@functools.cache
def _taken_apart(hint: object) -> tuple[object, object]:
    """Return origin and inner type of ``X | None``, ``tuple[X, ...]`` and ``Mapping[str, X]``."""
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is types.UnionType and len(arguments) == 2 and arguments[1] is types.NoneType:  # noqa: PLR2004
        return origin, arguments[0]
    if origin is tuple and arguments[1:] == (...,):
        return origin, arguments[0]
    if origin is collections.abc.Mapping and arguments[0] is str:
        return origin, arguments[1]
    if origin is not None:
        msg = f"the data contract has a field of type {hint}, which has no stored form"
        raise TypeError(msg)
    return None, hint


def _scalar(value: object, hint: object, where: str) -> bool | int | float | str:
    """Return ``value`` if it is of the scalar type ``hint``; an int may stand for a float."""
    if hint is str and isinstance(value, str):
        return value
    if hint is bool and isinstance(value, bool):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if hint is int and isinstance(value, int):
            return value
        if hint is float and abs(value) < math.inf:
            return value
    names = {str: "text", bool: "true or false", int: "an integer", float: "a finite number"}
    raise _refused(where, names[typing.cast("type", hint)], value)


def _instance(value: object, kind: type, where: str, expected: str) -> Any:  # noqa: ANN401
    """Return ``value`` if it is a ``kind``."""
    if not isinstance(value, kind):
        raise _refused(where, expected, value)
    return value


def _refused(where: str, expected: str, got: object) -> _RefusedError:
    return _RefusedError(f"{where}: expected {expected}, got {reprlib.repr(got)}")
