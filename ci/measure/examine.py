"""What a worker does with one job: compile and inspect a suite, or check and count a stage."""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ci.check.reference import Reference
from ci.check.references import device_reference
from ci.check.run import CaseCheck, StageCheck, check_case, check_stage
from ci.devices.driver import gpu_facts, native
from ci.devices.opening import open_cuda
from ci.devices.protocol import Device
from ci.measure.messages import (
    Answer,
    CaseDone,
    CaseFacts,
    Check,
    Inspect,
    PlanChecked,
    StageInspected,
    SuiteFailed,
    SuiteLoaded,
    Surveyed,
)
from ci.measure.simulating import SASS_FOLDER, simulator_for
from ci.results.model import CaseResult, StageResult, StaticFigures, Status
from ci.select import selector
from ci.static.disassembly import disassemble
from ci.static.figures import KernelFacts, static_figures
from kernels.build import (
    SIMULATED_ARCH,
    BuiltStage,
    build_stage,
    step_variant,
    variants,
)
from kernels.errors import CompileError, KernelError, SourceError
from kernels.spec import Case, CudaStage, Ladder, Suite
from kernels.suite import load_suite

Say = Callable[[Answer], None]


def answer_inspect(job: Inspect, say: Say) -> None:
    """Load the suite, name its cases, then compile and inspect its stages one by one."""
    try:
        suite = load_suite(Path(job.suite))
        facts = tuple(case_facts(suite, case) for case in suite.cases())
    except KernelError as error:
        say(SuiteFailed(message=str(error)))
        return
    say(SuiteLoaded(cases=facts))
    selects = selector(job.selection)
    chosen = {(case.ladder, case.stage) for case in facts if selects(case.id)}
    for ladder in suite.ladders:
        for stage in ladder.stages:
            if (ladder.name, stage.name) in chosen and isinstance(stage, CudaStage):
                architectures = _architectures(job, stage)
                result = _inspect_stage(suite, ladder, stage, architectures, Path(job.cache))
                say(StageInspected(result=result))


def answer_check(job: Check, say: Say) -> None:
    """Run the correctness plan of the job's stage, then each of its cases."""
    suite = load_suite(Path(job.suite))
    ladder = next(ladder for ladder in suite.ladders if ladder.name == job.ladder)
    stage = next(stage for stage in ladder.stages if stage.name == job.stage)
    if not isinstance(stage, CudaStage):
        msg = f"{job.ladder}/{job.stage} is a Python callable and runs on a GPU only"
        raise TypeError(msg)
    built = build_stage(
        suite, ladder, stage, architectures=_architectures(job, stage), cache=Path(job.cache)
    )
    device, reference = _device(job, built, ladder)
    started = time.monotonic()
    plan = check_stage(device, built, ladder, stage, reference)
    say(
        PlanChecked(
            ladder=ladder.name,
            stage=stage.name,
            status=plan.status,
            reason=plan.reason,
            subchecks=plan.subchecks,
            findings=plan.findings,
            counters=plan.counters,
            lines=plan.lines,
            seconds=time.monotonic() - started,
        )
    )
    for case in suite.cases():
        if case.ladder is ladder and case.stage is stage and case.id in job.cases:
            started = time.monotonic()
            check = check_case(device, built, ladder, stage, case.size.as_dict(), reference)
            seconds = time.monotonic() - started
            say(CaseDone(result=_case_result(case_facts(suite, case), plan, check, seconds)))


def answer_survey(say: Say) -> None:
    """Open the GPU, copy in its memory and ask cuBLAS its name."""
    device = open_cuda()
    cublas, _ = device.cublas(device.stream)
    say(Surveyed(copy_bytes_per_s=device.copy_bytes_per_s(), cublas=cublas.version()))


def _architectures(job: Inspect | Check, stage: CudaStage) -> tuple[str, ...]:
    """Return what to compile a stage for: what was asked for, and what this GPU runs."""
    if job.device != "cuda":
        return job.architectures
    own = native(gpu_facts().capability, stage.architectures)
    return tuple(dict.fromkeys((*job.architectures, *([own] if own else []))))


def _device(job: Check, built: BuiltStage, ladder: Ladder) -> tuple[Device, Reference | None]:
    """Return the job's device, and the reference it brings along if any."""
    if job.device == "cuda":
        device = open_cuda()
        return device, device_reference(ladder.problem.reference, device.multiply)
    return simulator_for(built, Path(job.cache)), None


