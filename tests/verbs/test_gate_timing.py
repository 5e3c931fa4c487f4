"""A gate that would time nothing says so before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.errors import UsageError
from ci.measure.sides import Side, Sides
from ci.verbs.gate import _require_difference
from tests import builders


def side(label: str, commit: str) -> Side:
    return Side(label=label, suite=Path("kernels"), revision=builders.revision(commit))


def test_a_revision_is_not_timed_against_itself() -> None:
    sides = Sides(head=side("head", "a" * 40), base=side("base", "a" * 40), note="")
    with pytest.raises(UsageError, match="--measure-identical"):
        _require_difference(sides)


@pytest.mark.parametrize("base", [None, side("base", "b" * 40)])
def test_two_revisions_or_one_alone_are_accepted(base: Side | None) -> None:
    _require_difference(Sides(head=side("head", "a" * 40), base=base, note=""))
