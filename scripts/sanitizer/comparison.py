"""Where compute-sanitizer and the simulator agree about a kernel, and why not where they do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ci.simulator import Buffer, SimulatorError, parse, run
from kernels.nvrtc import compile_text
from scripts.sanitizer.log import Found, class_of
from scripts.sanitizer.subjects import Subject

OPTIONS = ("--std=c++17", "-ftz=true", "-lineinfo")
_SCOPES = {
    "uninitialised shared": "initcheck watches global memory alone",
    "global": "racecheck watches shared memory alone",
    "asynchronous copy": "no tool tells of a copy that is read too early",
    "race": "racecheck printed nothing",
    "out-of-bounds": "memcheck asks whether any allocation holds the address",
    "misaligned": "memcheck named the bounds alone",
    "barrier": "synccheck printed nothing",
    "shuffle": "no tool watches what a shuffle reads",
}
"""Word of a finding of the simulator → what the tools say of it that do not see it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One class of fault of one subject."""

    subject: str
    planted: bool
    fault: str
    """Class; empty if neither found anything."""
    sanitizer: tuple[tuple[str, tuple[int, ...]], ...]
    """Tool and the lines it names."""
    simulator: tuple[int, ...]
    """Lines."""
    agree: bool
    reason: str
    """Why they do not agree; empty if they do."""


def simulated(subject: Subject) -> tuple[Found, ...]:
    """Return what the simulator finds in a subject.

    Raises:
        SimulatorError: It does not run it.
    """
    made = compile_text(
        subject.text, subject.file, arch="compute_80", options=OPTIONS, expressions=()
    )
    report = run(
        parse(made.data.decode()),
        subject.kernel,
        grid=subject.grid,
        block=subject.block,
        arguments=[
            _buffer(n, a, unwritten=subject.unwritten and n == 0)
            if isinstance(a, np.ndarray)
            else a
            for n, a in enumerate(subject.arguments)
        ],
        dynamic_shared_bytes=subject.dynamic_shared_bytes,
        count=False,
    )
    return tuple(
        Found(
            kind=hazard.kind,
            fault=class_of(hazard.kind),
            file=hazard.file,
            lines=(hazard.line,),
            count=hazard.count,
            example=hazard.example,
        )
        for hazard in report.hazards
    )


def _buffer(number: int, data: NDArray[Any], *, unwritten: bool) -> Buffer:
    """Return a copy of an argument."""
    written = np.zeros(data.nbytes, np.bool_) if unwritten else None
    return Buffer(name=f"argument {number}", data=data.copy(), written=written)


def rows(
    subjects: Sequence[Subject], recorded: Mapping[str, Mapping[str, Sequence[Found]]]
) -> list[Row]:
    """Return the comparison, subject by subject.

    Args:
        subjects: What was run.
        recorded: Tool → subject → its findings on a GPU.
    """
    result = []
    for subject in subjects:
        theirs = {tool: found.get(subject.name, ()) for tool, found in recorded.items()}
        why = ""
        try:
            mine: tuple[Found, ...] = simulated(subject)
        except SimulatorError as error:
            mine, why = (), str(error)
        faults = {f.fault for f in mine} | {f.fault for found in theirs.values() for f in found}
        result += [_row(subject, fault, theirs, mine, why) for fault in sorted(faults) or [""]]
    return result


def _row(
    subject: Subject,
    fault: str,
    theirs: Mapping[str, Sequence[Found]],
    mine: Sequence[Found],
    why: str,
) -> Row:
    sanitizer = tuple(
        (tool, _lines([f for f in found if f.fault == fault]))
        for tool, found in theirs.items()
        if any(f.fault == fault for f in found)
    )
    simulator = _lines([f for f in mine if f.fault == fault])
    named = {line for _, lines in sanitizer for line in lines}
    agree = bool(named & set(simulator)) or not (named or simulator)
    reason = "" if agree else why or _reason(named, [f for f in mine if f.fault == fault])
    return Row(
        subject=subject.name,
        planted=subject.planted,
        fault=fault,
        sanitizer=sanitizer,
        simulator=simulator,
        agree=agree,
        reason=reason,
    )


def _reason(named: set[int], mine: Sequence[Found]) -> str:
    """Return why a fault is told by one side alone, or at other lines."""
    if named:
        return "they name different lines" if mine else "the simulator reports nothing"
    first = mine[0]
    scope = next((said for word, said in _SCOPES.items() if word in first.kind), "")
    return f"{scope or 'only the simulator looks for this'}; the simulator saw {first.example}"


def _lines(found: Sequence[Found]) -> tuple[int, ...]:
    return tuple(sorted({line for each in found for line in each.lines}))
