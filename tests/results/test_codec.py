"""The codec writes what it can read, reads what it wrote, and refuses everything else by name."""

from __future__ import annotations

import collections.abc
import dataclasses
import json
import math
import types
import typing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci.results import codec
from ci.results.errors import RecordError
from ci.results.model import SCHEMA_VERSION, CaseResult, Counters, GateResult, RunRecord, Status
from tests import builders

Document = dict[str, Any]
"""A stored text taken apart, for planting faults into it."""


def _values(hint: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401
    """Return values of a declared type, built from the declaration as the codec is."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    values: st.SearchStrategy[Any]
    if hint is CaseResult:
        values = _cases()
    elif isinstance(hint, type) and dataclasses.is_dataclass(hint):
        fields = {name: _values(inner) for name, inner in typing.get_type_hints(hint).items()}
        if "schema_version" in fields:
            fields["schema_version"] = st.just(SCHEMA_VERSION)
        values = st.builds(hint, **fields)
    elif origin is types.UnionType:
        values = st.none() | _values(arguments[0])
    elif origin is tuple:
        values = st.lists(_values(arguments[0]), max_size=2).map(tuple)
    elif origin is collections.abc.Mapping:
        values = st.dictionaries(st.text(max_size=5), _values(arguments[1]), max_size=2)
    elif hint is float:
        values = st.floats(allow_nan=False, allow_infinity=False)
    else:
        values = st.from_type(hint)
    return values


def _cases() -> st.SearchStrategy[CaseResult]:
    hints = typing.get_type_hints(CaseResult)
    figures = ("counters", "cold", "hot")
    bound = ("status", "reason", *figures)
    free = {name: _values(hints[name]) for name in hints if name not in bound}
    failed = st.sampled_from([status for status in Status if status is not Status.PASSED])
    passed = st.builds(
        CaseResult,
        status=st.just(Status.PASSED),
        reason=st.just(""),
        **{name: _values(hints[name]) for name in figures},
        **free,
    )
    other = st.builds(
        CaseResult,
        status=failed,
        reason=st.text(min_size=1, max_size=8),
        **{name: st.none() for name in figures},
        **free,
    )
    return passed | other


def _document(record: RunRecord | None = None) -> Document:
    document = json.loads(codec.dumps(record or builders.record(builders.case())))
    assert isinstance(document, dict)
    return document


def _refusal(document: Document) -> str:
    with pytest.raises(RecordError) as refused:
        codec.loads(RunRecord, json.dumps(document), "run.json")
    return str(refused.value)


@settings(max_examples=60, deadline=None)
@given(_values(RunRecord))
def test_every_record_is_read_as_it_was_written(record: RunRecord) -> None:
    text = codec.dumps(record)
    assert codec.loads(RunRecord, text, "run.json") == record
    assert codec.dumps(codec.loads(RunRecord, text, "run.json")) == text


@settings(max_examples=60, deadline=None)
@given(_values(GateResult))
def test_every_gate_result_is_read_as_it_was_written(result: GateResult) -> None:
    assert codec.loads(GateResult, codec.dumps(result), "verdict.json") == result


@settings(max_examples=100, deadline=None)
@given(st.integers(min_value=0))
def test_a_record_cut_short_anywhere_is_refused(cut: int) -> None:
    text = codec.dumps(builders.record(builders.case())).rstrip()
    with pytest.raises(RecordError, match=r"run\.json: .*cut short"):
        codec.loads(RunRecord, text[: cut % len(text)], "run.json")


@given(st.text() | st.sampled_from(["[" * 100_000, "1" * 5000, '"\\ud800"', "1e999"]))
def test_any_text_is_read_or_refused_and_never_a_crash(text: str) -> None:
    with pytest.raises(RecordError):
        codec.loads(RunRecord, text, "run.json")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_refused_in_a_file(number: str) -> None:
    text = json.dumps(_document()).replace('"seconds": 0.25', f'"seconds": {number}')
    with pytest.raises(RecordError):
        codec.loads(RunRecord, text, "run.json")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_never_written(number: float) -> None:
    wrong = dataclasses.replace(builders.subcheck(), max_error=number)
    with pytest.raises(
        RecordError, match=r"\$\.cases\[0\]\.subcheck\.max_error: expected a finite"
    ):
        codec.dumps(builders.record(builders.case(own_check=wrong)))


def test_a_wrong_type_is_never_written() -> None:
    counters = Counters(local_bytes=typing.cast("int", 1.5))
    with pytest.raises(
        RecordError, match=r"cases\[0\]\.counters\.local_bytes: expected an integer"
    ):
        codec.dumps(builders.record(builders.case(counters=counters)))


def test_another_schema_version_is_refused_with_both_versions() -> None:
    message = _refusal(_document() | {"schema_version": 2})
    assert "run.json: $.schema_version: expected 1, got 2" in message
    assert "measure the commit again" in message


@pytest.mark.parametrize("version", ["1", 1.5, True, None])
def test_a_schema_version_of_another_type_is_refused(version: object) -> None:
    document = _document() | {"schema_version": version}
    if version is True:
        assert "$.schema_version: expected an integer, got True" in _refusal(document)
    else:
        assert "$.schema_version: expected an integer" in _refusal(document)


def test_an_unknown_field_is_refused_with_its_place() -> None:
    document = _document()
    document["cases"][0]["speed"] = 0.0
    assert "$.cases[0]: expected the fields of CaseResult, got an unknown one, 'speed'" in _refusal(
        document
    )


def test_a_missing_field_is_refused_with_its_place() -> None:
    document = _document()
    del document["cases"][0]["status"]
    assert "$.cases[0]: expected the fields of CaseResult, 'status' is missing" in _refusal(
        document
    )


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("size", {"M": "64"}, "$.cases[0].size.M: expected an integer, got '64'"),
        ("size", [64], "$.cases[0].size: expected an object, got [64]"),
        ("flops", True, "$.cases[0].flops: expected an integer, got True"),
        ("flops", 1.0, "$.cases[0].flops: expected an integer, got 1.0"),
        ("seconds", "1", "$.cases[0].seconds: expected a finite number, got '1'"),
        ("status", "FINE", "$.cases[0].status: expected one of PASSED, INCORRECT,"),
        ("status", ["PASSED"], "$.cases[0].status: expected one of PASSED, INCORRECT,"),
        ("lines", {}, "$.cases[0].lines: expected an array, got {}"),
        ("subcheck", 3, "$.cases[0].subcheck: expected an object (SubCheck), got 3"),
        ("reason", None, "$.cases[0].reason: expected text, got None"),
    ],
)
def test_a_wrong_type_is_refused_with_its_place(field: str, value: object, expected: str) -> None:
    document = _document()
    document["cases"][0][field] = value
    assert f"run.json: {expected}" in _refusal(document)


def test_counters_of_a_case_that_did_not_pass_are_refused() -> None:
    document = _document()
    document["cases"][0] |= {"status": "LAUNCH_ERROR", "reason": "out of memory"}
    assert "counters are kept of a PASSED case only" in _refusal(document)


def test_a_key_named_twice_is_refused() -> None:
    text = json.dumps(_document()).replace('"complete": true', '"complete": true, "complete": true')
    with pytest.raises(RecordError, match="'complete' twice"):
        codec.loads(RunRecord, text, "run.json")


def test_the_text_keeps_the_declared_order_and_leaves_out_zero_counters() -> None:
    text = codec.dumps(builders.record(builders.case()))
    assert text.startswith('{\n  "schema_version": 1,\n  "run": ')
    assert '"size": {"M": 64, "N": 64, "K": 64}' in text
    assert '"counters": {"global_load_sectors": 1024}' in text


def test_a_record_with_hundreds_of_lines_stays_small() -> None:
    lines = tuple(
        builders.line(number, "acc += A[row * lda + k] * B[k * ldb + column];", local_bytes=number)
        for number in range(1, 501)
    )
    text = codec.dumps(builders.record(builders.case(lines=lines)))
    assert len(text) < 500 * 250


def test_a_record_is_no_gate_result() -> None:
    text = codec.dumps(builders.record(builders.case()))
    with pytest.raises(RecordError, match="expected the fields of GateResult"):
        codec.loads(GateResult, text, "verdict.json")
