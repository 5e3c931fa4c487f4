"""Flattening: what is pasted, how lines stay named, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.errors import SourceError
from kernels.source import flatten


def write(root: Path, **files: str) -> Path:
    """Write files given as folder__name=text (all with the suffix .cuh) and return the root."""
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".cuh")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def places(text: str) -> dict[str, tuple[str, int]]:
    """Return where each line of a flattened text says it comes from."""
    out: dict[str, tuple[str, int]] = {}
    file, number = "", 0
    for line in text.splitlines():
        directive = re.fullmatch(r'#line (\d+) "(.+)"', line)
        if directive:
            file, number = directive[2], int(directive[1])
        else:
            out[line] = (file, number)
            number += 1
    return out


def test_every_line_keeps_its_file_and_number(tmp_path: Path) -> None:
    write(
        tmp_path,
        ladder__top='first\n#include "a.cuh"\nthird\n',
        include__a='#pragma once\n#include "deep/b.cuh"\nin a\n',
        include__deep__b="in b\n",
    )
    source = flatten(tmp_path / "ladder/top.cuh", tmp_path)
    said = places(source.text)
    assert said["first"] == ("ladder/top.cuh", 1)
    assert said["third"] == ("ladder/top.cuh", 3)
    assert said["in a"] == ("include/a.cuh", 3)
    assert said["in b"] == ("include/deep/b.cuh", 1)
    assert source.files == ("ladder/top.cuh", "include/a.cuh", "include/deep/b.cuh")


def test_the_folder_of_the_file_comes_before_the_include_folder(tmp_path: Path) -> None:
    write(tmp_path, ladder__top='#include "a.cuh"\n', ladder__a="near\n", include__a="far\n")
    assert "near" in flatten(tmp_path / "ladder/top.cuh", tmp_path).text


def test_pragma_once_pastes_a_file_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        l__top='#include "a.cuh"\n#include "b.cuh"\n',
        l__a='#include "b.cuh"\n',
        l__b="#pragma once\nunique\n",
    )
    text = flatten(tmp_path / "l/top.cuh", tmp_path).text
    assert text.count("unique") == 1
    assert "pragma" not in text


def test_a_file_without_pragma_once_is_pasted_each_time(tmp_path: Path) -> None:
    write(tmp_path, l__top='#include "b.cuh"\n#include "b.cuh"\n', l__b="again\n")
    assert flatten(tmp_path / "l/top.cuh", tmp_path).text.count("again") == 2


def test_system_includes_and_commented_includes_stay(tmp_path: Path) -> None:
    kept = [
        "#include <cuda_fp16.h>",
        '// #include "no.cuh"',
        '/* open "',
        '#include "no.cuh"',
        "closed */",
        'const char* text = "/*"; // still code',
    ]
    write(tmp_path, l__top="\n".join([*kept, '#include "yes.cuh"']), l__yes="pasted\n")
    text = flatten(tmp_path / "l/top.cuh", tmp_path).text
    assert all(line in text for line in kept)
    assert "pasted" in text


def test_a_missing_include_names_file_line_and_searched_folders(tmp_path: Path) -> None:
    write(tmp_path, l__top='fine\n#include "gone.cuh"\n')
    with pytest.raises(SourceError, match=r'^l/top\.cuh:2: #include "gone\.cuh".* l, include '):
        flatten(tmp_path / "l/top.cuh", tmp_path)


def test_a_missing_stage_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot read l/none\.cu"):
        flatten(tmp_path / "l/none.cu", tmp_path)


def test_a_cycle_is_named(tmp_path: Path) -> None:
    write(tmp_path, l__a='#include "b.cuh"\n', l__b='#include "a.cuh"\n')
    with pytest.raises(SourceError, match=r"^l/b\.cuh:1: .*l/a\.cuh -> l/b\.cuh -> l/a\.cuh"):
        flatten(tmp_path / "l/a.cuh", tmp_path)


def test_a_cycle_cut_by_pragma_once_is_no_cycle(tmp_path: Path) -> None:
    write(tmp_path, l__a='#pragma once\n#include "b.cuh"\n', l__b='#include "a.cuh"\nb\n')
    assert flatten(tmp_path / "l/a.cuh", tmp_path).text.count("\nb\n") == 1


def test_an_include_outside_the_suite_is_refused(tmp_path: Path) -> None:
    write(tmp_path, outside="x\n", suite__l__top='#include "../../outside.cuh"\n')
    with pytest.raises(SourceError, match=r"^l/top\.cuh:1: .*outside the suite"):
        flatten(tmp_path / "suite/l/top.cuh", tmp_path / "suite")


def test_the_digest_sees_an_edited_header_and_not_the_place_of_the_suite(tmp_path: Path) -> None:
    def digest(root: Path, header: str) -> str:
        write(root, l__top='#include "a.cuh"\n', include__a=header)
        return flatten(root / "l/top.cuh", root).digest

    first = digest(tmp_path / "one", "x\n")
    assert digest(tmp_path / "two", "x\n") == first
    assert digest(tmp_path / "one", "y\n") != first


@given(st.lists(st.sampled_from(["code;", "/* a", "b */", "// c", '"/*"', "/* d */", "'\"'"])))
def test_an_include_is_pasted_exactly_where_no_comment_is_open(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    root = tmp_path_factory.mktemp("suite")
    write(root, l__top="\n".join([*lines, '#include "a.cuh"']), l__a="pasted\n")
    is_open = False
    for line in lines:
        if line == "/* a":
            is_open = True
        elif line in ("b */", "/* d */"):
            is_open = False
    assert ("pasted" in flatten(root / "l/top.cuh", root).text) is not is_open