def case_facts(suite: Suite, case: Case) -> CaseFacts:
    """Return what is known of a case before it runs."""
    size = case.size.as_dict()
    return CaseFacts(
        id=case.id,
        suite=suite.name,
        ladder=case.ladder.name,
        stage=case.stage.name,
        size=size,
        role=case.size.role.value,
        devices=case.devices,
        flops=case.ladder.problem.flops(size),
        compulsory_bytes=case.ladder.problem.compulsory_bytes(size),
    )


def _case_result(
    facts: CaseFacts, plan: StageCheck, check: CaseCheck, seconds: float
) -> CaseResult:
    """Return the case's result: the plan's failure fails every case of the stage."""
    status, reason = check.status, check.reason
    if status is Status.PASSED and plan.status is not Status.PASSED:
        status, reason = plan.status, plan.reason
    passed = status is Status.PASSED
    return CaseResult(
        id=facts.id,
        suite=facts.suite,
        ladder=facts.ladder,
        stage=facts.stage,
        size=facts.size,
        role=facts.role,
        status=status,
        reason=reason,
        subcheck=check.subcheck,
        findings=check.findings,
        counters=check.counters if passed else None,
        lines=check.lines if passed else (),
        flops=facts.flops,
        compulsory_bytes=facts.compulsory_bytes,
        seconds=seconds,
    )


def _inspect_stage(
    suite: Suite, ladder: Ladder, stage: CudaStage, architectures: Sequence[str], cache: Path
) -> StageResult:
    """Return what the compiler tells of a stage: its figures, or why it refused."""
    started = time.monotonic()
    digest, identity, error = "", {}, ""
    static: tuple[StaticFigures, ...] = ()
    try:
        built = build_stage(suite, ladder, stage, architectures=architectures, cache=cache)
        digest = built.source_digest
        identity = _identities(built, ladder, stage)
        static = _static(built, ladder, stage, cache)
    except CompileError as refusal:
        error = "\n".join(part for part in (str(refusal), refusal.log) if part)
    except SourceError as refusal:
        error = str(refusal)
    return StageResult(
        ladder=ladder.name,
        stage=stage.name,
        source_digest=digest,
        identity=identity,
        static=static,
        subchecks=(),
        findings=(),
        error=error,
        seconds=time.monotonic() - started,
    )


def _identities(built: BuiltStage, ladder: Ladder, stage: CudaStage) -> dict[str, str]:
    """Return architecture → identity of code and launches.

    The launches belong to it: the same cubin under another grid is another program. Text that
    differs only in comments, line numbers or names gives the same identity.
    """
    launches = repr(
        [
            step.launch(size.as_dict(), stage.tile_for(arch))
            for arch in (*built.cubins, "")
            for size in ladder.problem.sizes
            for step in stage.steps(ladder.problem)
            if stage.domain(size.as_dict()) is None
        ]
    )
    codes = {arch: cubin.identity for arch, cubin in built.cubins.items()}
    codes[SIMULATED_ARCH] = hashlib.sha256(_without_names(built.ptx).encode()).hexdigest()
    return {
        arch: hashlib.sha256(f"{code}\n{launches}".encode()).hexdigest()
        for arch, code in codes.items()
    }


def _without_names(ptx: str) -> str:
    """Return PTX without line information and comments, its symbols numbered as they appear."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", ptx, flags=re.DOTALL)
    code = re.sub(r"^\s*\.(?:loc|file)\b.*$", "", code, flags=re.MULTILINE)
    code = code.split("\t.section", 1)[0]
    numbers: dict[str, str] = {}
    code = re.sub(
        r"\b_Z\w+", lambda match: numbers.setdefault(match[0], f"symbol{len(numbers)}"), code
    )
    return "\n".join(line for line in code.splitlines() if line.strip())


def _static(
    built: BuiltStage, ladder: Ladder, stage: CudaStage, cache: Path
) -> tuple[StaticFigures, ...]:
    """Return the static figures of every architecture and instantiation."""
    size = ladder.problem.sizes[0].as_dict()
    figures: list[StaticFigures] = []
    for arch, cubin in built.cubins.items():
        facts = []
        for label, _ in variants(ladder.problem):
            for number, step in enumerate(stage.steps(ladder.problem)):
                launch = step.launch(size, stage.tile_for(arch))
                kernel = cubin.kernels[step_variant(label, number, step)]
                facts.append(
                    KernelFacts(
                        variant=kernel.variant,
                        expression=kernel.expression,
                        symbol=kernel.symbol,
                        threads_per_block=math.prod(launch.block),
                        dynamic_shared_bytes=launch.dynamic_shared_bytes,
                    )
                )
        disassembly = disassemble(cubin.data, cache / SASS_FOLDER)
        figures += static_figures(cubin.data, cubin.log, arch, facts, disassembly)
    return tuple(figures)
