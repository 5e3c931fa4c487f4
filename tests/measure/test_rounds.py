"""Rounds of real processes that time real work: who goes first, what is kept, what is bounded."""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ci.measure import rounds, timing_process
from ci.measure.nvml import GpuWatch
from ci.measure.rounds import BASE, HEAD, Setting, Taken, Turn, take_rounds, turns
from ci.results.model import Round
from tests.measure.clock_suite import case, write_suite

ROOT = Path(__file__).resolve().parents[2]
QUICK = "pass"


def setting(folder: Path, base: dict[str, str], head: dict[str, str] | None = None) -> Setting:
    base_suite = write_suite(folder / "base", base)
    head_suite = write_suite(folder / "head", head) if head is not None else base_suite
    return Setting(
        suites=(base_suite, head_suite),
        bench="clock",
        cache=folder / "cache",
        watch=GpuWatch("GPU-none"),
        usual={},
        seed=1,
    )


def take(where: Setting, rounds: int, *stages: str, budget_s: float = math.inf) -> Taken:
    """Take so many rounds of each stage's case, counting those thrown away."""
    cases = [case(stage) for stage in stages]

    def wanted(taken: Sequence[Round]) -> Sequence[str]:
        return [c for c in cases if sum(entry.case == c for entry in taken) < rounds]

    return take_rounds(where, wanted, budget_s=budget_s)


def test_turns_alternate_so_that_each_side_leads_equally_often() -> None:
    assert turns(4) == [
        Turn(side=BASE, samples=1),
        Turn(side=HEAD, samples=2),
        Turn(side=BASE, samples=2),
        Turn(side=HEAD, samples=2),
        Turn(side=BASE, samples=1),
    ]


def test_rounds_start_fresh_processes_and_alternate_which_side_starts(tmp_path: Path) -> None:
    told = tmp_path / "told"
    note = f"calls == 1 and Path({str(told)!r}).open('a').write(f'{{os.getpid()}} {{{{}}}}\\n')"
    base, head = ({"quick": note.replace("{{}}", side)} for side in ("base", "head"))
    taken = take(setting(tmp_path, base, head), 3, "quick")
    assert [entry.base_started_first for entry in taken.rounds] == [True, False, True]
    processes = [line.split() for line in told.read_text().splitlines()]
    assert [side for _, side in processes] == ["base", "head", "head", "base", "base", "head"]
    assert len({pid for pid, _ in processes}) == 6


def test_every_pair_is_kept_with_its_order_and_a_positive_time(tmp_path: Path) -> None:
    taken = take(setting(tmp_path, {"quick": QUICK}), 1, "quick")
    (entry,) = taken.rounds
    assert not entry.invalid
    assert len(entry.pairs) >= 10
    assert [pair.base_first for pair in entry.pairs] == [
        index % 2 == 0 for index in range(len(entry.pairs))
    ]
    assert all(0 < pair.base_s < 0.01 and 0 < pair.head_s < 0.01 for pair in entry.pairs)


def test_a_head_that_works_more_is_slower_in_every_pair(tmp_path: Path) -> None:
    more = "for _ in range(50):\n    np.matmul(c, c)"
    where = setting(tmp_path, {"work": QUICK}, {"work": more})
    (entry,) = take(where, 1, "work").rounds
    assert all(pair.head_s > pair.base_s for pair in entry.pairs)


def test_both_sides_take_samples_of_the_same_batch(tmp_path: Path) -> None:
    taken = take(setting(tmp_path, {"quick": QUICK}), 2, "quick")
    batch = taken.batches[case("quick")]
    # 3 KiB of operands go round at least twice the 64 KiB that stand for the cache.
    assert batch.sets * 3 * 16 * 16 * 4 >= 2 * (1 << 16)
    assert batch.launches % batch.sets == 0


def test_a_killed_worker_costs_its_own_case_alone(tmp_path: Path) -> None:
    dies = "calls == 50 and os.kill(os.getpid(), signal.SIGKILL)"
    where = setting(tmp_path, {"quick": QUICK, "dies": dies, "calm": QUICK})
    taken = take(where, 2, "quick", "dies", "calm")
    reasons = {entry.invalid for entry in taken.rounds if entry.case == case("dies")}
    assert len(reasons) == 1
    assert "signal 9" in reasons.pop()
    others = [entry for entry in taken.rounds if entry.case != case("dies")]
    assert [entry.invalid for entry in others] == [""] * 4


