"""The trusted attention: ``softmax(scale * Q @ K.T under a mask) @ V`` for each batch and head."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ci.check.combination import Contents, Draft
from ci.check.reference import (
    Doubles,
    Expected,
    Inputs,
    KnownAnswer,
    Reference,
    Scalars,
    doubles,
)
from ci.check.streams import softmax_rows
from kernels.operands import Floats, Matrix
from kernels.spec import Problem

NO_MASK, ADDITIVE, CAUSAL = 0, 1, 2
"""Levels of the scalar ``mask``."""

_MOST_SCORES = 1 << 25
"""Scores computed in float64 at most; of a larger problem some heads stand for all."""
_SAMPLED_HEADS = 2


def attention_float64(inputs: Inputs, scalars: Scalars) -> Expected:
    """Return the attention of every head in float64; of a large problem, of the first and last.

    A key under a mask of -inf, or behind its query under a causal one, takes no part: not even
    its NaN (pytorch#101967). A query that sees no key gets zeros, as in PyTorch and FlashAttention.

    Args:
        inputs: Q, K, V [B*H*S, D], Mask [S, S], float32.
        scalars: scale, and mask: 0 none, 1 additive, 2 causal.
    """
    length = inputs["Mask"].shape[1]
    rows, columns = inputs["Q"].shape
    heads = rows // length
    chosen = range(heads)
    if heads * length * length > _MOST_SCORES:
        chosen = range(0, heads, max(1, (heads - 1) // (_SAMPLED_HEADS - 1)))
    value, condition = np.zeros((rows, columns)), np.zeros((rows, columns))
    computed = np.zeros(rows, dtype=np.bool_)
    for head in chosen:
        here = slice(head * length, (head + 1) * length)
        q, k, v = (doubles(inputs[name][here]) for name in ("Q", "K", "V"))
        value[here], condition[here] = _one_head(q, k, v, inputs["Mask"], scalars)
        computed[here] = True
    return Expected(value=value, condition=condition, rows=None if computed.all() else computed)


def _one_head(
    q: Doubles, k: Doubles, v: Doubles, mask: Floats, scalars: Scalars
) -> tuple[Doubles, Doubles]:
    """Return the value and the condition of one head, [S, D] each."""
    scale = scalars["scale"]
    with np.errstate(invalid="ignore"):
        scores, moved = scale * (q @ k.T), abs(scale) * (np.abs(q) @ np.abs(k).T)
        hidden = np.zeros(scores.shape, dtype=np.bool_)
        if scalars["mask"] == ADDITIVE:
            hidden = np.isneginf(mask)
            scores = scores + np.where(hidden, 0.0, mask)
        elif scalars["mask"] == CAUSAL:
            hidden = np.triu(np.ones(scores.shape, dtype=np.bool_), k=1)
        weights, distance = softmax_rows(np.where(hidden, -np.inf, scores))
        moved = np.where(hidden, 0.0, moved)
        value = _weighted(weights, v, hidden)
        # A score that is off by e makes its weight off by a share of e, and all others through the
        # sum. What is off in a dot product of D terms grows with the sum of their sizes.
        off = 8 + distance + moved
        spread = (weights * off).sum(axis=1, keepdims=True)
        condition = _weighted(weights * (off + spread), np.abs(v), hidden)
    return value, condition


def _weighted(weights: Doubles, v: Doubles, hidden: NDArray[np.bool_]) -> Doubles:
    """Return ``weights @ v`` in which a hidden key takes no part, whatever it holds."""
    special = ~np.isfinite(v)
    total: Doubles = weights @ np.where(special, 0.0, v)
    for key in np.flatnonzero(special.any(axis=1)):
        seen = ~hidden[:, key]
        total[seen] += np.where(special[key], weights[seen, key, None] * v[key], 0.0)
    return total


def _drafts(problem: Problem, tiles: Mapping[str, int]) -> tuple[Draft, ...]:
    del problem
    long = 2 * tiles["S"] + 4

    def at(length: int, mask: int, contents: Contents = Contents.RANDOM) -> Draft:
        size = {"B": 1, "H": 2, "S": length, "D": 64}
        return Draft(size=size, scalars={"scale": 0.125, "mask": mask}, contents=contents)

    return (
        *(at(long, mask) for mask in (NO_MASK, ADDITIVE, CAUSAL)),
        # pytorch#101967: NaN in keys and values that nobody may see.
        at(37, ADDITIVE, Contents.NOT_FINITE),
        at(long, CAUSAL, Contents.NOT_FINITE),
        # pytorch#119131: scores of 784,449, far beyond what half precision holds.
        at(40, NO_MASK, Contents.EXTREME),
        at(40, CAUSAL, Contents.EXTREME),
        # jax#27224: a length that is no multiple of the block.
        at(192, NO_MASK),
    )


def _not_finite(matrices: Mapping[str, Matrix]) -> None:
    """Hide the last key from all queries but the last one, and make it and its value NaN."""
    length = matrices["Mask"].shape[1]
    for name in ("K", "V"):
        matrices[name].logical()[length - 1 :: length] = np.nan
    mask = matrices["Mask"].logical()
    mask[: length - 1, length - 1] = -np.inf


def _extreme(matrices: Mapping[str, Matrix]) -> None:
    for name, factor in (("Q", 576.0), ("K", 383.0)):
        matrices[name].fill(matrices[name].numbers() * np.float32(factor / 8))


ATTENTION = Reference(
    compute=attention_float64,
    scalars={"scale": (0.125, 1.0), "mask": (NO_MASK, ADDITIVE, CAUSAL)},
    unread=lambda scalars: frozenset(() if scalars["mask"] == ADDITIVE else {"Mask"}),
    extents={"B": (1, 2), "H": (1, 2), "D": (64, 128)},
    contents=(Contents.RANDOM,),
    directed=_drafts,
    inject={Contents.NOT_FINITE: _not_finite, Contents.EXTREME: _extreme},
    known=KnownAnswer(
        # Equal scores: the queries see two keys, one, and none. The mean of the two values needs
        # one bit more than float32 has.
        inputs={
            "Q": np.array([[1.0], [2.0], [3.0]], dtype=np.float32),
            "K": np.array([[5.0], [5.0], [5.0]], dtype=np.float32),
            "V": np.array([[4.0], [5.0 + 2.0**-21], [3.0]], dtype=np.float32),
            "Mask": np.array(
                [[0, 0, -np.inf], [-np.inf, 0, -np.inf], [-np.inf] * 3], dtype=np.float32
            ),
        },
        scalars={"scale": 1.0, "mask": ADDITIVE},
        answer=np.array([[4.5 + 2.0**-22], [5 + 2.0**-21], [0.0]]),
    ),
)
