"""Covering arrays: few combinations of factors in which every pair of levels occurs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

Choice = tuple[int, int]
"""(factor index, level index)."""

Pair = tuple[Choice, Choice]
"""Choices of two factors, the lower factor first."""

Masking = frozenset[tuple[str, int]]
"""(factor, level index) of levels that hide what the other factors do, such as a scalar 0."""


def covering_rows(
    levels: Mapping[str, int], masking: Masking = frozenset()
) -> tuple[dict[str, int], ...]:
    """Return rows, one level index a factor, that have every pair of levels of two factors.

    A row with a masking level counts only for the pairs of that level: what it hides must occur
    in a row that shows it. Deterministic: the same factors give the same rows. There are at least
    as many as the product of the two largest numbers of levels, and in practice little more.

    Args:
        levels: Factor → its number of levels, at least 1.
        masking: The levels that hide the others.

    Source: greedy density algorithm of Bryce & Colbourn, Software Testing, Verification and
    Reliability 17 (2007) 159, without its dice; masking as in Yilmaz et al., IEEE Trans. Software
    Eng. 40 (2014) 43.
    """
    names = list(levels)
    hiding = _choices(names, masking)
    missing = _all_pairs(list(levels.values()))
    rows = []
    while missing:
        row = _next_row(list(levels.values()), hiding, missing)
        missing -= _pairs_shown(row, hiding)
        chosen = dict(row)
        rows.append({name: chosen[factor] for factor, name in enumerate(names)})
    return tuple(rows)


def missing_pairs(
    levels: Mapping[str, int],
    rows: Iterable[Mapping[str, int]],
    masking: Masking = frozenset(),
) -> tuple[tuple[tuple[str, int], tuple[str, int]], ...]:
    """Return the pairs of (factor, level index) that no row shows, in factor order."""
    names = list(levels)
    hiding = _choices(names, masking)
    missing = _all_pairs(list(levels.values()))
    for row in rows:
        missing -= _pairs_shown([(f, row[name]) for f, name in enumerate(names)], hiding)
    return tuple(((names[f], i), (names[g], j)) for (f, i), (g, j) in sorted(missing))


def _choices(names: Sequence[str], masking: Masking) -> frozenset[Choice]:
    return frozenset((names.index(name), level) for name, level in masking)


def _all_pairs(counts: Sequence[int]) -> set[Pair]:
    return {
        ((f, i), (g, j))
        for f, g in itertools.combinations(range(len(counts)), 2)
        for i in range(counts[f])
        for j in range(counts[g])
    }


def _pairs_shown(row: Iterable[Choice], hiding: frozenset[Choice]) -> set[Pair]:
    choices = sorted(row)
    masks = hiding.intersection(choices)
    return {pair for pair in itertools.combinations(choices, 2) if masks <= set(pair)}


def _next_row(counts: Sequence[int], hiding: frozenset[Choice], missing: set[Pair]) -> list[Choice]:
    """Return the row grown from a missing pair, each factor showing the most missing pairs."""
    row = list(min(missing, key=lambda pair: (not hiding.isdisjoint(pair), pair)))
    rest = set(range(len(counts))) - {factor for factor, _ in row}
    for factor in sorted(rest, key=lambda f: (-counts[f], f)):

        def worth(choice: Choice) -> tuple[bool, int, int]:
            shown = _pairs_shown([*row, choice], hiding) & missing
            # Among equals the next level of a diagonal: three large factors fill a Latin square.
            off = (choice[1] - sum(level for _, level in row)) % counts[choice[0]]
            return choice not in hiding, len(shown), -off

        row.append(max(((factor, level) for level in range(counts[factor])), key=worth))
    return row
