"""A GitHub of one pull request, on 127.0.0.1, that takes only what the description allows."""

# JSON as it comes from the network, so its types are not ours to state.
# ruff: noqa: ANN401

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.report import openapi


@dataclass(kw_only=True, slots=True)
class Fault:
    """An answer that GitHub gives instead of the usual one."""

    status: int
    method: str = ""
    """Only to this method; empty: to any."""
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "planted"
    carried_out: bool = False
    """Whether the request is done all the same."""


@dataclass(kw_only=True, slots=True)
class Clock:
    """Time that passes only when somebody waits."""

    seconds: float = 1_000_000.0
    waits: list[float] = field(default_factory=list)

    def now_s(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.seconds += seconds
        self.waits.append(seconds)


@dataclass(kw_only=True, slots=True)
class State:
    """What this GitHub holds, and what it was asked."""

    address: str = ""
    head: str = "a" * 40
    tip: str = "c" * 40
    merge_base: str = "b" * 40
    comments: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What the description does not allow; empty at the end of every good test."""

    def add_comment(self, body: str, author: str = "github-actions[bot]") -> None:
        comment = openapi.example("issue-comment")
        comment["user"]["login"] = author
        self.comments.append({**comment, "id": 100 + len(self.comments), "body": body})


@contextmanager
def serving() -> Iterator[State]:
    """Serve a fresh state while the block runs."""
    state = State()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(state: State) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing: the state keeps the requests."""

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            state.requests.append((self.command, self.path))
            status, headers, answer = _answer(
                state, self.command, self.path, dict(self.headers), body
            )
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _serve  # noqa: N815

    return Handler


Answer = tuple[int, Mapping[str, str], Any]


def _answer(state: State, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
    fault = state.faults[0] if state.faults and state.faults[0].method in ("", method) else None
    if fault is not None:
        state.faults.pop(0)
        if not fault.carried_out:
            return fault.status, fault.headers, {"message": fault.message}
    operation = openapi.find(method, url)
    problems = (
        [f"no operation {method} {url}"]
        if operation is None
        else operation.problems(url, headers, body)
    )
    if operation is None or problems:
        state.problems += problems
        return 422, {}, {"message": "; ".join(problems)}
    status, more, answer = _act(state, operation, url, json.loads(body or b"null"))
    if status != 204:
        state.problems += operation.answer_problems(status, answer)
    return (fault.status, {}, {"message": fault.message}) if fault else (status, more, answer)


def _act(  # noqa: PLR0911
    state: State, operation: openapi.Operation, url: str, body: Any
) -> Answer:
    """Do what a valid request asks for."""
    match operation.method, operation.path.removeprefix("/repos/{owner}/{repo}"):
        case "GET", "/issues/{issue_number}/comments":
            return _page(state, url, state.comments)
        case "POST", "/issues/{issue_number}/comments":
            state.add_comment(body["body"])
            return 201, {}, state.comments[-1]
        case "PATCH", "/issues/comments/{comment_id}":
            comment = _by_id(state.comments, operation.parameters["comment_id"])
            comment.update(body)
            return 200, {}, comment
        case "DELETE", "/issues/comments/{comment_id}":
            state.comments.remove(_by_id(state.comments, operation.parameters["comment_id"]))
            return 204, {}, None
        case "GET", "/commits/{ref}/check-runs":
            return _found_checks(state, operation, url)
        case "POST", "/check-runs":
            check = {**openapi.example("check-run"), "id": 500 + len(state.checks)}
            state.checks.append(check)
            return 201, {}, _write_check(check, body, [])
        case "PATCH", "/check-runs/{check_run_id}":
            check = _by_id(state.checks, operation.parameters["check_run_id"])
            return 200, {}, _write_check(check, body, check["sent"])
        case "GET", "/pulls/{pull_number}":
            # The published example has a team without the type that its schema requires.
            pull = {**openapi.example("pull-request"), "requested_teams": []}
            pull["head"]["sha"], pull["base"]["sha"] = state.head, state.tip
            return 200, {}, pull
        case _:
            compared = openapi.example("commit-comparison")
            compared["merge_base_commit"]["sha"] = state.merge_base
            return 200, {}, compared


def _page(state: State, url: str, items: list[dict[str, Any]]) -> Answer:
    query = parse_qs(urlsplit(url).query)
    size, page = (int(query.get(key, [at])[0]) for key, at in (("per_page", 30), ("page", 1)))
    path = urlsplit(url).path
    follows = f'<{state.address}{path}?per_page={size}&page={page + 1}>; rel="next"'
    links = {"Link": follows} if page * size < len(items) else {}
    return 200, links, items[(page - 1) * size : page * size]


def _found_checks(state: State, operation: openapi.Operation, url: str) -> Answer:
    query = {key: values[0] for key, values in parse_qs(urlsplit(url).query).items()}
    found = [
        {key: value for key, value in check.items() if key != "sent"}
        for check in reversed(state.checks)
        if check["head_sha"] == operation.parameters["ref"]
        and check["name"] == query.get("check_name", check["name"])
        and check["status"] == query.get("status", check["status"])
    ]
    return 200, {}, {"total_count": len(found), "check_runs": found}


def _write_check(check: dict[str, Any], body: Any, sent: list[Any]) -> dict[str, Any]:
    """Change a check run as GitHub does: annotations are added to those that are there."""
    output = body.get("output") or {}
    fresh = output.get("annotations", [])
    check.update({key: value for key, value in body.items() if key != "output"})
    if body["status"] != "completed":
        check.update(conclusion=None, completed_at=None)
    check["output"] = {
        **check["output"],
        "title": output.get("title"),
        "summary": output.get("summary"),
        "annotations_count": len(sent) + len(fresh),
    }
    check["sent"] = [*sent, *fresh]
    return {key: value for key, value in check.items() if key != "sent"}


def _by_id(items: list[dict[str, Any]], number: str) -> dict[str, Any]:
    return next(item for item in items if item["id"] == int(number))
