"""Times two sides of a gate round by round: fresh processes, alternating samples, all kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ci.gate.validity import Range, why_invalid
from ci.measure.batch import (
    WARM_UP_AGAIN_S,
    WARM_UP_S,
    Batch,
    Survey,
    cold_parts,
    pair_count,
)
from ci.measure.controls import Controls
from ci.measure.errors import WorkerError
from ci.measure.nvml import UNKNOWN, GpuWatch, summarised
from ci.measure.timing_messages import Estimate, Estimated, Load, Loaded, Opened, Sample, Sampled
from ci.measure.timing_process import CaseRefusedError, TimingProcess
from ci.results.model import MachineState, Pair, Round

BASE, HEAD = 0, 1
"""Sides, as indices."""

_READINGS = 4
"""About so many times a round and case the state of the machine is read at each side."""

_PATIENCE_S = 10.0
"""A case that fails after longer is not tried again: it hangs, and would do so each time."""

Wanted = Callable[[Sequence[Round]], Sequence[str]]
"""All rounds so far → ids of the cases to measure in the next one; none: it is over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """Where and with what rounds are taken."""

    suites: tuple[Path, Path]
    """Folders of base's suite and of head's."""
    bench: str
    """``cuda``, or ``clock`` for Python callables."""
    cache: Path
    """Folder of the compile cache."""
    watch: GpuWatch
    usual: Mapping[str, Range]
    """Field of MachineState → where this machine usually is."""
    seed: int
    """Of the order of cases."""
    controls: Controls | None = None
    """Measured like cases where they are asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """All rounds of a gate and what they cost."""

    rounds: tuple[Round, ...]
    batches: Mapping[str, Batch]
    """Case id → what a sample of it is."""
    fixed_s: float
    """Time that no case causes: starting processes and opening the GPU (s)."""
    case_s: Mapping[str, float]
    """Case id → time spent on its rounds (s)."""
    interrupted: bool = False
    """Whether Ctrl-C ended it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """A side's turn on the GPU: so many samples in a row."""

    side: int
    samples: int


@dataclass(kw_only=True, slots=True)
class _Team:
    """The two processes of a round."""

    processes: tuple[TimingProcess, TimingProcess]
    """Base's and head's."""
    order: tuple[int, int]
    """Which side starts and allocates first."""
    opened: Opened
    warm: bool = False
    """Whether both have worked on a case."""


