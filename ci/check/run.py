"""How a stage and a case are checked on a device, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ci.check.combination import Combination
from ci.check.contents import place_operands
from ci.check.judge import judge, remember
from ci.check.launch import prepare
from ci.check.plan import plain, plan, tile_extents
from ci.check.reference import Reference
from ci.check.references import trusted_reference
from ci.devices.errors import DeviceError, NotEmulatedError, StepLimitError
from ci.devices.protocol import Device, Execution, SamplingDevice
from ci.devices.sums import merged_findings, summed, summed_lines
from ci.results.model import Counters, Finding, LineCounters, Status, SubCheck
from kernels.build import BuiltStage
from kernels.spec import CudaStage, Ladder, Size


@dataclass(frozen=True, kw_only=True, slots=True)
class StageCheck:
    """What a stage's correctness plan showed."""

    subchecks: tuple[SubCheck, ...]
    """One a launch, in plan order; those after a launch the device refused are absent."""
    findings: tuple[Finding, ...]
    """One a kind and source line, over all launches."""
    status: Status
    reason: str
    """Why not PASSED; empty if PASSED."""
    counters: Counters | None
    """Sum over the launches; None unless PASSED on a device that counts."""
    lines: tuple[LineCounters, ...]
    """The sum per source line, in file and line order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseCheck:
    """What the launch at a case's own size showed."""

    subcheck: SubCheck | None
    """None if it was not launched, or did not end."""
    findings: tuple[Finding, ...]
    counters: Counters | None
    lines: tuple[LineCounters, ...]
    status: Status
    reason: str
    """Why not PASSED; empty if PASSED."""
    counting: str = ""
    """How the counters came about where not every block was executed."""
    output: tuple[str, ...] = ()
    """Lines that the kernel printed."""


def check_stage(
    device: Device,
    built: BuiltStage,
    ladder: Ladder,
    stage: CudaStage,
    reference: Reference | None = None,
) -> StageCheck:
    """Run the correctness plan of a stage and return what it showed.

    Args:
        device: What executes.
        built: The compiled stage.
        ladder: The stage's ladder.
        stage: The stage.
        reference: What to compare with; None: the problem's own, in float64.

    Raises:
        UntrustedReferenceError: The problem's reference is unknown or computes wrongly.
    """
    reference = reference or trusted_reference(ladder.problem.reference)
    try:
        tile = device.tile(built)
    except DeviceError as error:
        return _broken_off([], [], _status_of(error), str(error))
    combinations = plan(ladder.problem, reference, stage, tile)
    if not combinations:
        reason = "the stage's domain takes no size of the correctness plan"
        return _broken_off([], [], Status.SKIPPED, reason)
    subchecks: list[SubCheck] = []
    executions: list[Execution] = []
    for combination in combinations:
        try:
            subcheck, execution = _launch(device, built, ladder, stage, combination, reference)
        except DeviceError as error:
            reason = f"{combination.name}: {error}"
            return _broken_off(subchecks, executions, _status_of(error), reason)
        subchecks.append(subcheck)
        executions.append(execution)
    findings = merged_findings(
        finding for execution in executions for finding in execution.findings
    )
    status, reason = _verdict(subchecks, findings)
    passed = status is Status.PASSED
    return StageCheck(
        subchecks=tuple(subchecks),
        findings=findings,
        status=status,
        reason=reason,
        counters=summed(executions) if passed else None,
        lines=summed_lines(executions) if passed else (),
    )


def _broken_off(
    subchecks: Sequence[SubCheck], executions: Sequence[Execution], status: Status, reason: str
) -> StageCheck:
    """Return what a plan showed that did not come to its end."""
    return StageCheck(
        subchecks=tuple(subchecks),
        findings=merged_findings(
            finding for execution in executions for finding in execution.findings
        ),
        status=status,
        reason=reason,
        counters=None,
        lines=(),
    )


