"""Judges requests and answers by GitHub's published OpenAPI description (tests/data)."""

# JSON as it comes from the network, so its types are not ours to state.
# ruff: noqa: ANN401

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from jsonschema import Draft4Validator, ValidationError, validators
from referencing import Registry
from referencing.jsonschema import DRAFT4

DESCRIPTION = json.loads(
    (Path(__file__).parents[1] / "data/github-openapi/subset.json").read_text(encoding="utf-8")
)
_NAME = "urn:github"
_REGISTRY: Registry[Any] = Registry().with_resource(_NAME, DRAFT4.create_resource(DESCRIPTION))
_MOST_COMMENT = 65_536
_MOST_PAGE = 100


def _unless_null(keyword: str) -> Any:
    """Return draft 4's check of a keyword, which OpenAPI 3.0's ``nullable`` switches off."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not (instance is None and schema.get("nullable")):
            yield from Draft4Validator.VALIDATORS[keyword](validator, value, instance, schema)

    return check


_Validator = validators.extend(  # type: ignore[no-untyped-call]
    Draft4Validator, {keyword: _unless_null(keyword) for keyword in ("type", "enum")}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One method of one path of the description."""

    method: str
    path: str
    parameters: Mapping[str, str]
    """What the request's path has in the template's places."""

    @property
    def _item(self) -> Any:
        return DESCRIPTION["paths"][self.path][self.method.lower()]

    def problems(self, url: str, headers: Mapping[str, str], body: bytes) -> list[str]:
        """Return what is wrong with a request, in words; none if GitHub would take it."""
        return [*self._headers(headers), *self._parameters(url), *self._body(headers, body)]

    def answer_problems(self, status: int, answer: object) -> list[str]:
        """Return how an answer differs from the documented one."""
        pointer = ("responses", str(status), "content", "application/json", "schema")
        return self._against(pointer, answer)

    def _headers(self, headers: Mapping[str, str]) -> Iterator[str]:
        expected = {
            "Authorization": r"Bearer \S+",
            "Accept": r"application/vnd\.github\+json",
            "X-GitHub-Api-Version": r"2022-11-28",
            "User-Agent": r".+",
        }
        for name, pattern in expected.items():
            if not re.fullmatch(pattern, headers.get(name, "")):
                yield f"header {name}: {headers.get(name)!r}"

    def _parameters(self, url: str) -> Iterator[str]:
        declared = {p["name"]: p for p in map(_resolved, self._item.get("parameters", []))}
        query = dict(parse_qsl(urlsplit(url).query))
        for name, text in {**self.parameters, **query}.items():
            if name not in declared:
                yield f"parameter {name} is not declared"
                continue
            schema = declared[name]["schema"]
            number = schema.get("type") == "integer" and text.isdecimal()
            value = int(text) if number else text
            for error in _Validator(schema, registry=_REGISTRY).iter_errors(value):
                yield f"parameter {name}: {error.message}"
            # Said in prose only.
            if name == "per_page" and text.isdecimal() and int(text) > _MOST_PAGE:
                yield "per_page above 100"

    def _body(self, headers: Mapping[str, str], body: bytes) -> Iterator[str]:
        if "requestBody" not in self._item:
            if body:
                yield "a body where none is declared"
            return
        if headers.get("Content-Type") != "application/json":
            yield f"content type {headers.get('Content-Type')!r}"
        content = json.loads(body)
        pointer = ("requestBody", "content", "application/json", "schema")
        yield from self._against(pointer, content)
        schema = self._item["requestBody"]["content"]["application/json"]["schema"]
        yield from (f"unknown key {key}" for key in content if key not in schema["properties"])
        # Said in prose only.
        if self.path.startswith("/repos/{owner}/{repo}/issues") and (
            len(str(content.get("body"))) > _MOST_COMMENT
        ):
            yield "comment above 65,536 characters"
        if content.get("status") == "completed" and "conclusion" not in content:
            yield "completed without a conclusion"

    def _against(self, pointer: tuple[str, ...], value: object) -> list[str]:
        keys = ("paths", self.path, self.method.lower(), *pointer)
        place = "/".join(key.replace("~", "~0").replace("/", "~1") for key in keys)
        schema = {"$ref": f"{_NAME}#/{quote(place, safe='/~{}')}"}
        errors: Iterator[ValidationError] = _Validator(schema, registry=_REGISTRY).iter_errors(
            value
        )
        return [f"{'.'.join(map(str, error.path))}: {error.message[-200:]}" for error in errors]


def find(method: str, url: str) -> Operation | None:
    """Return the operation that a request asks for, or None."""
    path = urlsplit(url).path
    for template, item in DESCRIPTION["paths"].items():
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(template))
        match = re.fullmatch(pattern, path)
        if match and method.lower() in item:
            found = {name: unquote(text) for name, text in match.groupdict().items()}
            return Operation(method=method, path=template, parameters=found)
    return None


def example(name: str) -> dict[str, Any]:
    """Return a copy of a published example."""
    copy: dict[str, Any] = json.loads(json.dumps(DESCRIPTION["components"]["examples"][name]))
    value: dict[str, Any] = copy["value"]
    return value


def _resolved(parameter: Any) -> Any:
    reference = parameter.get("$ref", "")
    return (
        DESCRIPTION["components"]["parameters"][reference.rpartition("/")[2]]
        if reference
        else parameter
    )
