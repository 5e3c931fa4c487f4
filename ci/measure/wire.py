"""Messages between a run and its workers as bytes: one line of strict JSON each."""

from __future__ import annotations

import json
import typing

from ci.measure.errors import WorkerError
from ci.measure.messages import Answer, Job
from ci.measure.timing_messages import Command, Reply
from ci.results import codec
from ci.results.errors import ResultsError

_JOBS = {kind.__name__: kind for kind in typing.get_args(Job)}
_ANSWERS = {kind.__name__: kind for kind in typing.get_args(Answer)}
_COMMANDS = {kind.__name__: kind for kind in typing.get_args(Command)}
_REPLIES = {kind.__name__: kind for kind in typing.get_args(Reply)}


def write_job(job: Job) -> bytes:
    """Return a job as one line."""
    return _line(job)


def write_answer(answer: Answer) -> bytes:
    """Return an answer as one line."""
    return _line(answer)


def read_job(line: bytes) -> Job:
    """Return the job a line holds.

    Raises:
        WorkerError: The line holds no job.
    """
    return typing.cast("Job", _read(line, _JOBS, "a job"))


def read_answer(line: bytes) -> Answer:
    """Return the answer a line holds.

    Raises:
        WorkerError: The line holds no answer.
    """
    return typing.cast("Answer", _read(line, _ANSWERS, "an answer"))


def write_command(command: Command) -> bytes:
    """Return a command to a timing process as one line."""
    return _line(command)


def write_reply(reply: Reply) -> bytes:
    """Return a timing process's reply as one line."""
    return _line(reply)


def read_command(line: bytes) -> Command:
    """Return the command a line holds.

    Raises:
        WorkerError: The line holds no command.
    """
    return typing.cast("Command", _read(line, _COMMANDS, "a command"))


def read_reply(line: bytes) -> Reply:
    """Return the reply a line holds.

    Raises:
        WorkerError: The line holds no reply.
    """
    return typing.cast("Reply", _read(line, _REPLIES, "a reply"))


def _line(message: Job | Answer | Command | Reply) -> bytes:
    document = {type(message).__name__: codec.encode(message)}
    return json.dumps(document, allow_nan=False).encode() + b"\n"


def _read(line: bytes, kinds: dict[str, type], expected: str) -> object:
    source = "the worker process"
    try:
        document = codec.parse(line.decode(), source)
        if isinstance(document, dict) and len(document) == 1:
            ((name, value),) = document.items()
            if name in kinds:
                return codec.decode(value, kinds[name], source)
    except (ResultsError, UnicodeDecodeError) as error:
        msg = f"said what cannot be read: {error}"
        raise WorkerError(msg) from error
    msg = f"expected {expected}, got {line[:80]!r}"
    raise WorkerError(msg)
