"""Which runs count, and how commits are ordered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ci.results.model import Revision
from dashboards.history import histories, ordered_by_topology
from tests.dashboards import example_records as example


def _revision(commit: str, *parents: str, committed: str = "") -> Revision:
    return Revision(
        commit=commit, subject="", committed=committed, parents=parents, described=commit
    )


def _order(revisions: Sequence[Revision]) -> list[str]:
    return [revision.commit for revision in ordered_by_topology(revisions)]


def test_parents_stand_before_children_whatever_their_dates_say() -> None:
    child = _revision("a", "b", committed="2026-01-01T00:00:00Z")
    parent = _revision("b", committed="2026-06-01T00:00:00Z")
    assert _order([child, parent]) == ["b", "a"]


def test_commits_without_a_known_parent_are_ordered_by_instant_not_by_text() -> None:
    early = _revision("b", "x", committed="2026-01-01T10:00:00+09:00")
    late = _revision("a", "y", committed="2026-01-01T02:00:00+00:00")
    assert _order([late, early]) == ["b", "a"]


def test_an_edited_tree_follows_its_commit_and_undated_trees_come_last() -> None:
    dirty = _revision("aa-dirty-0123456789ab", "zz", committed="2025-01-01T00:00:00Z")
    assert _order([dirty, _revision("aa", committed="2026-01-01T00:00:00Z")]) == [
        "aa", "aa-dirty-0123456789ab",
    ]  # fmt: skip
    tree = _revision("tree-0123456789ab")
    assert _order([tree, _revision("zz", committed="2026-01-01T00:00:00Z")])[-1] == tree.commit


def test_a_circle_of_parents_loses_no_commit() -> None:
    assert sorted(_order([_revision("a", "b"), _revision("b", "a")])) == ["a", "b"]


@given(st.lists(st.lists(st.integers(0, 11), max_size=3), min_size=1, max_size=12), st.randoms())
def test_the_order_is_topological_and_does_not_depend_on_the_order_of_records(
    edges: list[list[int]], shuffler: object
) -> None:
    revisions = [
        _revision(f"c{index:02}", *(f"c{parent:02}" for parent in parents if parent < index))
        for index, parents in enumerate(edges)
    ]
    expected = _order(revisions)
    shuffler.shuffle(revisions)  # type: ignore[attr-defined]
    assert _order(revisions) == expected
    for revision in revisions:
        places = [expected.index(parent) for parent in revision.parents]
        assert all(place < expected.index(revision.commit) for place in places)


def test_a_commit_measured_late_does_not_become_the_newest() -> None:
    late = replace(example.record(0), started="2026-12-31T00:00:00Z")
    (history,) = histories([example.record(1), late], [])
    assert [commit.revision.commit for commit in history.commits] == list(example.HASHES[:2])


def test_the_latest_complete_run_of_a_commit_counts() -> None:
    first = replace(example.record(0), run="1", started="2026-03-01T00:00:00Z")
    second = replace(
        example.record(0, factors={"01_naive": 2.0}), run="2", started="2026-03-02T00:00:00Z"
    )
    broken = replace(
        example.record(0, factors={"01_naive": 3.0}),
        run="3", started="2026-03-03T00:00:00Z", complete=False,
    )  # fmt: skip
    (history,) = histories([broken, first, second], [])
    assert [run.run for run in history.commits[0].runs] == ["2", "1", "3"]
    assert history.commits[0].cases[example.case_id("01_naive")] == second.cases[0]


def test_a_run_of_selected_cases_does_not_hide_the_others() -> None:
    whole = replace(example.record(0), run="1")
    selected = replace(whole, run="2", selection="naive", cases=whole.cases[:2])
    (history,) = histories([whole, selected], [])
    assert len(history.case_ids) == len(whole.cases)


def test_the_gates_head_is_shown_and_the_latest_gate_counts() -> None:
    newer = replace(example.gate(), head=example.revision(1), started="2026-03-04T00:00:00Z")
    (history,) = histories(example.three_records(), [newer, example.gate()])
    assert history.shown is not None
    assert history.shown.revision.commit == example.HASHES[1]
