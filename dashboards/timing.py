"""What the samples of a case tell: median, spread, speed. Changes when it is told otherwise."""

from __future__ import annotations

import statistics

from ci.results.model import CaseResult, Measurement
from dashboards.formatting import significant, with_prefix
from dashboards.roofs import Roofs
from dashboards.words import BASELINE

MS_PER_S = 1e3
FLOP_PER_TFLOP = 1e12


def median_s(measurement: Measurement | None) -> float | None:
    """Return the median of the samples (s); None where there is none that can be a time."""
    if measurement is None or not measurement.samples_s:
        return None
    median = statistics.median(measurement.samples_s)
    return median if median > 0 else None


def quartiles_s(measurement: Measurement | None) -> tuple[float, float] | None:
    """Return the ends of the middle half of the samples (s)."""
    if measurement is None or median_s(measurement) is None:
        return None
    samples = measurement.samples_s
    if len(samples) == 1:
        return samples[0], samples[0]
    lower, _, upper = statistics.quantiles(samples, n=4, method="inclusive")
    return lower, upper


def noise(measurement: Measurement | None) -> float | None:
    """Return the interquartile range of the samples over their median."""
    median, quartiles = median_s(measurement), quartiles_s(measurement)
    if median is None or quartiles is None:
        return None
    return (quartiles[1] - quartiles[0]) / median


def speed(case: CaseResult, measurement: Measurement | None) -> float | None:
    """Return the declared work over the median time (FLOP/s)."""
    median = median_s(measurement)
    return None if median is None else case.flops / median


def share_of_baseline(case: CaseResult) -> float | None:
    """Return the baseline's median over the stage's, both of one run: 1 is as fast."""
    baseline, cold = median_s(case.baseline), median_s(case.cold)
    return None if baseline is None or cold is None else baseline / cold


def share_of_roof(case: CaseResult, measurement: Measurement | None, roofs: Roofs) -> float | None:
    """Return the least time of the case's size over the median time: 1 is the speed of light."""
    median = median_s(measurement)
    if median is None:
        return None
    return roofs.least_s(case.flops, case.compulsory_bytes) / median


def disbelief(case: CaseResult | None, roofs: Roofs | None) -> str:
    """Return why a time of the case cannot be true: it is beyond the roofs. Empty if it can."""
    if case is None or roofs is None:
        return ""
    for name, measurement in ((case.stage, case.cold), (BASELINE, case.baseline)):
        time_s = median_s(measurement)
        if time_s is None or roofs.believes(time_s, case.flops, case.compulsory_bytes):
            continue
        least_ms = MS_PER_S * roofs.least_s(case.flops, case.compulsory_bytes)
        return (
            f"{case.id}: {name} took {significant(MS_PER_S * time_s)} ms, faster than the "
            f"roofline allows: {with_prefix(case.flops, 'FLOP')} and "
            f"{with_prefix(case.compulsory_bytes, 'B')} need at least {significant(least_ms)} ms. "
            f"Check the formulas for flops and compulsory_bytes that ladder {case.ladder} declares."
        )
    return ""
