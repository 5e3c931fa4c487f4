"""The worker process: reads one job from standard input, answers on standard output.

Strangers' code (a suite's ladder.py, and later its kernels) runs here, never in the parent.
"""

from __future__ import annotations

import os
import sys
import threading

from ci.measure.examine import answer_check, answer_inspect
from ci.measure.messages import Answer, Inspect, SetupFailed
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
        if isinstance(job, Inspect):
            answer_inspect(job, say)
        else:
            answer_check(job, say)
    except ToolError as error:
        say(SetupFailed(message=str(error)))


if __name__ == "__main__":
    main()
