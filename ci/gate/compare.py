"""Two records in, the verdict of the gate out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci.gate.acknowledge import acknowledge
from ci.gate.errors import MachineMismatchError
from ci.gate.policy import count_words, decide, sentence
from ci.gate.sentences import first_line, plural
from ci.gate.sides import sides
from ci.gate.verdicts import judge, judge_absent, judge_unloaded
from ci.results.model import SCHEMA_VERSION, GateResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ci.gate.acknowledge import Acknowledgement
    from ci.gate.timing import TimingVerdict
    from ci.results.model import CaseVerdict, RunRecord


def compare(
    base: RunRecord | None,
    head: RunRecord,
    *,
    timings: Mapping[str, TimingVerdict] | None = None,
    acknowledgements: Sequence[Acknowledgement] = (),
    started: str,
    seconds: float,
    notes: Sequence[str] = (),
) -> GateResult:
    """Return the verdict on every case of either record, and on the whole.

    Args:
        base: What head is compared with; None: head is checked alone.
        head: The run that is judged.
        timings: Case id → what the times say, of the cases that were timed.
        acknowledgements: The lines that head adds to the acknowledgements file.
        started: When the gate began, UTC, ISO 8601.
        seconds: Wall time of the gate (s).
        notes: What a reader must know beyond what the records say.

    Raises:
        MachineMismatchError: The records come from two machines or toolchains.
        DuplicateCaseError: A record holds one case twice.
    """
    if base is not None:
        _require_one_machine(base, head)
    judged = _verdicts(base, head, timings or {})
    covered = [acknowledge(verdict, acknowledgements) for verdict in judged]
    verdicts = tuple(verdict for verdict, _ in covered)
    used = {line for _, lines in covered for line in lines}
    outcome = decide(verdicts, head)
    return GateResult(
        schema_version=SCHEMA_VERSION,
        verdict=outcome,
        sentence=sentence(outcome, verdicts, head),
        base=base.revision if base else None,
        head=head.revision,
        machine=head.machine,
        started=started,
        seconds=seconds,
        notes=(
            *notes,
            *_record_notes(base, head),
            *(_unused_note(line) for line in acknowledgements if line not in used),
        ),
        cases=verdicts,
        counts=count_words(verdicts),
    )


def _verdicts(
    base: RunRecord | None, head: RunRecord, timings: Mapping[str, TimingVerdict]
) -> list[CaseVerdict]:
    """Return head's cases in head's order, then those that only base has."""
    former = sides(base) if base and not base.error else {}
    if head.error:
        return [judge_unloaded(side, head.error) for side in former.values()]
    present = sides(head)
    base_gap = _gap(base, head.selection, "base") if base and not base.error else ""
    found = [
        judge(former.get(case), side, timing=timings.get(case), base_gap=base_gap)
        for case, side in present.items()
    ]
    if _asks_for_all(head, former_selection=base.selection if base else ""):
        head_gap = _gap(head, head.selection, "head")
        found += [
            judge_absent(side, head_gap=head_gap)
            for case, side in former.items()
            if case not in present
        ]
    return found


def _asks_for_all(head: RunRecord, former_selection: str) -> bool:
    """Return whether head was asked for every case that base was asked for."""
    return head.selection in ("", former_selection)


def _gap(record: RunRecord, wanted: str, side: str) -> str:
    """Return why a case of selection ``wanted`` may be absent from a record whose code has it."""
    if not record.complete:
        return f"{side}'s run was interrupted before this case"
    if record.selection not in ("", wanted):
        return f"{side} was run for other cases only (-k {record.selection!r})"
    return ""


def _record_notes(base: RunRecord | None, head: RunRecord) -> list[str]:
    notes: list[str] = []
    if base and base.error:
        notes.append(
            f"base's suite does not load, so there is nothing to compare with: "
            f"{first_line(base.error)}"
        )
    if base and not base.complete:
        notes.append("base's run was interrupted: it lacks cases")
    if head.error:
        notes.append(f"head's suite does not load: {first_line(head.error)}")
    if not head.complete:
        notes.append(f"head's run was interrupted after {plural(len(head.cases), 'case')}")
    if base and not base.error and not _asks_for_all(head, base.selection):
        notes.append(
            f"cases of base outside head's selection (-k {head.selection!r}) are not judged"
        )
    return notes


def _unused_note(line: Acknowledgement) -> str:
    return (
        f"the acknowledgement in line {line.line} ({line.pattern} | {line.metric}) "
        f"covers nothing in this gate"
    )


def _require_one_machine(base: RunRecord, head: RunRecord) -> None:
    for what, former, present in (
        ("machine", base.machine.name, head.machine.name),
        ("device", base.machine.device, head.machine.device),
        (
            "architectures",
            ", ".join(sorted(base.machine.architectures)),
            ", ".join(sorted(head.machine.architectures)),
        ),
        (
            "NVRTC version",
            base.machine.versions.get("nvrtc", "unknown"),
            head.machine.versions.get("nvrtc", "unknown"),
        ),
    ):
        if former != present:
            msg = (
                f"base {base.revision.described} ({base.revision.commit[:12]}) and head "
                f"{head.revision.described} ({head.revision.commit[:12]}) cannot be compared: "
                f"expected one {what}, got {former} at base and {present} at head "
                f"(measure base again where head was measured)"
            )
            raise MachineMismatchError(msg)