def take_rounds(
    setting: Setting,
    wanted: Wanted,
    *,
    budget_s: float,
    keep: Callable[[Round], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Taken:
    """Take rounds until none is wanted, the time is up or Ctrl-C comes, and return all of them.

    Args:
        setting: Where and with what.
        wanted: Says after each round which cases the next one measures.
        budget_s: Time for all rounds (s); what is open when it is spent stays open.
        keep: Called with each round once it is over.
        say: Told about each round, for people.

    Raises:
        SetupError: This machine lacks something that timing needs.
    """
    return _Rounds(setting, budget_s, keep).take(wanted, say)


def turns(pairs: int) -> list[Turn]:
    """Return the turns of so many pairs: base head, head base, base head, and so on.

    Args:
        pairs: An even number, so that both orders occur equally often.
    """
    sides = [side for pair in range(pairs) for side in ((BASE, HEAD), (HEAD, BASE))[pair % 2]]
    found: list[Turn] = []
    for side in sides:
        if found and found[-1].side == side:
            found[-1] = Turn(side=side, samples=found[-1].samples + 1)
        else:
            found.append(Turn(side=side, samples=1))
    return found


class _Rounds:
    """The rounds of one gate while they are taken."""

    def __init__(self, setting: Setting, budget_s: float, keep: Callable[[Round], None]) -> None:
        self._setting = setting
        self._keep = keep
        self._started = time.monotonic()
        self._deadline = self._started + budget_s
        self._random = np.random.default_rng(setting.seed)
        self._rounds: list[Round] = []
        self._batches: dict[str, Batch] = {}
        self._verified: set[str] = set()
        self._case_s: dict[str, float] = {}
        self._given_up: dict[str, str] = {}

    def take(self, wanted: Wanted, say: Callable[[str], None]) -> Taken:
        """Take rounds until none is wanted or the time is up."""
        number = 0
        interrupted = False
        try:
            while not self._late() and (cases := wanted(self._rounds)):
                left_s = self._deadline - time.monotonic()
                until = f", {left_s:.0f} s left" if left_s < np.inf else ""
                say(f"timing round {number + 1}: {len(cases)} cases{until}")
                self._round(number, cases)
                number += 1
        except KeyboardInterrupt:
            interrupted = True
            say("interrupted: what is measured is kept")
        spent_s = time.monotonic() - self._started
        return Taken(
            rounds=tuple(self._rounds),
            batches=dict(self._batches),
            fixed_s=spent_s - sum(self._case_s.values()),
            case_s=dict(self._case_s),
            interrupted=interrupted,
        )

    def _late(self) -> bool:
        return time.monotonic() >= self._deadline

    def _round(self, number: int, cases: Sequence[str]) -> None:
        """Measure each case once, or as many as the time allows, in an order drawn anew."""
        drawn = [cases[index] for index in self._random.permutation(len(cases))]
        waiting = [case for case in drawn if case not in self._given_up]
        for case in drawn:
            if case in self._given_up:
                self._throw_away(number, case, self._given_up[case])
        while waiting and not self._late():
            try:
                with self._team(number) as team:
                    self._serve(team, number, waiting)
            except WorkerError as error:
                # The GPU could not be opened: nothing tells one waiting case from the others.
                for case in waiting:
                    self._throw_away(number, case, str(error))
                return

    def _serve(self, team: _Team, number: int, waiting: list[str]) -> None:
        """Measure the waiting cases until none is left or one of them needs a fresh team."""
        while waiting and not self._late():
            case = waiting.pop(0)
            started = time.monotonic()
            try:
                self._add(self._measure(team, number, case))
            except (CaseRefusedError, WorkerError) as error:
                # A kernel that faulted may have spoilt its process even where that lives on.
                self._throw_away(number, case, str(error))
                if time.monotonic() - started > _PATIENCE_S:
                    self._given_up[case] = str(error)
                return
            finally:
                spent_s = time.monotonic() - started
                self._case_s[case] = self._case_s.get(case, 0.0) + spent_s

    @contextmanager
    def _team(self, number: int) -> Iterator[_Team]:
        """Start a process a side, and end both; which side goes first alternates."""
        order = _order(number)
        processes = (TimingProcess(self._setting.bench), TimingProcess(self._setting.bench))
        try:
            opened = [
                processes[side].open(self._suites(side), self._setting.cache) for side in order
            ]
            yield _Team(processes=processes, order=order, opened=opened[0])
        finally:
            for process in processes:
                process.ask_to_end()
            for process in processes:
                process.end()

    def _measure(self, team: _Team, number: int, case: str) -> Round:
        """Return a round of one case: both sides load, then take turns."""
        batch = self._batch(team, case)
        loads = [
            Load(
                case=self._runs(case),
                baseline=False,
                batch=batch,
                verify=case not in self._verified,
                warm_up_s=WARM_UP_AGAIN_S if team.warm else WARM_UP_S,
                more=math.ceil(self._slowed(case) * batch.launches) if side == HEAD else 0,
            )
            for side in (BASE, HEAD)
        ]
        loaded = [team.processes[side].ask(loads[side], Loaded) for side in team.order]
        self._verified.add(case)
        team.warm = True
        pairs = pair_count(max(each.sample_s for each in loaded))
        samples, states = self._alternate(team, turns(pairs))
        for process in team.processes:
            process.drop()
        base, head = (summarised(states[side]) for side in (BASE, HEAD))
        return Round(
            case=case,
            number=number,
            base_started_first=team.order[0] == BASE,
            pairs=tuple(
                Pair(base_s=base_s, head_s=head_s, base_first=index % 2 == 0)
                for index, (base_s, head_s) in enumerate(
                    zip(samples[BASE], samples[HEAD], strict=True)
                )
            ),
            base_state=base,
            head_state=head,
            invalid=why_invalid(base, head, self._setting.usual),
        )

    def _runs(self, case: str) -> str:
        """Return the case that both sides run: a control's, or the case itself."""
        controls = self._setting.controls
        return controls.cases.get(case, case) if controls else case

    def _slowed(self, case: str) -> float:
        """Return the share of launches that head makes more of."""
        controls = self._setting.controls
        return controls.slowed.get(case, 0.0) if controls else 0.0

    def _suites(self, side: int) -> list[Path]:
        controls = self._setting.controls
        return [self._setting.suites[side], *([controls.suite] if controls else [])]

    def _batch(self, team: _Team, case: str) -> Batch:
        """Return what a sample of a case is, agreed between the sides once a gate."""
        if case not in self._batches:
            ask = Estimate(case=self._runs(case), baseline=False)
            told = [team.processes[side].ask(ask, Estimated) for side in team.order]
            surveys = [Survey(launch_s=t.launch_s, set_bytes=t.set_bytes) for t in told]
            self._batches[case] = cold_parts(
                surveys, l2_bytes=team.opened.l2_bytes, tick_s=team.opened.tick_s
            )
        return self._batches[case]

    def _alternate(
        self, team: _Team, schedule: Sequence[Turn]
    ) -> tuple[list[list[float]], list[list[MachineState]]]:
        """Return each side's samples in order, and what the machine showed meanwhile."""
        samples: list[list[float]] = [[], []]
        states: list[list[MachineState]] = [[], []]
        stride = max(1, len(schedule) // (2 * _READINGS))
        for index, turn in enumerate(schedule):
            process = team.processes[turn.side]
            process.tell(Sample(count=turn.samples))
            if index // 2 % stride == 0:
                # While the side works: between turns the GPU would be seen idle.
                states[turn.side].append(self._setting.watch.state())
            samples[turn.side] += process.hear(Sampled).launch_s
        return samples, states

    def _add(self, entry: Round) -> None:
        self._rounds.append(entry)
        self._keep(entry)

    def _throw_away(self, number: int, case: str, reason: str) -> None:
        self._add(
            Round(
                case=case,
                number=number,
                base_started_first=_order(number)[0] == BASE,
                pairs=(),
                base_state=UNKNOWN,
                head_state=UNKNOWN,
                invalid=reason,
            )
        )


def _order(number: int) -> tuple[int, int]:
    """Return which side starts first in a round, then the other."""
    return (BASE, HEAD) if number % 2 == 0 else (HEAD, BASE)
