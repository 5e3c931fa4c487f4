"""Reports of compute-sanitizer are read, compared with the simulator's, and made into a page."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scripts.sanitizer.comparison import rows
from scripts.sanitizer.log import Found, class_of, read
from scripts.sanitizer.subjects import subjects
from scripts.sanitizer_table import DATA, TABLE, TOOLS, page, watch

LOG = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at subject_7(const float *, float *)+0x130 in /tmp/x/extra.cu:60
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f0000000ffc is out of bounds
@@ 7
========= Invalid __global__ read of size 4 bytes
=========     at subject_7(const float *, float *)+0x130 in /tmp/x/extra.cu:60
=========     by thread (1,0,0) in block (0,0,0)
========= Invalid __global__ read of size 8 bytes
=========     at subject_8+0x40 in extra.cu:64
=========     Address 0x7f0000000004 is misaligned
========= Error: Race reported between Write access at subject_9+0x2c0 in suite.cu:17
=========     and Read access at subject_9+0x3a0 in suite.cu:20 [1024 hazards]
=========
========= Warning: Race reported between Write access at 0x2c0 in suite.cu:47:subject_10
=========     and Write access at 0x2c0 in suite.cu:47:subject_10 [64 hazards]
========= Uninitialized __global__ memory read of size 4 bytes
=========     at subject_11+0x30 in extra.cu:26
========= Barrier error detected. Divergent thread(s) in block
=========     at subject_12+0x90 in extra.cu:76
========= ERROR SUMMARY: 6 errors
"""


def test_every_tools_report_gives_kernel_class_and_lines() -> None:
    found = read(LOG)
    told = {
        name: [(f.fault, f.file, f.lines, f.count) for f in each] for name, each in found.items()
    }
    assert told == {
        "subject_7": [("bounds", "extra.cu", (60,), 2)],
        "subject_8": [("alignment", "extra.cu", (64,), 1)],
        "subject_9": [("race", "suite.cu", (17, 20), 1)],
        "subject_10": [("race", "suite.cu", (47,), 1)],
        "subject_11": [("initialisation", "extra.cu", (26,), 1)],
        "subject_12": [("barrier", "extra.cu", (76,), 1)],
    }  # fmt: skip
    assert found["subject_9"][0].kind == "Race reported"
    assert found["subject_12"][0].kind == "Barrier error detected"


def test_a_log_without_reports_gives_nothing() -> None:
    assert read("========= COMPUTE-SANITIZER\n@@ 0\n========= ERROR SUMMARY: 0 errors\n") == {}


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("write-after-read race", "race"),
        ("misaligned read", "alignment"),
        ("out-of-bounds write", "bounds"),
        ("uninitialised shared read", "initialisation"),
        ("asynchronous copy read too early", "asynchronous copy"),
        ("divergent barrier", "barrier"),
        ("lane outside its member mask", "barrier"),
        ("warp instruction without all its lanes", "barrier"),
        ("Illegal instruction", "barrier"),
        ("shuffle from inactive lane", "shuffle"),
        ("failed assertion", "failed assertion"),
    ],
)
def test_the_simulators_kinds_have_the_same_classes(words: str, fault: str) -> None:
    assert class_of(words) == fault


def test_names_of_subjects_are_unique_and_right_ones_come_first() -> None:
    known = subjects()
    assert len({subject.name for subject in known}) == len(known) > 35
    planted = [subject.planted for subject in known]
    assert planted == sorted(planted)
    assert sum(planted) > 20


def _chosen(*names: str) -> list[Any]:
    known = {subject.name: subject for subject in subjects()}
    return [known[name] for name in names]


def _found(fault: str, *lines: int) -> Found:
    return Found(kind=fault, fault=fault, file="extra.cu", lines=lines, count=1)


def test_agreement_needs_the_class_and_a_line_in_common() -> None:
    names = ("right exchange", "race of one word", "global before the start", "unwritten shared")
    text = _chosen(names[1])[0].text.splitlines()
    pieces = dict(zip(names[1:3], ("last = in", "- 1];"), strict=True))
    line = {
        name: next(number for number, row in enumerate(text, 1) if piece in row)
        for name, piece in pieces.items()
    }
    recorded = {
        "racecheck": {names[1]: [_found("race", line[names[1]])]},
        "memcheck": {names[2]: [_found("bounds", line[names[2]] + 1)]},
    }
    found = {row.subject: row for row in rows(_chosen(*names), recorded)}
    assert [found[name].agree for name in names] == [True, True, False, False]
    assert found[names[2]].reason == "they name different lines"
    assert found[names[3]].reason.startswith("initcheck watches global memory alone; the simulator")
    assert "which no thread wrote, read by thread (48,0,0)" in found[names[3]].reason


def test_a_finding_of_one_side_alone_has_a_reason() -> None:
    (subject,) = _chosen("right exchange")
    recorded = {"synccheck": {subject.name: [_found("barrier", 9)]}}
    (row,) = rows([subject], recorded)
    assert (row.agree, row.sanitizer) == (False, (("synccheck", (9,)),))
    assert row.reason == "the simulator reports nothing"


def test_what_the_simulator_cannot_run_says_so() -> None:
    (subject,) = _chosen("right exchange")
    broken = replace(subject, block=(2048, 1, 1))
    (row,) = rows([broken], {"memcheck": {subject.name: [_found("bounds", 9)]}})
    assert not row.agree
    assert "2048" in row.reason


_LOSES_THE_GPU = """
import sys
for number in map(int, sys.argv[2:]):
    if number == {silent}:
        sys.exit(1)
    print("@@", number, flush=True)
    if number == 3:
        sys.exit(1)
"""


def _watched(silent: int) -> tuple[Sequence[str], list[int]]:
    script = _LOSES_THE_GPU.format(silent=silent)
    command = (sys.executable, "-c", script)
    log, missing = watch("memcheck", Path(), 6, command=command, prefix=())
    return [row.removeprefix("@@ ") for row in log.splitlines()], missing


def test_a_kernel_that_loses_the_gpu_does_not_lose_the_others() -> None:
    assert _watched(silent=99) == (["0", "1", "2", "3", "4", "5"], [])


def test_a_kernel_that_ends_its_process_is_listed_as_not_run() -> None:
    assert _watched(silent=2) == (["0", "1", "3", "4", "5"], [2])


def test_the_page_lists_disagreements_first() -> None:
    names = ["right exchange", "unwritten shared"]
    document = {
        "gpu": "a GPU", "driver": "1", "sanitizer": "2", "date": "2026-12-01", "subjects": names,
        "not_run": ["memcheck: x"], "tools": {tool: {} for tool in TOOLS},
    }  # fmt: skip
    text = page(document)
    assert "1 of 2 rows agree" in text
    assert text.index("| unwritten shared") < text.index("| right exchange (right)")
    assert text.endswith("Not run: memcheck: x.\n")


@pytest.mark.skipif(not DATA.exists(), reason="compute-sanitizer has not been recorded yet")
def test_the_committed_page_is_what_the_committed_record_gives() -> None:
    document = json.loads(DATA.read_text(encoding="utf-8"))
    assert TABLE.read_text(encoding="utf-8") == page(document), (
        "run python -m scripts.sanitizer_table table"
    )
