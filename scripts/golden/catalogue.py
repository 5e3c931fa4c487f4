"""All forms, with the values that each of them sees."""

from __future__ import annotations

from scripts.golden.matrix_forms import matrix_forms, matrix_sets
from scripts.golden.model import Form, InputSet
from scripts.golden.scalar_forms import scalar_forms
from scripts.golden.values import edge_set, tie_set
from scripts.golden.warp_forms import memory_forms, warp_forms, warp_sets


def all_forms() -> tuple[Form, ...]:
    """Return every form, in the order in which they are recorded."""
    return (*scalar_forms(), *warp_forms(), *memory_forms(), *matrix_forms())


def input_sets(forms: tuple[Form, ...]) -> dict[str, InputSet]:
    """Return the input sets of forms by name; the same for the same forms."""
    special = {**warp_sets(), **matrix_sets(), "ties": tie_set(seed=1)}
    names = dict.fromkeys(form.inputs for form in forms)
    return {
        name: special[name] if name in special else edge_set(tuple(name.split()), seed=number)
        for number, name in enumerate(names)
    }
