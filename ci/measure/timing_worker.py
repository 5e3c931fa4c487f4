"""The timing process of one side: told what to do line by line, alone with its operands.

Started as ``python -m ci.measure.timing_worker BENCH`` with ``cuda``, or ``clock`` to time Python
callables with the processor's clock.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ci.check.errors import CheckError
from ci.devices.errors import DeviceError, NoBaselineError, NoGpuError
from ci.measure.batch import WARM_UP_LAUNCHES, survey_launches
from ci.measure.bench import Bench, BenchError, Placed, Replay, Routine, require_all_worked_on
from ci.measure.clock_bench import ClockBench
from ci.measure.messages import SetupFailed
from ci.measure.timing_messages import (
    Command,
    Drop,
    Dropped,
    Estimate,
    Estimated,
    Load,
    Loaded,
    Open,
    Opened,
    Refused,
    Reply,
    Sample,
    Sampled,
)
from ci.measure.wire import read_command, write_reply
from kernels.errors import KernelError, ToolError
from kernels.spec import Case, Suite
from kernels.suite import load_suite

PARENT_DIED = 86
"""Exit code of a process whose parent is gone and that could not end in good order."""

_LAST_WORDS_S = 3.0
"""How long a process may take to end in good order."""


OpenBench = Callable[[Open, Sequence[Suite]], Bench]
"""Takes a device for suites."""


class TimingWorker:
    """One side of a comparison in one process: answers commands one by one."""

    def __init__(self, open_bench: OpenBench) -> None:
        """Start without a device."""
        self._open_bench = open_bench
        self._bench: Bench | None = None
        self._cases: dict[str, Case] = {}
        self._placed: tuple[Placed, ...] = ()
        self._replay: Replay | None = None
        self._launches = 0
        self._first: tuple[Routine, NDArray[np.generic]] | None = None

    def answer(self, command: Command) -> Reply:
        """Do what a command says and return the reply."""
        try:
            return self._done(command)
        except (NoGpuError, ToolError) as error:
            return SetupFailed(message=str(error))
        except NoBaselineError as error:
            return Refused(message=str(error), harmless=True)
        except (BenchError, CheckError, DeviceError, KernelError) as error:
            return Refused(message=str(error))

    def _done(self, command: Command) -> Reply:
        match command:
            case Open():
                return self._open(command)
            case Estimate():
                return self._estimate(self._routine(command))
            case Load():
                return self._load(command)
            case Sample():
                return self._sample(command.count)
            case Drop():
                return self._drop()

    def _open(self, command: Open) -> Opened:
        suites = [load_suite(Path(folder)) for folder in command.suites]
        self._cases = {case.id: case for suite in suites for case in suite.cases()}
        self._bench = self._open_bench(command, suites)
        return Opened(l2_bytes=self._bench.l2_bytes, tick_s=self._bench.tick_s)

    def _estimate(self, routine: Routine) -> Estimated:
        bench = self._opened()
        placed = bench.place(routine, 1)
        self._first_output(routine, placed[0])
        launch_s = min(bench.record([placed]).time(2))
        launches = survey_launches(launch_s)
        if launches > 1:
            launch_s = min(bench.record([list(placed) * launches]).time(2)) / launches
        return Estimated(launch_s=launch_s, set_bytes=bench.set_bytes(routine))

    def _load(self, command: Load) -> Loaded:
        bench, batch, routine = self._opened(), command.batch, self._routine(command)
        self._placed, self._replay = (), None
        self._placed = tuple(bench.place(routine, batch.sets))
        # On its own first: it finds a kernel that hangs or faults where words can be had for it.
        self._placed[0].launch()
        self._replay = bench.record(
            [[self._placed[number] for number in order] for order in batch.orders(command.more)]
        )
        self._launches = batch.launches
        if command.verify:
            right = self._first_output(routine, self._placed[0])
            require_all_worked_on(self._placed, self._replay, batch, right)
        return Loaded(sample_s=self._warm_up(self._replay, command.warm_up_s))

    def _first_output(self, routine: Routine, placed: Placed) -> NDArray[np.generic]:
        """Return the output of a launch on its own; the first one asked for, of a routine."""
        if self._first is None or self._first[0] != routine:
            placed.poison()
            placed.launch()
            self._first = (routine, placed.output())
        return self._first[1]

    def _warm_up(self, replay: Replay, least_s: float) -> float:
        """Replay until the device has settled on the case, and return the last replay's time."""
        started = time.monotonic()
        done = 1
        sample_s = 0.0
        while done < WARM_UP_LAUNCHES or time.monotonic() - started < least_s:
            (sample_s,) = replay.time(1)
            done += 2 * self._launches
        return sample_s

    def _sample(self, count: int) -> Sampled:
        if self._replay is None:
            msg = "no case is loaded"
            raise BenchError(msg)
        times_s = self._replay.time(count)
        if min(times_s) <= 0:
            msg = f"the timer says that {self._launches} launches took {min(times_s)} s"
            raise BenchError(msg)
        return Sampled(launch_s=tuple(seconds / self._launches for seconds in times_s))

    def _drop(self) -> Dropped:
        self._placed, self._replay = (), None
        self._opened().drop()
        return Dropped()

    def _opened(self) -> Bench:
        if self._bench is None:
            msg = "the device is not open"
            raise BenchError(msg)
        return self._bench

    def _routine(self, command: Estimate | Load) -> Routine:
        if command.case not in self._cases:
            msg = f"the suites have no case {command.case}"
            raise BenchError(msg)
        return Routine(case=self._cases[command.case], baseline=command.baseline)


def _cuda() -> OpenBench:
    """Return what opens the GPU; imported late, because CuPy is there only beside one."""
    from ci.measure.cuda_bench import CudaBench  # noqa: PLC0415

    return lambda command, suites: CudaBench(suites, cache=Path(command.cache))


def _clock() -> OpenBench:
    return lambda _command, _suites: ClockBench()


_BENCHES: dict[str, Callable[[], OpenBench]] = {"cuda": _cuda, "clock": _clock}
"""What is timed with → what opens it. Importing comes first, in both sides' processes at once."""


def _read_lines(lines: queue.Queue[bytes]) -> None:
    """Pass on the lines of standard input; its end is the end of the parent, or its wish.

    A main thread that is stuck in a kernel does not come to hear of it and is ended from here.
    """
    pending = b""
    # Not sys.stdin: a thread that waits inside its lock stops the interpreter from ending.
    while chunk := os.read(0, 1 << 16):
        *whole, pending = (pending + chunk).split(b"\n")
        for line in whole:
            lines.put(line)
    lines.put(b"")
    time.sleep(_LAST_WORDS_S)
    os._exit(PARENT_DIED)


def main() -> None:
    """Answer commands until standard input ends."""
    worker = TimingWorker(_BENCHES[sys.argv[1]]())
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read_lines, args=(lines,), daemon=True).start()
    # Whatever the suite prints goes to the log; the replies keep the real standard output.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while line := lines.get():
        replies.write(write_reply(worker.answer(read_command(line))))
        replies.flush()


if __name__ == "__main__":
    main()
