"""One benchmark a ladder and quantity, the same on every machine.

A run of asv measures each commit once (``setup_cache``); the benchmarks only look their figures
up. What the machine or the commit does not have is skipped, what is broken fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ci.asv.measuring import measured
from ci.results.asv_export import benchmark_entry
from ci.results.asv_quantities import (
    QUANTITIES,
    CaseQuantity,
    Figure,
    Parameters,
    Quantity,
    benchmark_name,
    figures,
)
from kernels.spec import Ladder
from kernels.suite import load_suite

_CHECKOUT = Path(__file__).resolve().parents[1]
_SUITE = load_suite(_CHECKOUT / "kernels")

_Cache = Mapping[str, Mapping[Parameters, Figure | None]]
"""Benchmark name → parameters → figure; None: broken, absent: not to be had."""


def _measure_commit() -> _Cache:
    """Measure the commit at hand and return every figure."""
    record = measured(_CHECKOUT)
    return {
        benchmark_name(ladder.name, quantity): figures(
            ladder.name, quantity, record.stages, record.cases
        )
        for ladder in _SUITE.ladders
        for quantity in QUANTITIES
    }


# A commit takes seconds on the simulator and minutes on a GPU; asv's own limit is 60 s.
_measure_commit.timeout = 7200  # type: ignore[attr-defined]
# asv shows the source of what it calls; the quantity's meaning says more.
_measure_commit.pretty_source = ""  # type: ignore[attr-defined]


def _benchmark(ladder: Ladder, quantity: Quantity) -> Callable[..., object] | None:
    """Return asv's benchmark of a quantity, None if the ladder has no size for it."""
    axes = _axes(ladder, quantity)
    if not all(axes):
        return None
    entry = benchmark_entry(ladder.name, quantity, axes)
    name = str(entry["name"])

    def skip(cache: _Cache, *parameters: str) -> None:
        if parameters not in cache[name]:
            msg = f"{', '.join(parameters)}: this machine or commit does not have it"
            raise NotImplementedError(msg)

    def track(cache: _Cache, *parameters: str) -> object:
        figure = cache[name][parameters]
        if figure is None:
            msg = f"{', '.join(parameters)}: did not pass; the record says why"
            raise RuntimeError(msg)
        return {"samples": figure, "number": 1} if isinstance(figure, tuple) else figure

    skip.pretty_source = ""  # type: ignore[attr-defined]
    attributes = {
        "benchmark_name": name,
        "params": axes,
        "param_names": entry["param_names"],
        "unit": entry["unit"],
        "version": entry["version"],
        "pretty_source": entry["code"],
        "setup": skip,
        "setup_cache": _measure_commit,
    }
    for attribute, value in attributes.items():
        setattr(track, attribute, value)
    return track


def _axes(ladder: Ladder, quantity: Quantity) -> Sequence[Sequence[str]]:
    """Return stages, then sizes if the quantity has them."""
    stages = [stage.name for stage in ladder.stages]
    if not isinstance(quantity, CaseQuantity):
        return [stages]
    sizes = [size.label for size in ladder.problem.sizes if size.role.value == quantity.role]
    return [stages, sizes]


for _ladder in _SUITE.ladders:
    for _quantity in QUANTITIES:
        _made = _benchmark(_ladder, _quantity)
        if _made is not None:
            globals()[f"{_ladder.name}_{_quantity.name}"] = _made
