"""Small valid records for tests; each test states only what it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci.gate.compare import compare
from ci.results.model import (
    SCHEMA_VERSION,
    CaseResult,
    CaseVerdict,
    Change,
    Counters,
    Finding,
    GateResult,
    LineCounters,
    Machine,
    Revision,
    RunRecord,
    StageResult,
    StaticFigures,
    Status,
    SubCheck,
    Word,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ci.gate.acknowledge import Acknowledgement

CASE = "sgemm/01_naive[M=64,N=64,K=64]"
STARTED = "2025-01-02T03:04:05+00:00"


def machine(
    *,
    name: str = "simulator",
    device: str = "simulator",
    architectures: tuple[str, ...] = ("compute_80", "sm_90"),
    nvrtc: str = "13.0.88",
) -> Machine:
    return Machine(
        name=name,
        device=device,
        versions={"flopwatch": "0.1.0", "nvrtc": nvrtc},
        architectures=architectures,
        origin="checkout",
    )


def revision(commit: str = "a" * 40, *, described: str = "HEAD") -> Revision:
    return Revision(
        commit=commit,
        subject="Unroll the inner loop",
        committed="2025-01-01T00:00:00+01:00",
        parents=("b" * 40,),
        described=described,
    )


def line(
    number: int, text: str, *, file: str = "sgemm/01_naive.cu", **counters: int
) -> LineCounters:
    return LineCounters(file=file, line=number, text=text, counters=Counters(**counters))


def finding(*, kind: str = "out-of-bounds read", at: int = 21, count: int = 512) -> Finding:
    return Finding(
        kind=kind,
        kernel="sgemm_naive<false, false>",
        file="sgemm/01_naive.cu",
        line=at,
        count=count,
        example="A[4096] by thread (0, 0, 0) of block (1, 0, 0)",
        subcheck="M=33 N=17 K=5",
    )


def subcheck(name: str = "M=33 N=17 K=5", *, detail: str = "") -> SubCheck:
    """Return a sub-check that passed; with a ``detail``, one that did not."""
    return SubCheck(name=name, passed=not detail, max_error=1e-6, bound=1e-5, detail=detail)


def static(
    *,
    arch: str = "sm_90",
    variant: str = "A=row,B=row",
    registers: int = 40,
    stack_bytes: int = 0,
    spill_store_bytes: int = 0,
    spill_load_bytes: int = 0,
    threads_per_block: int = 256,
    resident_blocks: int = 8,
    occupancy: float = 1.0,
    instructions: Mapping[str, int] | None = None,
) -> StaticFigures:
    return StaticFigures(
        arch=arch,
        variant=variant,
        kernel="sgemm_naive<false, false>",
        registers=registers,
        stack_bytes=stack_bytes,
        spill_store_bytes=spill_store_bytes,
        spill_load_bytes=spill_load_bytes,
        static_shared_bytes=0,
        dynamic_shared_bytes=0,
        threads_per_block=threads_per_block,
        resident_blocks=resident_blocks,
        occupancy=occupancy,
        limited_by=("threads",),
        code_bytes=1024,
        instructions={"FFMA": 8, "LDG": 4} if instructions is None else instructions,
    )


def stage(
    name: str = "01_naive",
    *,
    identity: str = "1111",
    figures: tuple[StaticFigures, ...] | None = None,
    subchecks: tuple[SubCheck, ...] = (),
    findings: tuple[Finding, ...] = (),
    error: str = "",
) -> StageResult:
    return StageResult(
        ladder="sgemm",
        stage=name,
        source_digest=identity * 16,
        identity={"sm_90": identity} if identity else {},
        static=(static(),) if figures is None else figures,
        subchecks=subchecks,
        findings=findings,
        error=error,
        seconds=1.5,
    )


def case(
    id_: str = CASE,
    *,
    status: Status = Status.PASSED,
    reason: str = "",
    counters: Counters | None = None,
    counted: bool = True,
    lines: tuple[LineCounters, ...] = (),
    findings: tuple[Finding, ...] = (),
    own_check: SubCheck | None = None,
) -> CaseResult:
    passed = status is Status.PASSED
    return CaseResult(
        id=id_,
        suite="kernels",
        ladder=id_.split("/", maxsplit=1)[0],
        stage=id_.split("/")[1].split("[", maxsplit=1)[0],
        size={"M": 64, "N": 64, "K": 64},
        role="check",
        status=status,
        reason=reason or ("" if passed else "a reason"),
        subcheck=own_check or (subcheck() if passed else None),
        findings=findings,
        counters=(counters or Counters(global_load_sectors=1024)) if passed and counted else None,
        lines=lines,
        flops=524288,
        compulsory_bytes=65536,
        seconds=0.25,
    )


def record(
    *cases: CaseResult,
    stages: Sequence[StageResult] | None = None,
    run: str = "20250102T030405Z-abcdef",
    started: str = STARTED,
    on: Machine | None = None,
    of: Revision | None = None,
    complete: bool = True,
    selection: str = "",
    error: str = "",
) -> RunRecord:
    return RunRecord(
        schema_version=SCHEMA_VERSION,
        run=run,
        started=started,
        revision=of or revision(),
        machine=on or machine(),
        complete=complete,
        selection=selection,
        error=error,
        stages=(stage(),) if stages is None else tuple(stages),
        cases=cases,
    )


def gate(
    base: RunRecord | None, head: RunRecord, *, acknowledgements: Sequence[Acknowledgement] = ()
) -> GateResult:
    """Return the gate's result on two records."""
    return compare(base, head, acknowledgements=acknowledgements, started=STARTED, seconds=2.0)


def verdict_on(
    base: CaseResult | None, head: CaseResult | None, **sides: StageResult
) -> CaseVerdict:
    """Return the only verdict of a gate on one case, whose code differs unless stages are given.

    Args:
        base: The case at base; None: base has no case.
        head: The case at head; None: head has no case.
        sides: The case's stage at ``base_stage`` and ``head_stage``.
    """
    before = record(
        *([base] if base else []), stages=[sides.get("base_stage", stage(identity="1111"))]
    )
    after = record(
        *([head] if head else []), stages=[sides.get("head_stage", stage(identity="2222"))]
    )
    (verdict,) = gate(before, after).cases
    return verdict


def change(
    metric: str = "global_load_sectors",
    *,
    base: float = 1024,
    head: float = 8192,
    where: str = "",
    fails: bool = True,
) -> Change:
    return Change(
        metric=metric,
        where=where,
        base=base,
        head=head,
        fails=fails,
        improves=False,
        place="" if where else "sgemm/01_naive.cu:14",
        place_text="" if where else "acc += A[k * lda + row];",
        place_base=0,
        place_head=0 if where else 8192,
    )


def verdict(
    word: Word, *changes: Change, id_: str = CASE, reason: str = "a reason", acknowledged: str = ""
) -> CaseVerdict:
    return CaseVerdict(
        id=id_,
        ladder="sgemm",
        stage="01_naive",
        verdict=word,
        code="counters",
        reason=reason,
        base="PASSED",
        head="PASSED",
        changes=changes,
        findings=(),
        wrong=(),
        acknowledged=acknowledged,
    )