def check_case(
    device: Device,
    built: BuiltStage,
    ladder: Ladder,
    stage: CudaStage,
    size: Mapping[str, int],
    reference: Reference | None = None,
) -> CaseCheck:
    """Run a stage once at a case's size, counting, and return what that showed.

    The launch has the first layouts, no slack, and the first level of each scalar (alpha = 1,
    beta = 0 for a matrix product), so that counters can be compared with textbook formulas.

    Args:
        device: What executes.
        built: The compiled stage.
        ladder: The stage's ladder.
        stage: The stage.
        size: Axis → extent.
        reference: What to compare with; None: the problem's own, in float64.

    Raises:
        UntrustedReferenceError: The problem's reference is unknown or computes wrongly.
    """
    refusal = stage.domain(size)
    if refusal is not None:
        return _unfinished(Status.SKIPPED, refusal)
    reference = reference or trusted_reference(ladder.problem.reference)
    scalars = {name: levels[0] for name, levels in reference.scalars.items()}
    combination = plain(ladder.problem, size, scalars)
    try:
        subcheck, execution = _launch(device, built, ladder, stage, combination, reference)
    except DeviceError as error:
        return _unfinished(_status_of(error), str(error))
    findings = merged_findings(execution.findings)
    status, reason = _verdict([subcheck], findings)
    return CaseCheck(
        subcheck=subcheck,
        findings=findings,
        counters=execution.counters,
        lines=execution.lines,
        status=status,
        reason=reason,
        output=execution.output,
    )


def count_case(
    device: SamplingDevice, built: BuiltStage, ladder: Ladder, stage: CudaStage, size: Size
) -> CaseCheck:
    """Count a stage at a size that is too large to execute in full, from some of its blocks.

    Its numbers are not checked: a case without findings is SKIPPED, with its counters.

    Args:
        device: What executes.
        built: The compiled stage.
        ladder: The stage's ladder.
        stage: The stage.
        size: Axis → extent.
    """
    refusal = stage.domain(size)
    if refusal is not None:
        return _unfinished(Status.SKIPPED, refusal)
    problem, reference = ladder.problem, trusted_reference(ladder.problem.reference)
    scalars = {name: levels[0] for name, levels in reference.scalars.items()}
    matrices = place_operands(problem, reference, plain(problem, size, scalars))
    tile = device.tile(built)
    try:
        steps = prepare(problem, stage, tile, matrices=matrices, size=size, scalars=scalars)
        execution = device.sample(built, steps)
    except DeviceError as error:
        return _unfinished(_status_of(error), str(error))
    findings = merged_findings(execution.findings)
    status, reason = _verdict([], findings)
    if status is Status.PASSED:
        status, reason = Status.SKIPPED, "the numbers of a sample are not checked"
    return CaseCheck(
        subcheck=None,
        findings=findings,
        counters=execution.counters,
        lines=execution.lines,
        status=status,
        reason=reason,
        counting=execution.counting,
    )


def _launch(
    device: Device,
    built: BuiltStage,
    ladder: Ladder,
    stage: CudaStage,
    combination: Combination,
    reference: Reference,
) -> tuple[SubCheck, Execution]:
    """Run one combination; its findings carry its name."""
    problem = ladder.problem
    tile = device.tile(built)
    matrices = place_operands(problem, reference, combination)
    before = remember(problem, matrices)
    steps = prepare(
        problem,
        stage,
        tile,
        matrices=matrices,
        size=combination.size,
        scalars=combination.scalars,
    )
    execution = device.run(built, steps, count=True)
    tiles = tile_extents(problem, stage, tile)
    subcheck = judge(problem, reference, combination, tiles=tiles, matrices=matrices, before=before)
    findings = tuple(replace(f, subcheck=combination.name) for f in execution.findings)
    return subcheck, replace(execution, findings=findings)


def _verdict(subchecks: Sequence[SubCheck], findings: Sequence[Finding]) -> tuple[Status, str]:
    """Return PASSED, or INCORRECT with the first failed sub-check and the first finding."""
    failed = [subcheck for subcheck in subchecks if not subcheck.passed]
    reasons = []
    if failed:
        share = f"{len(failed)} of {len(subchecks)} sub-checks failed, the first "
        reasons.append(f"{share if subchecks[1:] else ''}{failed[0].name}: {failed[0].detail}")
    if findings:
        place = f"{findings[0].file or 'unknown file'}:{findings[0].line}"
        share = f"{len(findings)} findings, the first " if findings[1:] else ""
        reasons.append(f"{share}{findings[0].kind} at {place}: {findings[0].example}")
    return (Status.INCORRECT, "; ".join(reasons)) if reasons else (Status.PASSED, "")


def _status_of(error: DeviceError) -> Status:
    if isinstance(error, NotEmulatedError):
        return Status.NOT_EMULATED
    return Status.TIMEOUT if isinstance(error, StepLimitError) else Status.LAUNCH_ERROR


def _unfinished(status: Status, reason: str) -> CaseCheck:
    return CaseCheck(
        subcheck=None, findings=(), counters=None, lines=(), status=status, reason=reason
    )
