"""The published schemas say what is written, and refuse what is not."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ci.gate.codes import Code
from ci.gate.compare import compare
from ci.gate.timing import TimingVerdict
from ci.gate.verdicts import ABSENT
from ci.results import codec
from ci.results.model import Counters, GateResult, Outcome, Status, SubCheck, Timing, Word
from tests import builders

DOCS = Path(__file__).parents[2] / "docs"
CASE = {
    "id": "sgemm/01_naive[M=64,N=64,K=64]",
    "suite": "kernels",
    "ladder": "sgemm",
    "stage": "01_naive",
    "size": {"M": 64, "N": 64, "K": 64},
    "role": "check",
    "devices": ["cuda", "simulator"],
}


def _validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((DOCS / name).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _document(result: GateResult) -> dict[str, Any]:
    document = json.loads(codec.dumps(result))
    assert isinstance(document, dict)
    return document


def _timed_result() -> GateResult:
    """Return the result of a gate on a machine with a GPU, whose only case is slower."""
    timing = Timing(
        setting="standard",
        ratio=1.02,
        low=1.018,
        high=1.022,
        rounds=8,
        base_s=1e-3,
        head_s=1.02e-3,
        smallest_detectable=0.0,
        other_setting=Word.REGRESSION,
    )
    says = TimingVerdict(
        word=Word.REGRESSION, reason_code=Code.SLOWER, reason="slower 2 %", timing=timing
    )
    on = dataclasses.replace(
        builders.machine(name="h200", device="cuda"), peaks={"copy_bytes_per_s": 4.27e12}
    )
    head = builders.record(builders.case(), stages=[builders.stage(identity="2222")], on=on)
    return compare(
        builders.record(builders.case(), on=on),
        head,
        timings={builders.CASE: says},
        started=builders.STARTED,
        seconds=2.0,
    )


def _rich_result() -> GateResult:
    """Return a gate's result that fills every list of verdict.json."""
    names = ["01_naive", "02_tile", "03_wide", "04_gone"]
    ids = [f"sgemm/{name}[M=64,N=64,K=64]" for name in names]
    wrong = SubCheck(name="M=1", passed=False, max_error=None, bound=None, detail="all NaN")
    line = builders.line(14, "x = A[k];", global_load_sectors=8192)
    head = [
        builders.case(ids[0], counters=Counters(global_load_sectors=8192), lines=(line,)),
        builders.case(ids[1], status=Status.INCORRECT, findings=(builders.finding(),)),
        builders.case(ids[2], status=Status.INCORRECT, own_check=wrong),
    ]
    before = builders.record(
        *(builders.case(id_) for id_ in ids), stages=[builders.stage(name) for name in names]
    )
    spilling = (builders.static(spill_store_bytes=8, occupancy=0.75),)
    after = [builders.stage(name, identity="2222", figures=spilling) for name in names]
    return builders.gate(before, builders.record(*head, stages=after))


@pytest.mark.parametrize(
    "result",
    [
        builders.gate(None, builders.record(builders.case())),
        builders.gate(None, builders.record()),
        builders.gate(builders.record(builders.case()), builders.record(error="ladder.py:3")),
        _rich_result(),
        _timed_result(),
    ],
)
def test_what_the_codec_writes_follows_the_verdict_schema(result: GateResult) -> None:
    _validator("verdict.schema.json").validate(_document(result))


def test_the_rich_result_fills_every_list() -> None:
    cases = _rich_result().cases
    assert [case.verdict for case in cases] == [
        Word.REGRESSION,
        Word.INCORRECT,
        Word.INCORRECT,
        Word.MISSING,
    ]
    assert cases[0].changes
    assert cases[1].findings
    assert cases[2].wrong


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("verdict", "ok"),
        ("schema_version", 2),
        ("head", None),
        ("speed", 1),
        ("machine.device", "cpu"),
        ("cases.0.verdict", "SLOWER"),
        ("cases.0.code", "because"),
        ("cases.0.reason", ""),
        ("cases.0.base", "GONE"),
        ("cases.0.changes.0.base", "1,024"),
        ("cases.1.findings.0.count", 0),
        ("cases.2.wrong.0.passed", True),
        ("counts.SLOWER", 1),
    ],
)
def test_the_verdict_schema_refuses_a_planted_fault(path: str, value: object) -> None:
    document: Any = _document(_rich_result())
    *parents, last = path.split(".")
    place = document
    for name in parents:
        place = place[int(name)] if name.isdigit() else place[name]
    place[last] = value
    assert not _validator("verdict.schema.json").is_valid(document)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ratio", 0),
        ("low", "1.018"),
        ("rounds", 1),
        ("setting", "strict"),
        ("other_setting", "ERROR"),
        ("smallest_detectable", None),
    ],
)
def test_the_verdict_schema_refuses_a_planted_fault_in_a_timing(field: str, value: object) -> None:
    document: Any = _document(_timed_result())
    document["cases"][0]["timing"][field] = value
    assert not _validator("verdict.schema.json").is_valid(document)


@pytest.mark.parametrize("field", ["verdict", "base", "head", "machine", "cases"])
def test_the_verdict_schema_asks_for_every_field(field: str) -> None:
    document = _document(_rich_result())
    del document[field]
    assert not _validator("verdict.schema.json").is_valid(document)


def test_the_verdict_schema_knows_every_word_status_and_code() -> None:
    schema = json.loads((DOCS / "verdict.schema.json").read_text(encoding="utf-8"))
    definitions = schema["$defs"]
    assert definitions["word"]["enum"] == list(Word)
    assert definitions["status"]["enum"] == [*Status, ABSENT]
    assert definitions["case"]["properties"]["code"]["enum"] == list(Code)
    assert schema["properties"]["verdict"]["enum"] == list(Outcome)


def test_the_list_schema_takes_a_case() -> None:
    _validator("list.schema.json").validate([CASE, CASE | {"devices": ["cuda"], "role": "perf"}])


@pytest.mark.parametrize(
    "fault",
    [
        {"id": "sgemm"},
        {"size": {}},
        {"size": {"M": 0}},
        {"size": {"M": "64"}},
        {"role": "fast"},
        {"devices": []},
        {"devices": ["tpu"]},
        {"suite": ""},
    ],
)
def test_the_list_schema_refuses_a_planted_fault(fault: dict[str, object]) -> None:
    assert not _validator("list.schema.json").is_valid([CASE | fault])


@pytest.mark.parametrize("field", sorted(CASE))
def test_the_list_schema_asks_for_every_field(field: str) -> None:
    case = {name: value for name, value in CASE.items() if name != field}
    assert not _validator("list.schema.json").is_valid([case])


def test_the_list_schema_asks_for_an_array() -> None:
    assert not _validator("list.schema.json").is_valid(CASE)
