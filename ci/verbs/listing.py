"""``flopwatch list``: the cases of a suite, those of other devices too."""

from __future__ import annotations

import json
import sys

from ci.errors import UsageError
from ci.select import selector
from ci.verbs.context import checkout_root
from kernels.spec import Case
from kernels.suite import load_suite


def run(*, suite: str, selection: str, form: str) -> int:
    """Print the selected cases."""
    loaded = load_suite(checkout_root() / suite)
    selects = selector(selection)
    cases = [case for case in loaded.cases() if selects(case.id)]
    if not cases:
        total = len(loaded.cases())
        msg = f"-k '{selection}' selects none of {total} cases (flopwatch list shows them)"
        raise UsageError(msg)
    sys.stdout.write(_FORMS[form](loaded.name, cases))
    return 0


def _text(suite: str, cases: list[Case]) -> str:
    width = max(len(case.id) for case in cases)
    rows = [
        f"{case.id:{width}}  {case.size.role.value:5}  {' or '.join(case.devices)}"
        for case in cases
    ]
    stages = len({(case.ladder.name, case.stage.name) for case in cases})
    rows.append(f"{suite}: {stages} stages, {len(cases)} cases")
    return "\n".join(rows) + "\n"


def _json(suite: str, cases: list[Case]) -> str:
    rows = [
        {
            "id": case.id,
            "suite": suite,
            "ladder": case.ladder.name,
            "stage": case.stage.name,
            "size": case.size.as_dict(),
            "role": case.size.role.value,
            "devices": list(case.devices),
            "idea": case.stage.idea,
        }
        for case in cases
    ]
    return json.dumps(rows, indent=2, allow_nan=False) + "\n"


def _markdown(suite: str, cases: list[Case]) -> str:
    del suite
    rows = ["| case | role | devices | idea |", "|---|---|---|---|"]
    rows += [
        f"| `{case.id}` | {case.size.role.value} | {', '.join(case.devices)} | {case.stage.idea} |"
        for case in cases
    ]
    return "\n".join(rows) + "\n"


_FORMS = {"text": _text, "json": _json, "markdown": _markdown}
