"""Synthetic runs and gates of an SGEMM ladder, shaped like real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
    Outcome,
    Revision,
    RunRecord,
    StageResult,
    StaticFigures,
    Status,
    SubCheck,
    Word,
)

SIZES: tuple[Mapping[str, int], ...] = (
    {"M": 256, "N": 256, "K": 256},
    {"M": 129, "N": 65, "K": 33},
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StageShape:
    """What makes the figures of one stage."""

    name: str
    loads_per_output: float
    """Loads of one output element, as a share of 2 K."""
    sectors: float
    """Sectors per load request."""
    shared: float
    """Shared wavefronts, as a share of the load requests of the naive stage."""
    conflicts: float
    registers: int
    shared_bytes: int
    blocks: int
    occupancy: float
    spills: int = 0


LADDER = (
    StageShape(name="01_naive", loads_per_output=1, sectors=16.5, shared=0, conflicts=0,
               registers=32, shared_bytes=0, blocks=2, occupancy=1.0),
    StageShape(name="02_coalesced", loads_per_output=1, sectors=2.5, shared=0, conflicts=0,
               registers=32, shared_bytes=0, blocks=2, occupancy=1.0),
    StageShape(name="03_shared_tile", loads_per_output=1 / 32, sectors=4, shared=1.03,
               conflicts=0, registers=34, shared_bytes=8192, blocks=1, occupancy=0.5),
    StageShape(name="04_block_tile_1d", loads_per_output=1 / 64, sectors=4, shared=0.56,
               conflicts=0.01, registers=40, shared_bytes=4096, blocks=3, occupancy=0.75),
    StageShape(name="05_block_tile_2d", loads_per_output=1 / 128, sectors=4, shared=0.25,
               conflicts=0.06, registers=118, shared_bytes=8192, blocks=2, occupancy=0.25),
    StageShape(name="06_vectorised", loads_per_output=1 / 128, sectors=16, shared=0.08,
               conflicts=0.02, registers=122, shared_bytes=8192, blocks=2, occupancy=0.25),
    StageShape(name="07_padded_banks", loads_per_output=1 / 128, sectors=16, shared=0.07,
               conflicts=0, registers=122, shared_bytes=8320, blocks=2, occupancy=0.25),
    StageShape(name="08_double_buffer", loads_per_output=1 / 128, sectors=16, shared=0.07,
               conflicts=0, registers=152, shared_bytes=16640, blocks=1, occupancy=0.125),
    StageShape(name="09_warp_tile", loads_per_output=1 / 128, sectors=16, shared=0.06,
               conflicts=0, registers=168, shared_bytes=16640, blocks=1, occupancy=0.125,
               spills=8),
)  # fmt: skip

HASHES = (
    "3f9d2c81ab40e56712c9f08d7be3a1546f0e9d11",
    "a17be40c5d2f98e36b014c7d8af25e9013bc64f2",
    "e5c0917f26ad83b4419e7f02c6d85ba3107d4e98",
)
LONG_SUBJECT = "Write C straight from registers " + "and say at length why " * 240
SUBJECTS = (
    "Add the double-buffered stage",
    "Pad shared tiles by one <script>alert('subject')</script>",
    LONG_SUBJECT,
)
MACHINE = Machine(
    name="simulator",
    device="simulator",
    versions={
        "flopwatch": "0.1.0",
        "nvrtc": "13.0.88",
        "nvdisasm": "13.5.12",
        "numpy": "2.4.0",
        "python": "3.11.9",
    },
    architectures=("compute_80", "sm_90"),
    origin="checkout",
)
COMPILE_MESSAGE = (
    "sgemm/05_block_tile_2d.cu(41): error: static assertion failed with "
    '"BM * BK must be a multiple of the block\'s threads <T>"'
)


def case_id(stage: str, size: Mapping[str, int] = SIZES[0]) -> str:
    """Return the id of a case of the ladder."""
    return f"sgemm/{stage}[{','.join(f'{axis}={extent}' for axis, extent in size.items())}]"


def revision(index: int) -> Revision:
    """Return one of three commits in a row; the middle one carries a hostile subject."""
    return Revision(
        commit=HASHES[index],
        subject=SUBJECTS[index],
        committed=f"2026-03-0{index + 1}T09:30:00+01:00",
        parents=(HASHES[index - 1],) if index else (),
        described=("HEAD~2", "HEAD~1", "HEAD")[index],
    )


def counters(shape: StageShape, size: Mapping[str, int], factor: float = 1.0) -> Counters:
    """Return counters of a stage; ``factor`` scales its sectors and conflicts."""
    outputs = size["M"] * size["N"]
    requests = max(1, round(outputs * size["K"] * 2 * shape.loads_per_output / 32))
    wavefronts = round(outputs * size["K"] * 2 / 32 * shape.shared)
    conflicts = round(wavefronts * shape.conflicts * factor)
    return Counters(
        global_load_requests=requests,
        global_load_sectors=round(requests * shape.sectors * factor),
        global_load_elements=requests * 32,
        global_store_requests=outputs // 32,
        global_store_sectors=outputs // 8,
        shared_load_wavefronts=wavefronts + conflicts,
        shared_load_conflicts=conflicts,
        shared_store_wavefronts=wavefronts // 16,
        shared_store_conflicts=0,
        local_bytes=shape.spills * outputs // 4,
    )


def lines(shape: StageShape, total: Counters) -> tuple[LineCounters, ...]:
    """Return the counters of a stage spread over the lines of its loop."""
    file = f"sgemm/{shape.name}.cu"
    half = total.global_load_sectors // 2
    return (
        LineCounters(
            file=file, line=31, text="a_tile[inner][row] = A[row * lda + k + inner];",
            counters=Counters(global_load_requests=total.global_load_requests // 2,
                              global_load_sectors=half,
                              shared_store_wavefronts=total.shared_store_wavefronts),
        ),
        LineCounters(
            file=file, line=32, text="b_tile[inner][column] = B[(k + inner) * ldb + column];",
            counters=Counters(global_load_requests=total.global_load_requests // 2,
                              global_load_sectors=total.global_load_sectors - half),
        ),
        LineCounters(
            file=file, line=40,
            text="sum[i][j] = fmaf(a_tile[inner][ty * TM + i], b_tile[inner][tx * TN + j], sum);",
            counters=Counters(shared_load_wavefronts=total.shared_load_wavefronts,
                              shared_load_conflicts=total.shared_load_conflicts),
        ),
        LineCounters(
            file=file, line=52, text="C[row * ldc + column] = alpha * sum[i][j] + beta * old;",
            counters=Counters(global_store_requests=total.global_store_requests,
                              global_store_sectors=total.global_store_sectors,
                              local_bytes=total.local_bytes),
        ),
    )  # fmt: skip


def case(shape: StageShape, size: Mapping[str, int], factor: float = 1.0) -> CaseResult:
    """Return a case that passed and was counted."""
    total = counters(shape, size, factor)
    outputs = size["M"] * size["N"]
    return CaseResult(
        id=case_id(shape.name, size),
        suite="kernels",
        ladder="sgemm",
        stage=shape.name,
        size=size,
        role="check",
        status=Status.PASSED,
        reason="",
        subcheck=SubCheck(
            name="M=256 N=256 K=256 A=row B=row C=row", passed=True, max_error=3.2e-6,
            bound=2.1e-5, detail="",
        ),
        findings=(),
        counters=total,
        lines=lines(shape, total),
        flops=outputs * size["K"] * 2,
        compulsory_bytes=4 * (outputs * 2 + size["K"] * (size["M"] + size["N"])),
        seconds=1.25,
    )  # fmt: skip


def static(shape: StageShape, variant: str) -> StaticFigures:
    """Return the figures of one variant on sm_90."""
    return StaticFigures(
        arch="sm_90", variant=variant, kernel=f"{shape.name[3:]}<64, 64, 8, false, false>",
        registers=shape.registers, stack_bytes=shape.spills, spill_store_bytes=shape.spills,
        spill_load_bytes=shape.spills, static_shared_bytes=shape.shared_bytes,
        dynamic_shared_bytes=0, threads_per_block=256, resident_blocks=shape.blocks,
        occupancy=shape.occupancy, limited_by=("registers",), code_bytes=6144,
        instructions={"FFMA": 512, "LDS": 96, "LDG": 12, "STS": 8, "IMAD": 61, "IADD3": 40,
                      "ISETP": 22, "BAR": 2, "STG": 16, "MOV": 31, "LEA": 14, "BRA": 5,
                      "EXIT": 3, "S2R": 4, "NOP": 9},
    )  # fmt: skip


def stage(shape: StageShape) -> StageResult:
    """Return a stage that builds, with a plan of eight sub-checks that pass."""
    return StageResult(
        ladder="sgemm",
        stage=shape.name,
        source_digest="5b" * 32,
        identity={"sm_90": "77" * 32},
        static=tuple(static(shape, variant) for variant in ("A=row,B=row", "A=row,B=column")),
        subchecks=tuple(
            SubCheck(
                name=f"M={extent} N=17 K=5 A=column B=row C=row ld=+3 alpha=2 beta=0",
                passed=True, max_error=1.1e-6, bound=None if extent == 1 else 4e-6, detail="",
            )
            for extent in (1, 31, 32, 33, 63, 64, 65, 127)
        ),
        findings=(),
        error="",
        seconds=4.5,
    )  # fmt: skip


def record(
    index: int,
    *,
    machine: Machine = MACHINE,
    shapes: Sequence[StageShape] = LADDER,
    factors: Mapping[str, float] | None = None,
) -> RunRecord:
    """Return the run of one of the three commits; ``factors`` scales the sectors of stages."""
    scale = factors or {}
    return RunRecord(
        schema_version=SCHEMA_VERSION,
        run=f"2026030{index + 1}T101500Z-{HASHES[index][-4:]}",
        started=f"2026-03-0{index + 1}T10:15:00Z",
        revision=revision(index),
        machine=machine,
        complete=True,
        selection="",
        error="",
        stages=tuple(stage(shape) for shape in shapes),
        cases=tuple(
            case(shape, size, scale.get(shape.name, 1.0)) for shape in shapes for size in SIZES
        ),
    )


RACE = Finding(
    kind="read-after-write race",
    kernel="double_buffer<64, 64, 8, false, false>",
    file="sgemm/08_double_buffer.cu",
    line=47,
    count=1_024,
    example="a_tile[512]: thread 33 reads what thread 1 of block (0, 0, 0) wrote, no barrier",
    subcheck="M=256 N=256 K=256 A=row B=row C=row",
)
WRONG = SubCheck(
    name="M=65 N=17 K=5 A=column B=row C=row ld=+3 alpha=2 beta=0",
    passed=False,
    max_error=0.734,
    bound=4e-6,
    detail="12 of 1,105 elements wrong, all in rows 64 to 64: the last row of the second tile",
)


def failing(result: CaseResult, status: Status, reason: str, *found: Finding) -> CaseResult:
    """Return a case with another status and without counters."""
    return replace(
        result, status=status, reason=reason, counters=None, lines=(), findings=tuple(found)
    )


def head_record() -> RunRecord:
    """Return the third commit's run: a regression, a race, a compile error, a missing stage."""
    whole = record(2, factors={"03_shared_tile": 1.5})
    cases = []
    for result in whole.cases:
        if result.stage == "08_double_buffer":
            cases.append(failing(result, Status.INCORRECT, "read-after-write race", RACE))
        elif result.stage == "05_block_tile_2d":
            cases.append(failing(result, Status.COMPILE_ERROR, "does not compile"))
        elif result.stage != "09_warp_tile":
            cases.append(result)
    stages = []
    for built in whole.stages:
        if built.stage == "08_double_buffer":
            stages.append(replace(built, subchecks=(*built.subchecks, WRONG), findings=(RACE,)))
        elif built.stage == "05_block_tile_2d":
            stages.append(replace(built, static=(), subchecks=(), error=COMPILE_MESSAGE))
        elif built.stage != "09_warp_tile":
            stages.append(built)
    return replace(whole, cases=tuple(cases), stages=tuple(stages))


