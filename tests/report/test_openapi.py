"""The judge itself: a request that GitHub would refuse is refused here, for its one reason."""

# JSON as it comes from the network, so its types are not ours to state.
# ruff: noqa: ANN401

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.report import openapi

HEADERS = {
    "Authorization": "Bearer not-a-real-token",
    "Accept": "application/vnd.github+json",
    "X-GitHub-Api-Version": "2022-11-28",
    "User-Agent": "flopwatch",
    "Content-Type": "application/json",
}
COMMENTS = "/repos/o/r/issues/7/comments"
CHECKS = "/repos/o/r/check-runs"
REMARK = {
    "path": "a.cu",
    "start_line": 1,
    "end_line": 1,
    "annotation_level": "failure",
    "message": "slower",
}
CHECK: dict[str, Any] = {
    "name": "flopwatch",
    "head_sha": "a" * 40,
    "status": "completed",
    "conclusion": "failure",
    "output": {"title": "failed", "summary": "why", "annotations": [REMARK]},
}


def problems(
    method: str, url: str, body: Any = None, headers: dict[str, str] | None = None
) -> list[str]:
    operation = openapi.find(method, url)
    if operation is None:
        return ["no such operation"]
    content = b"" if body is None else json.dumps(body).encode()
    return operation.problems(url, {**HEADERS, **(headers or {})}, content)


def output(**changes: Any) -> dict[str, Any]:
    return {**CHECK, "output": {**CHECK["output"], **changes}}


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("GET", f"{COMMENTS}?per_page=100&page=2", None),
        ("POST", COMMENTS, {"body": "x"}),
        ("PATCH", "/repos/o/r/issues/comments/3", {"body": "x"}),
        ("POST", CHECKS, CHECK),
        ("POST", CHECKS, {"name": "n", "head_sha": "a" * 40, "status": "in_progress"}),
        ("GET", f"/repos/o/r/compare/{'a' * 40}...{'b' * 40}?per_page=1", None),
    ],
)
def test_a_sound_request_is_taken(method: str, url: str, body: Any) -> None:
    assert problems(method, url, body) == []


@pytest.mark.parametrize(
    ("method", "url", "body", "part"),
    [
        ("PUT", COMMENTS, {"body": "x"}, "no such operation"),
        ("POST", "/repos/o/r/nope", {}, "no such operation"),
        ("POST", "/repos/o/r/issues/seven/comments", {"body": "x"}, "issue_number"),
        ("GET", f"{COMMENTS}?per_page=many", None, "per_page"),
        ("GET", f"{COMMENTS}?per_page=101", None, "per_page above 100"),
        ("GET", f"{COMMENTS}?sort=new", None, "sort is not declared"),
        ("GET", COMMENTS, {"body": "x"}, "a body where none"),
        ("POST", COMMENTS, {"body": 5}, "5 is not of type"),
        ("POST", COMMENTS, {"body": "x", "text": "x"}, "unknown key text"),
        ("POST", COMMENTS, {"body": "x" * 65_537}, "comment above"),
        ("POST", CHECKS, {**CHECK, "conclusion": "ok"}, "conclusion"),
        ("POST", CHECKS, {**CHECK, "head": "x"}, "unknown key head"),
        ("POST", CHECKS, {k: v for k, v in CHECK.items() if k != "head_sha"}, "head_sha"),
        ("POST", CHECKS, {k: v for k, v in CHECK.items() if k != "conclusion"}, "conclusion"),
        ("POST", CHECKS, output(annotations=[REMARK] * 51), "too long"),
        ("POST", CHECKS, output(annotations=[{**REMARK, "annotation_level": "error"}]), "error"),
        ("POST", CHECKS, output(summary="x" * 65_536), "too long"),
        ("POST", CHECKS, output(annotations=[{**REMARK, "start_line": "1"}]), "'1' is not"),
    ],
)
def test_a_faulty_request_is_refused(method: str, url: str, body: Any, part: str) -> None:
    assert any(part in problem for problem in problems(method, url, body))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", ""),
        ("Authorization", "not-a-real-token"),
        ("Accept", "application/json"),
        ("X-GitHub-Api-Version", ""),
        ("User-Agent", ""),
        ("Content-Type", "text/plain"),
    ],
)
def test_a_faulty_header_is_refused(name: str, value: str) -> None:
    assert problems("POST", COMMENTS, {"body": "x"}, {name: value})


def test_a_faulty_answer_is_noticed() -> None:
    operation = openapi.find("POST", COMMENTS)
    assert operation is not None
    comment = openapi.example("issue-comment")
    assert operation.answer_problems(201, comment) == []
    assert operation.answer_problems(201, {**comment, "id": "1"}) != []
