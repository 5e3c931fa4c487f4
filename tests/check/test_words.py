"""Words beside those of a matrix product, end to end: each fixture passes, each fault is found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ci.check.plan import plan
from ci.check.reference import require_known_answer
from ci.check.run import CaseCheck, StageCheck, check_case, check_stage
from ci.devices.simulator import SimulatorDevice
from ci.results.model import Status
from kernels.build import build_stage
from kernels.spec import CudaStage, Ladder
from tests.check.word_ladders import LADDERS, REFERENCES, ROW_SUMS, ROW_SUMS_TEXT, suite_of


def checked(ladder: Ladder, text: str, folder: Path) -> tuple[StageCheck, CaseCheck]:
    """Return what the whole plan, and the ladder's own size, showed on the simulator."""
    suite, stage = suite_of(ladder, text, folder)
    built = build_stage(suite, ladder, stage, architectures=(), cache=folder / "cache")
    reference = REFERENCES[ladder.name]
    device = SimulatorDevice({})
    size = ladder.problem.sizes[0].as_dict()
    whole = check_stage(device, built, ladder, stage, reference)
    return whole, check_case(device, built, ladder, stage, size, reference)


@pytest.mark.parametrize("name", REFERENCES)
def test_the_fixtures_references_can_be_trusted(name: str) -> None:
    require_known_answer(name, REFERENCES[name])


@pytest.mark.parametrize("name", LADDERS)
def test_a_right_stage_passes_its_plan_and_its_case(name: str, tmp_path: Path) -> None:
    ladder, text = LADDERS[name]
    whole, case = checked(ladder, text, tmp_path)
    assert (whole.status, whole.reason) == (Status.PASSED, "")
    assert (case.status, case.reason) == (Status.PASSED, "")
    assert len(whole.subchecks) > 5


def test_the_counters_of_a_stage_are_the_sum_over_its_kernels(tmp_path: Path) -> None:
    _, case = checked(ROW_SUMS, ROW_SUMS_TEXT, tmp_path)
    size = ROW_SUMS.problem.sizes[0].as_dict()
    rows, chunks = ROW_SUMS.problem.operands[1].extents(size)
    assert case.counters is not None
    assert case.counters.global_load_elements == rows * size["C"] + rows * chunks
    # A store of each row's chunks, and one of all sums.
    assert case.counters.global_store_requests == rows + 1
    lines = {line.text for line in case.lines}
    assert {"P[blockIdx.x * blockDim.x + threadIdx.x] = sum;", "y[row] = sum;"} <= lines


def test_levels_of_a_word_reach_the_plan() -> None:
    (stage,) = ROW_SUMS.stages
    assert isinstance(stage, CudaStage)
    found = plan(ROW_SUMS.problem, REFERENCES["row_sums"], stage, stage.tile)
    assert {combination.scalars["absolute"] for combination in found} == {0, 1}
    assert {tuple(combination.leading_dimensions) for combination in found} == {("X",)}
    assert {tuple(combination.misalignments) for combination in found} == {("X", "y")}


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """What is replaced in a fixture's text, and what must be said of it."""

    name: str
    ladder: str
    old: str
    new: str
    said: str


MISTAKES = (
    Mistake(
        name="scratch: the last chunk is not passed on",
        ladder="row_sums",
        old="P[blockIdx.x * blockDim.x + threadIdx.x] = sum;",
        new="if (threadIdx.x + 1 < blockDim.x) P[blockIdx.x * blockDim.x + threadIdx.x] = sum;",
        said="got nan",
    ),
    Mistake(
        name="scratch: written behind its end",
        ladder="row_sums",
        old="P[blockIdx.x * blockDim.x + threadIdx.x] = sum;",
        new="P[blockIdx.x * blockDim.x + threadIdx.x] = sum; P[(blockIdx.x + 1) * blockDim.x] = 0;",
        said="out-of-bounds write",
    ),
    Mistake(
        name="scratch: read behind its end",
        ladder="row_sums",
        old="i < chunks",
        new="i <= chunks",
        said="out-of-bounds read",
    ),
    Mistake(
        name="scalars: an int is taken for a float",
        ladder="row_sums",
        old="int absolute,",
        new="float absolute_,",
        said="this is the result with absolute = 0 instead of 1",
    ),
    Mistake(
        name="leading dimension: rows are read C apart",
        ladder="row_sums",
        old="blockIdx.x * ldx",
        new="blockIdx.x * C",
        said="NaN as if the kernel had read the slack of X (leading dimension",
    ),
    Mistake(
        name="bfloat16: cut off, not rounded",
        ladder="scaled",
        old="(bits + 0x7fffu + (bits >> 16 & 1u)) >> 16",
        new="bits >> 16",
        said="elements wrong",
    ),
    Mistake(
        name="vector: the last of an odd number is not written",
        ladder="scaled",
        old="} else if (i < N) {",
        new="} else if (i + 1 < N) {",
        said="these elements were not written, they still hold poison",
    ),
    Mistake(
        name="packed: the highest bits come first",
        ladder="unpacked",
        old=">> 4 * i",
        new=">> 28 - 4 * i",
        said="elements wrong",
    ),
    Mistake(
        name="divided axis: a scale for 8, not for 16",
        ladder="unpacked",
        old="scales[word / 2]",
        new="scales[word]",
        said="out-of-bounds read",
    ),
    Mistake(
        name="float16: cut off, not rounded",
        ladder="unpacked",
        old="cvt.rn.f16",
        new="cvt.rz.f16",
        said="elements wrong",
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_with_a_word_is_incorrect_and_named(mistake: Mistake, tmp_path: Path) -> None:
    ladder, text = LADDERS[mistake.ladder]
    assert text.count(mistake.old) == 1
    wrong = text.replace(mistake.old, mistake.new)
    if "absolute_" in wrong:
        wrong = wrong.replace("absolute ?", "absolute_ > 0.5f ?")
    whole, _ = checked(ladder, wrong, tmp_path)
    assert whole.status is Status.INCORRECT
    told = [subcheck.detail for subcheck in whole.subchecks if not subcheck.passed]
    told += [f"{finding.kind} {finding.example}" for finding in whole.findings]
    assert any(mistake.said in sentence for sentence in told), told


def test_a_kernel_that_needs_more_alignment_than_it_declares_is_found(tmp_path: Path) -> None:
    ladder, text = LADDERS["scaled"]
    x, y = ladder.problem.operands
    careless = replace(ladder.problem, operands=(replace(x, alignment=1), y))
    whole, _ = checked(replace(ladder, problem=careless), text, tmp_path)
    assert whole.status is Status.INCORRECT
    assert {finding.kind for finding in whole.findings} == {"misaligned read"}


def test_kernels_in_the_wrong_order_are_found(tmp_path: Path) -> None:
    (stage,) = ROW_SUMS.stages
    assert isinstance(stage, CudaStage)
    first, second = stage.steps(ROW_SUMS.problem)
    swapped = replace(
        stage,
        entry=second.entry,
        launch=second.launch,
        parameters=second.parameters,
        entry_tile=None,
        then=(replace(first, tile=()),),
    )
    whole, _ = checked(replace(ROW_SUMS, stages=(swapped,)), ROW_SUMS_TEXT, tmp_path)
    assert whole.status is Status.INCORRECT
    assert "got nan" in whole.reason