def three_records() -> tuple[RunRecord, ...]:
    """Return the runs of three commits, the last of them with faults."""
    return (record(0, factors={"02_coalesced": 1.2}), record(1), head_record())


def verdict(result: CaseResult, word: Word, reason: str, **parts: str) -> CaseVerdict:
    """Return a verdict without changes."""
    return CaseVerdict(
        id=result.id, ladder=result.ladder, stage=result.stage, verdict=word,
        code=word.lower(), reason=reason, base=parts.get("base", "PASSED"),
        head=parts.get("head", "PASSED"), changes=(), findings=(), wrong=(),
        acknowledged=parts.get("acknowledged", ""),
    )  # fmt: skip


def regression(base: CaseResult, head: CaseResult) -> CaseVerdict:
    """Return the verdict on a case whose load sectors grew."""
    if base.counters is None or head.counters is None:
        raise ValueError(base.id)
    before, after = base.counters.global_load_sectors, head.counters.global_load_sectors
    spot = head.lines[0]
    change = Change(
        metric="global_load_sectors", where="", base=before, head=after, fails=True,
        improves=False, place=f"{spot.file}:{spot.line}", place_text=spot.text,
        place_base=base.lines[0].counters.global_load_sectors,
        place_head=spot.counters.global_load_sectors,
    )  # fmt: skip
    shown = Change(
        metric="registers", where="sm_90 A=row,B=row", base=36, head=34, fails=False,
        improves=False, place="", place_text="", place_base=0, place_head=0,
    )  # fmt: skip
    reason = (
        f"global load sectors {before:,} → {after:,} (+50.0 %), most at {change.place}: {spot.text}"
    )
    found = verdict(head, Word.REGRESSION, reason)
    return replace(found, changes=(change, shown))


