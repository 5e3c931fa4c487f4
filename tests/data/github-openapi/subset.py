"""Cuts GitHub's OpenAPI description down to the operations that the reporter uses.

Usage: ``python subset.py api.github.com.json`` with the file from the package @octokit/openapi.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

OPERATIONS = {
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ("get", "post"),
    "/repos/{owner}/{repo}/issues/comments/{comment_id}": ("patch", "delete"),
    "/repos/{owner}/{repo}/check-runs": ("post",),
    "/repos/{owner}/{repo}/check-runs/{check_run_id}": ("patch",),
    "/repos/{owner}/{repo}/commits/{ref}/check-runs": ("get",),
    "/repos/{owner}/{repo}/pulls/{pull_number}": ("get",),
    "/repos/{owner}/{repo}/compare/{basehead}": ("get",),
}
_LEFT_OUT = ("description", "externalDocs", "x-github", "tags", "summary")


def subset(description: dict[str, Json]) -> dict[str, Json]:
    """Return the operations of ``description`` that are used, with everything they refer to."""
    paths: dict[str, Json] = {}
    for path, methods in OPERATIONS.items():
        item = _object(_object(description["paths"])[path])
        paths[path] = {method: _trimmed(_object(item[method])) for method in methods}
    kept: dict[str, dict[str, Json]] = {}
    todo = list(_references(paths))
    while todo:
        _, _, kind, name = todo.pop().split("/", 3)
        if name not in kept.setdefault(kind, {}):
            part = _object(_object(description["components"])[kind])[name]
            kept[kind][name] = part
            todo.extend(_references(part))
    components: dict[str, Json] = {
        kind: {name: kept[kind][name] for name in sorted(kept[kind])} for kind in sorted(kept)
    }
    return {
        "openapi": description["openapi"],
        "info": description["info"],
        "paths": paths,
        "components": components,
    }


def _trimmed(operation: dict[str, Json]) -> dict[str, Json]:
    """Return an operation without its prose, which no check reads."""
    return {key: value for key, value in operation.items() if key not in _LEFT_OUT}


def _references(value: Json) -> Iterator[str]:
    """Yield every ``$ref`` below ``value``."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str):
                yield item
            else:
                yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        msg = f"expected an object, got {value!r} (is this GitHub's OpenAPI description?)"
        raise TypeError(msg)
    return value


if __name__ == "__main__":
    whole = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    target = Path(__file__).with_name("subset.json")
    target.write_text(json.dumps(subset(whole), separators=(",", ":")) + "\n", encoding="utf-8")
