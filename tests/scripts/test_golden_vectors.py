"""The pipeline of golden vectors, with the simulator in the place of the GPU."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ci.simulator import parse
from kernels.nvrtc import compile_text
from scripts.golden.catalogue import all_forms, input_sets
from scripts.golden.compare import agreement
from scripts.golden.compile import compile_forms
from scripts.golden.kernels import cuda_kernel
from scripts.golden.model import Bits, Form, InputSet, Origin, Recording, Rule
from scripts.golden.simulated import launch, simulate
from scripts.golden.store import load, save
from scripts.golden_vectors import replay, replayed, summary

FORMS = {form.name: form for form in all_forms()}
ORIGIN = Origin(gpu="none", driver="none", nvrtc="none", date="2026-12-01", architecture="none")
SOME = (
    "add.s32", "mul.wide.s16", "setp.lt.and.f32 p|q", "fma.rn.f32", "ex2.approx.f32", "add.f16x2",
    "shfl.sync.up.b32", "vote.sync.ballot.b32", "atom.shared.add.u32", "ld.global.v4.b32",
    "ld.global.nc.v2.u16", "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
    "cp.async.ca.shared.global 8 n",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 (one)",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 (random)",
)  # fmt: skip


SUITE = Path(__file__).parents[1] / "data" / "ncu-h200" / "suite.cu"
ELSEWHERE = (
    "bra", "ret", "bar.sync", "cvta", "cp.async.commit", "cp.async.wait", "ld.param", "ld.local",
    "st.local", "ld.const",
)  # fmt: skip
"""Control, addresses and spaces, which have no value that a GPU could tell better."""


@pytest.fixture(scope="module")
def recording() -> Recording:
    forms = tuple(FORMS[name] for name in SOME)
    sets = input_sets(forms)
    results = {form.name: simulate(form, sets[form.inputs]) for form in forms}
    return Recording(
        origin=ORIGIN, forms=forms, sets=sets, results=results, refused=(("add.x", "no"),)
    )


def test_names_of_forms_are_unique_and_every_input_set_fits_its_form() -> None:
    assert len(FORMS) == len(all_forms()) > 2000
    sets = input_sets(tuple(FORMS.values()))
    for form in FORMS.values():
        given = sets[form.inputs]
        assert len(form.spaces) == len(given.cells), form.name
        last = len(form.outputs) + len(given.kinds) + len(given.cells)
        assert f"%{last}" not in form.code, form.name


def test_a_recording_survives_its_file_bit_for_bit(recording: Recording, tmp_path: Path) -> None:
    save(tmp_path / "golden.npz", recording)
    found = load(tmp_path / "golden.npz")
    assert (found.origin, found.forms, found.refused) == (
        ORIGIN,
        recording.forms,
        (("add.x", "no"),),
    )
    for name, given in recording.sets.items():
        again = found.sets[name]
        assert again.kinds == given.kinds
        for a, b in zip(
            (*again.columns, *again.cells), (*given.columns, *given.cells), strict=True
        ):
            np.testing.assert_array_equal(a, b)
    for name, results in recording.results.items():
        for a, b in zip(found.results[name], results, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)


def test_a_file_of_another_version_is_refused(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "golden.npz"
    save(path, recording)
    with np.load(path) as file:
        parts = dict(file)
    old = parts["description"].tobytes().replace(b'"version": 1', b'"version": 0')
    np.savez_compressed(path, **{**parts, "description": np.frombuffer(old, np.uint8)})
    with pytest.raises(ValueError, match="expected version 1, got 0"):
        load(path)


def test_a_file_that_ends_early_is_refused(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "golden.npz"
    save(path, recording)
    with np.load(path) as file:
        parts = dict(file)
    np.savez_compressed(path, **{**parts, "results": parts["results"][:-1]})
    with pytest.raises(ValueError, match="more bytes"):
        load(path)


@pytest.mark.parametrize("name", SOME)
def test_one_wrong_value_is_found(recording: Recording, name: str) -> None:
    form, right = FORMS[name], recording.results[name]
    given = recording.sets[form.inputs]
    assert agreement(form, given, right, right).differing == 0
    wrong: list[Bits] = [array.copy() for array in right]
    wrong[0].reshape(-1)[5] ^= wrong[0].dtype.type(1 << 8 * wrong[0].itemsize - 2)
    found = agreement(form, given, right, tuple(wrong))
    assert found.differing == 1
    assert found.example.startswith("row ")


def test_nan_payloads_differ_freely_and_near_values_within_their_distance() -> None:
    given = InputSet(kinds=("f32",), columns=(np.zeros(128, np.uint32),))
    form = Form(name="x", code="", outputs=("f32",), inputs="", rule=Rule.VALUE)
    nan, other = np.full(128, 0x7FC00000, np.uint32), np.full(128, 0xFFC00001, np.uint32)
    assert agreement(form, given, (nan,), (other,)).differing == 0
    assert agreement(replace(form, rule=Rule.BITS), given, (nan,), (other,)).differing == 128
    one = np.full(128, 0x3F800000, np.uint32)
    near = replace(form, rule=Rule.NEAR, ulps=2)
    assert agreement(near, given, (one,), (one + np.uint32(2),)).ulps == 2
    assert agreement(near, given, (one,), (one + np.uint32(3),)).differing == 128
    assert agreement(near, given, (one,), (nan,)).differing == 128
    # Across zero, and across the step to the largest number.
    tiny, minus = np.full(128, 1, np.uint32), np.full(128, 0x80000001, np.uint32)
    assert agreement(near, given, (tiny,), (minus,)).differing == 0


def test_the_assembler_takes_these_forms_and_refuses_others_by_name() -> None:
    names = ("add.s32", "add.sat.bf16", "ldmatrix.sync.aligned.m8n8.x1.shared.b16", "fma.f64")
    forms = tuple(FORMS[name] for name in names)
    sets = input_sets(forms)
    work = [(number, form, sets[form.inputs]) for number, form in enumerate(forms)]
    cubin, kept, refused = compile_forms(work, "sm_90")
    assert kept == [0, 2]
    assert [number for number, _ in refused] == [1, 3]
    assert "'.sat'" in refused[0][1]
    assert all(symbol in cubin for symbol in (b"form_0", b"form_2"))


def test_replaying_a_planted_fault_names_its_form(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = tmp_path / "good.npz"
    save(good, recording)
    assert replay(good) == 0
    wrong = FORMS["mul.wide.s16"]
    swapped = replace(wrong, code=wrong.code.replace("s16", "u16"))
    forms = tuple(swapped if form is wrong else form for form in recording.forms)
    bad = tmp_path / "bad.npz"
    save(bad, replace(recording, forms=forms))
    capsys.readouterr()
    assert replay(bad) == 1
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("DIFFERENT")]
    assert "mul.wide.s16" in line


def test_a_form_that_is_not_emulated_is_listed_as_that(recording: Recording) -> None:
    form = replace(FORMS["add.s32"], name="bogus", code="bogus.s32 %0, %1, %2;")
    found = replace(recording, forms=(form,), results={"bogus": recording.results["add.s32"]})
    ((_, agreed, why),) = replayed(found)
    assert agreed is None
    assert "bogus" in why


def test_the_summary_counts_what_was_refused(recording: Recording) -> None:
    assert "add: no (1 forms)" in summary(recording, 1, 2.0)


@pytest.mark.parametrize("name", SOME)
def test_the_kernel_for_the_gpu_does_what_the_one_for_the_simulator_does(
    recording: Recording, name: str
) -> None:
    form = FORMS[name]
    given = recording.sets[form.inputs]
    text = cuda_kernel(form, given, "k")
    made = compile_text(text, "golden.cu", arch="compute_80", options=(), expressions=())
    for mine, theirs in zip(
        recording.results[name], launch(made.data.decode(), form, given), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("options", [(), ("-use_fast_math",)], ids=["plain", "fast math"])
def test_every_instruction_of_the_compiled_suite_has_a_form(options: tuple[str, ...]) -> None:
    made = compile_text(
        SUITE.read_text(encoding="utf-8"), "suite.cu",
        arch="compute_80", options=("--std=c++17", *options), expressions=(),
    )  # fmt: skip
    parts = (part.split() for form in FORMS.values() for part in re.split("[;{}]", form.code))
    recorded = {word for words in parts for word in words[:3]}
    emitted = {
        instruction.text.removeprefix("@").split()[1 if instruction.guard else 0]
        for kernel in parse(made.data.decode()).kernels.values()
        for instruction in kernel.instructions
    }
    assert len(emitted) > 100
    assert sorted(x for x in emitted - recorded if not x.startswith(ELSEWHERE)) == []
