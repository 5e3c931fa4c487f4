"""The times of a case: samples, spread and the timing verdict. Changes when it says more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ci.results.model import CaseResult, MachineState, Measurement, Timing
from dashboards import sample_chart, timing
from dashboards.formatting import (
    DASH,
    percent,
    plural,
    ratio,
    significant,
    thousandths,
    whole,
)
from dashboards.page_parts import Fact
from dashboards.roofs import Roofs
from dashboards.sample_chart import Strip
from dashboards.tables import Cell, Column, Row, Table
from dashboards.words import BASELINE, VERDICTS

_HZ_PER_MHZ = 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """What one run measured of a case."""

    svg: str
    table: Table
    facts: tuple[Fact, ...]


def times_of(case: CaseResult | None, roofs: Roofs | None) -> Times | None:
    """Return the times of a case as a chart and a table; None where it was not timed."""
    if case is None or timing.median_s(case.cold) is None:
        return None
    known = {
        name: measurement
        for name, measurement in (
            ("Cold", case.cold),
            ("Hot", case.hot),
            (f"{BASELINE}, cold", case.baseline),
        )
        if measurement is not None and timing.median_s(measurement) is not None
    }
    title = f"Samples of {case.id} around their median, in percent"
    return Times(
        svg=sample_chart.strips([_strip(*item) for item in known.items()], title=title),
        table=_table(case, known, roofs),
        facts=_facts(case, known["Cold"], roofs),
    )


def _strip(name: str, measurement: Measurement) -> Strip:
    median_ms = timing.MS_PER_S * (timing.median_s(measurement) or 0.0)
    samples = tuple(timing.MS_PER_S * sample for sample in measurement.samples_s)
    lower, upper = timing.quartiles_s(measurement) or (0.0, 0.0)
    return Strip(
        label=f"{name}: median {significant(median_ms)} ms",
        median=median_ms,
        quartiles=(timing.MS_PER_S * lower, timing.MS_PER_S * upper),
        samples=samples,
    )


def _table(case: CaseResult, known: dict[str, Measurement], roofs: Roofs | None) -> Table:
    return Table(
        caption="Measurements of one run",
        columns=(
            Column(label="Measurement", header=True),
            Column(label="Median", unit="ms", numeric=True),
            Column(label="Noise", unit="IQR, % of median", numeric=True),
            Column(label="Fastest", unit="ms", numeric=True),
            Column(label="Slowest", unit="ms", numeric=True),
            Column(label="Speed", unit="TFLOP/s", numeric=True),
            Column(label="Of the roofline", unit="% of SOL", numeric=True),
            Column(label="Samples", unit="replays", numeric=True),
            Column(label="Batch", unit="launches per sample", numeric=True),
            Column(label="Operands", unit="sets", numeric=True),
        ),
        rows=tuple(_row(case, *item, roofs) for item in known.items()),
    )


def _row(case: CaseResult, name: str, measurement: Measurement, roofs: Roofs | None) -> Row:
    median_s = timing.median_s(measurement) or 0.0
    speed = timing.speed(case, measurement) or 0.0
    # The roof of device memory does not bind a launch whose operands wait in the cache.
    bound = roofs if measurement.cache == "cold" else None
    share = None if bound is None else timing.share_of_roof(case, measurement, bound)
    figures = (
        significant(timing.MS_PER_S * median_s),
        thousandths(100 * (timing.noise(measurement) or 0.0)),
        significant(timing.MS_PER_S * min(measurement.samples_s)),
        significant(timing.MS_PER_S * max(measurement.samples_s)),
        significant(speed / timing.FLOP_PER_TFLOP),
        DASH if share is None else percent(share),
        whole(len(measurement.samples_s)),
        whole(measurement.launches_per_sample),
        whole(measurement.operand_sets),
    )
    return Row(cells=(Cell(text=name), *(Cell(text=figure) for figure in figures)))


def _facts(case: CaseResult, cold: Measurement, roofs: Roofs | None) -> tuple[Fact, ...]:
    baseline, roof = timing.share_of_baseline(case), None
    if roofs is not None:
        roof = timing.share_of_roof(case, cold, roofs)
    speed = (timing.speed(case, cold) or 0.0) / timing.FLOP_PER_TFLOP
    median_ms = timing.MS_PER_S * (timing.median_s(cold) or 0.0)
    facts = [
        Fact(
            label="Time of one launch",
            text=f"{significant(median_ms)} ms",
            note=f"median, operands outside the cache, method {cold.method_version}",
        ),
        Fact(label="Speed", text=f"{significant(speed)} TFLOP/s", note="declared work over time"),
    ]
    if baseline is not None:
        facts.append(
            Fact(label=f"Of {BASELINE}", text=f"{percent(baseline)} %", note="same run, cold")
        )
    if roof is not None:
        facts.append(
            Fact(label="Of the roofline", text=f"{percent(roof)} %", note="least time over time")
        )
    return (*facts, *_state(cold))


def _state(measurement: Measurement) -> tuple[Fact, ...]:
    """Return what the GPU said of itself meanwhile; what it did not say is left out."""
    states = measurement.states
    clocks = [state.sm_clock_hz / _HZ_PER_MHZ for state in states if state.sm_clock_hz is not None]
    powers = [state.power_w for state in states if state.power_w is not None]
    heats = [state.temperature_c for state in states if state.temperature_c is not None]
    told = [f"at most {max(powers):.0f} W"] if powers else []
    told += [f"at most {max(heats):.0f} °C"] if heats else []
    told += _slowdowns(states)
    if not clocks:
        return ()
    text = f"{min(clocks):,.0f} to {max(clocks):,.0f} MHz"
    return (Fact(label="Clock of the GPU", text=text, note=", ".join(told)),)


def _slowdowns(states: Sequence[MachineState]) -> list[str]:
    known = [state.slowdowns for state in states if state.slowdowns is not None]
    seen = Counter(reason for reasons in known for reason in reasons)
    rounds = plural(len(known), "round")
    if not seen:
        return [f"never slowed in {rounds}"] if known else []
    return [f"{reason} in {count:,} of {rounds}" for reason, count in sorted(seen.items())]


def timing_facts(found: Timing | None) -> tuple[Fact, ...]:
    """Return what the timing rule concluded about a case; nothing where it was not timed."""
    if found is None:
        return ()
    facts = [
        Fact(
            label="Head over base",
            text=ratio(found.ratio),
            note=f"{interval(found)}, {plural(found.rounds, 'round')}",
        ),
        Fact(
            label="Base time",
            text=f"{significant(timing.MS_PER_S * found.base_s)} ms",
            note="median",
        ),
        Fact(
            label="Head time",
            text=f"{significant(timing.MS_PER_S * found.head_s)} ms",
            note="median",
        ),
        Fact(label="Setting", text=found.setting, note=other_setting(found)),
    ]
    if found.smallest_detectable:
        facts.append(
            Fact(
                label="Smallest detectable",
                text=ratio(found.smallest_detectable),
                note="head over base that a case as noisy as this would have shown",
            )
        )
    return tuple(facts)


def interval(found: Timing) -> str:
    """Return the interval of the ratio in words."""
    return f"{ratio(found.low)} to {ratio(found.high)}"


def other_setting(found: Timing) -> str:
    """Return what the other setting says of the same rounds, in words."""
    other = "standard" if found.setting == "sensitive" else "sensitive"
    return f"{other}: {VERDICTS[found.other_setting].word.lower()}"
