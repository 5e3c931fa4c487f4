"""The worker process: reads one job from standard input, answers on standard output.

Strangers' code (a suite's ladder.py, and later its kernels) runs here, never in the parent.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

from ci.devices.errors import NoGpuError
from ci.measure.examine import answer_check, answer_inspect, answer_survey
from ci.measure.explain import answer_explain
from ci.measure.messages import (
    Answer,
    Check,
    Explain,
    Inspect,
    Job,
    SetupFailed,
    Survey,
    TimeTiles,
    TryTile,
)
from ci.measure.tiles import answer_time_tiles, answer_try_tile
from ci.measure.wire import read_job, write_answer
from kernels.errors import ToolError

PARENT_DIED = 86
"""Exit code of a worker whose parent is gone."""


def _end_with_parent() -> None:
    """Wait for the end of standard input, which only the parent's death brings, and exit."""
    # Not sys.stdin: a thread that waits inside its lock stops the interpreter from ending.
    while os.read(0, 1):
        pass
    os._exit(PARENT_DIED)


def _answer(job: Job, say: Callable[[Answer], None]) -> None:
    match job:
        case Inspect():
            answer_inspect(job, say)
        case Check():
            answer_check(job, say)
        case Explain():
            answer_explain(job, say)
        case Survey():
            answer_survey(say)
        case TryTile():
            answer_try_tile(job, say)
        case TimeTiles():
            answer_time_tiles(job, say)


def main() -> None:
    """Do one job and exit."""
    job = read_job(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Whatever the suite prints goes to the log; the answers keep the real standard output.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def say(answer: Answer) -> None:
        answers.write(write_answer(answer))
        answers.flush()

    try:
        _answer(job, say)
    except (ToolError, NoGpuError) as error:
        say(SetupFailed(message=str(error)))
    # At once: a kernel that hangs would hold the interpreter's end, which waits for the GPU.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
