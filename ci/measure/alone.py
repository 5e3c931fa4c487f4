"""Times the cases of one revision: cold, hot and the vendor library's routine, in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ci.measure.batch import METHOD_VERSION, SAMPLES_A_ROUND, WARM_UP_S, Batch, Survey, cold, hot
from ci.measure.errors import WorkerError
from ci.measure.nvml import GpuWatch
from ci.measure.timing_messages import Estimate, Estimated, Load, Loaded, Opened, Sample, Sampled
from ci.measure.timing_process import CaseRefusedError, TimingProcess
from ci.results.model import MachineState, Measurement

ROUNDS = 3
"""Fresh processes a case is timed in: what they place where differs from one to the next."""

COLD, HOT, BASELINE = "cold", "hot", "baseline"
VARIANTS = (COLD, HOT, BASELINE)
"""What is timed of a case, next to each other, so that their ratios are of one run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Timed:
    """What timing a case brought."""

    measurements: Mapping[str, Measurement]
    """Variant → samples of all rounds; only variants that were timed."""
    trouble: str
    """Why a variant is absent, in words; empty if none is."""


@dataclass(kw_only=True, slots=True)
class _Series:
    """The samples of one variant of one case while rounds are taken."""

    batch: Batch
    samples_s: list[float] = field(default_factory=list)
    states: list[MachineState] = field(default_factory=list)

    def measurement(self, variant: str) -> Measurement:
        """Return what is stored of it."""
        return Measurement(
            method_version=METHOD_VERSION,
            cache=HOT if variant == HOT else COLD,
            launches_per_sample=self.batch.launches,
            operand_sets=self.batch.sets,
            samples_s=tuple(self.samples_s),
            states=tuple(self.states),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Case:
    """What is known of one case while rounds are taken."""

    series: dict[str, _Series] = field(default_factory=dict)
    troubles: dict[str, str] = field(default_factory=dict)
    """Variant → what went wrong with it last."""


def time_alone(
    suite: Path,
    cases: Sequence[str],
    *,
    bench: str,
    cache: Path,
    watch: GpuWatch,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
) -> Mapping[str, Timed]:
    """Return case id → what timing it brought.

    Args:
        suite: Folder of the suite.
        cases: Ids of the cases.
        bench: ``cuda``, or ``clock`` for Python callables.
        cache: Folder of the compile cache.
        watch: The GPU as its management library shows it.
        seed: Of the order of cases.
        say: Told about each round, for people.

    Raises:
        SetupError: This machine lacks something that timing needs.
    """
    random = np.random.default_rng(seed)
    known = {case: _Case() for case in cases}
    for number in range(ROUNDS):
        say(f"timing round {number + 1} of {ROUNDS}: {len(cases)} cases")
        waiting = [
            (cases[index], variant)
            for index in random.permutation(len(cases))
            for variant in VARIANTS
        ]
        while waiting:
            try:
                with _opened(suite, bench, cache) as (process, opened):
                    _serve(process, opened, waiting, known, watch)
            except WorkerError as error:
                for case, variant in waiting:
                    known[case].troubles[variant] = str(error)
                break
    return {case: _timed(each) for case, each in known.items()}


def _serve(
    process: TimingProcess,
    opened: Opened,
    waiting: list[tuple[str, str]],
    known: Mapping[str, _Case],
    watch: GpuWatch,
) -> None:
    """Time what waits until nothing does, or something needs a fresh process."""
    while waiting:
        case, variant = waiting.pop(0)
        try:
            _add(process, opened, case, variant, known[case].series, watch)
        except (CaseRefusedError, WorkerError) as error:
            known[case].troubles[variant] = str(error)
            # A kernel that faulted may have spoilt its process even where that lives on.
            if not (isinstance(error, CaseRefusedError) and error.harmless):
                return


def _add(
    process: TimingProcess,
    opened: Opened,
    case: str,
    variant: str,
    series: dict[str, _Series],
    watch: GpuWatch,
) -> None:
    """Add a round of samples to one variant of one case."""
    baseline = variant == BASELINE
    first = variant not in series
    if first:
        told = process.ask(Estimate(case=case, baseline=baseline), Estimated)
        survey = Survey(launch_s=told.launch_s, set_bytes=told.set_bytes)
        series[variant] = _Series(
            batch=hot([survey], tick_s=opened.tick_s)
            if variant == HOT
            else cold([survey], l2_bytes=opened.l2_bytes, tick_s=opened.tick_s)
        )
    batch = series[variant].batch
    process.ask(
        Load(case=case, baseline=baseline, batch=batch, verify=first, warm_up_s=WARM_UP_S),
        Loaded,
    )
    process.tell(Sample(count=SAMPLES_A_ROUND))
    state = watch.state()
    samples_s = process.hear(Sampled).launch_s
    process.drop()
    series[variant].samples_s += samples_s
    series[variant].states.append(state)


def _timed(case: _Case) -> Timed:
    """Return what became of a case; a variant that was timed in any round counts."""
    timed = {variant: series for variant, series in case.series.items() if series.samples_s}
    troubles = {v: trouble for v, trouble in case.troubles.items() if v not in timed}
    return Timed(
        measurements={variant: series.measurement(variant) for variant, series in timed.items()},
        trouble="; ".join(f"{variant}: {trouble}" for variant, trouble in troubles.items()),
    )


@contextmanager
def _opened(suite: Path, bench: str, cache: Path) -> Iterator[tuple[TimingProcess, Opened]]:
    """Start a process that has the device, and end it."""
    process = TimingProcess(bench)
    try:
        yield process, process.open([suite], cache)
    finally:
        process.end()