def test_a_hanging_worker_is_ended_and_its_round_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing_process, "REPLY_LIMIT_S", 4.0)
    hangs = "while calls == 50:\n    pass"
    taken = take(setting(tmp_path, {"hangs": hangs, "quick": QUICK}), 1, "hangs", "quick")
    by_case = {entry.case: entry for entry in taken.rounds}
    assert "said nothing for 4 s" in by_case[case("hangs")].invalid
    assert not by_case[case("quick")].invalid


@pytest.mark.parametrize(("patience_s", "tries"), [(0.5, 1), (60.0, 2)])
def test_a_case_that_hangs_costs_its_wait_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience_s: float, tries: int
) -> None:
    monkeypatch.setattr(timing_process, "REPLY_LIMIT_S", 4.0)
    monkeypatch.setattr(rounds, "_PATIENCE_S", patience_s)
    told = tmp_path / "told"
    hangs = f"if calls == 50:\n    Path({str(told)!r}).open('a').write('x')\n    while True: pass"
    where = setting(tmp_path, {"quick": QUICK}, {"quick": hangs})
    taken = take(where, 2, "quick")
    assert told.read_text() == tries * "x"
    assert ["said nothing for 4 s" in entry.invalid for entry in taken.rounds] == [True] * 2


def test_a_suite_that_does_not_load_throws_every_case_of_the_round_away(tmp_path: Path) -> None:
    where = setting(tmp_path, {"quick": QUICK, "calm": QUICK})
    (where.suites[HEAD] / "product/ladder.py").write_text("LADDER = 1 +\n")
    taken = take(where, 1, "quick", "calm")
    assert ["ladder.py" in entry.invalid for entry in taken.rounds] == [True, True]


def test_a_result_that_changes_when_replayed_is_refused(tmp_path: Path) -> None:
    wrong = "if calls > 4:\n    c[0, 0] = 1e6"
    (entry,) = take(setting(tmp_path, {"wrong": wrong}), 1, "wrong").rounds
    assert "not that of a launch on its own" in entry.invalid


def test_a_spent_budget_ends_the_gate_with_what_it_has(tmp_path: Path) -> None:
    where = setting(tmp_path, {"quick": QUICK})
    assert take(where, 100, "quick", budget_s=0.0).rounds == ()
    taken = take(where, 100, "quick", budget_s=2.5)
    assert 1 <= len(taken.rounds) < 100


def test_the_order_of_cases_is_drawn_anew_each_round(tmp_path: Path) -> None:
    stages = [f"stage_{letter}" for letter in "abcdef"]
    taken = take(setting(tmp_path, dict.fromkeys(stages, QUICK)), 2, *stages)
    first, second = (
        [entry.case for entry in taken.rounds if entry.number == number] for number in (0, 1)
    )
    assert sorted(first) == sorted(second)
    assert first != second


def test_time_is_accounted_to_cases_and_to_what_none_causes(tmp_path: Path) -> None:
    taken = take(setting(tmp_path, {"quick": QUICK, "calm": QUICK}), 1, "quick", "calm")
    assert set(taken.case_s) == {case("quick"), case("calm")}
    assert all(seconds > 0.05 for seconds in taken.case_s.values())
    assert taken.fixed_s > 0.1


@pytest.mark.parametrize("body", ["pass", "while calls > 500:\n    pass"])
def test_timing_processes_end_when_their_parent_is_killed(tmp_path: Path, body: str) -> None:
    told = tmp_path / "pid"
    os.mkfifo(told)
    note = f"if calls == 400:\n    Path({str(told)!r}).open('a').write(str(os.getpid()))\n{body}"
    suite = write_suite(tmp_path / "suite", {"endless": note})
    program = (
        "from pathlib import Path; from ci.measure.timing_process import TimingProcess;"
        "from ci.measure.timing_messages import *; from ci.measure.batch import Batch;"
        f"p = TimingProcess('clock'); p.open([Path({str(suite)!r})], Path('.'));"
        f"p.ask(Load(case={case('endless')!r}, baseline=False,"
        "batch=Batch(launches=1, sets=1), verify=False, warm_up_s=0.02),"
        "Loaded); p.ask(Sample(count=10**9), Sampled)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    # Opening the pipe waits until the worker has written to it.
    worker = int(told.read_text())
    handle = os.pidfd_open(worker)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    try:
        assert select.select([handle], [], [], 5)[0]
    finally:
        os.close(handle)