def gate() -> GateResult:
    """Return the gate between the second and the third commit."""
    base, head = record(1), head_record()
    now = {result.id: result for result in head.cases}
    return GateResult(
        schema_version=SCHEMA_VERSION,
        verdict=Outcome.FAILED,
        sentence="8 of 18 cases fail: 2 incorrect, 2 errors, 2 regressions, 2 missing. "
        "Start with sgemm/08_double_buffer at line 47.",
        base=base.revision,
        head=head.revision,
        machine=MACHINE,
        started="2026-03-03T10:15:00Z",
        seconds=143.7,
        notes=("18 perf cases were left to a GPU: this machine has none.",),
        cases=tuple(_verdict(result, now.get(result.id)) for result in base.cases),
        counts={"INCORRECT": 2, "ERROR": 2, "REGRESSION": 2, "MISSING": 2, "UNCHANGED": 10},
    )


def _verdict(base: CaseResult, head: CaseResult | None) -> CaseVerdict:
    if head is None:
        return verdict(base, Word.MISSING, "PASSED at base, not declared at head", head="absent")
    if head.status is Status.INCORRECT:
        reason = "read-after-write race at sgemm/08_double_buffer.cu:47; 1 of 9 sub-checks wrong"
        found = verdict(head, Word.INCORRECT, reason, head="INCORRECT")
        return replace(found, findings=(RACE,), wrong=(WRONG,))
    if head.status is Status.COMPILE_ERROR:
        return verdict(head, Word.ERROR, COMPILE_MESSAGE, head="COMPILE_ERROR")
    if head.counters != base.counters:
        return regression(base, head)
    return verdict(head, Word.UNCHANGED, "same code and counters")
