"""The written site: whole, safe, offline and the same each time."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dashboards import build_site
from dashboards.build import _environment
from dashboards.errors import SiteFolderError, TemplateValueError
from dashboards.links import case_path
from tests.dashboards import example_records as example
from tests.dashboards.page_reader import Page, PageTable, pages

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'"
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the front page of a site with three commits and a failed gate."""
    folder = tmp_path_factory.mktemp("site")
    return build_site(example.three_records(), [example.gate()], folder)


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _broken_links(index: Path) -> list[str]:
    by_path = {page.path.resolve(): page for page in pages(index)}
    broken = []
    for page in by_path.values():
        for reference in page.references:
            name, _, fragment = reference.partition("#")
            target = (page.path.parent / name).resolve() if name else page.path.resolve()
            known = by_path[target].ids if target in by_path else set()
            if not target.is_file() or (fragment and fragment not in known):
                broken.append(f"{page.path.name}: {reference}")
    return broken


def _cells_without_unit(table: PageTable) -> list[str]:
    columns = table.head[-1]
    return [
        cell.text
        for row in table.body
        for column, cell in zip(columns, row, strict=True)
        if cell.numeric
        and re.search(r"\d", cell.text)
        and not (column.has_unit or any(entry.heading and entry.has_unit for entry in row))
    ]


def test_every_link_resolves_to_a_written_file(index: Path) -> None:
    assert len(pages(index)) == 1 + 9 * 2
    assert _broken_links(index) == []


def test_a_removed_case_page_is_seen_as_a_broken_link(tmp_path: Path) -> None:
    index = build_site(example.three_records(), [example.gate()], tmp_path)
    (tmp_path / case_path(example.case_id("01_naive"))).unlink()
    assert any("01_naive" in link for link in _broken_links(index))


def test_nothing_in_the_site_points_to_a_network(index: Path) -> None:
    for name, data in _files(index.parent).items():
        text = data.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//[a-z]|url\(", text), name


def test_every_page_states_a_policy_that_its_content_keeps(index: Path) -> None:
    for page in pages(index):
        policies = [given["content"] for tag, given in page.tags if given.get("http-equiv")]
        assert policies == [POLICY]
        for tag, given in page.tags:
            assert tag not in ("script", "style", "iframe", "object")
            assert not [name for name in given if name == "style" or name.startswith("on")]


def test_every_number_in_a_table_has_its_unit(index: Path) -> None:
    tables = [table for page in pages(index) for table in page.tables]
    assert sum(cell.numeric for table in tables for row in table.body for cell in row) > 1000
    assert [text for table in tables for text in _cells_without_unit(table)] == []


def test_a_number_without_a_unit_is_noticed(index: Path) -> None:
    table = Page(index).table("Ladder sgemm at M=256, N=256, K=256")
    for cell in table.head[-1]:
        cell.has_unit = False
    assert "32" in _cells_without_unit(table)


def test_strangers_text_stays_text(tmp_path: Path) -> None:
    hostile = "</pre></td><script>alert(1)</script>&\"'\u202e\x00\ud800"
    records = []
    for record in example.three_records():
        revision = replace(record.revision, subject=hostile, described=hostile)
        stages = tuple(replace(stage, error=hostile) for stage in record.stages)
        records.append(replace(record, revision=revision, stages=stages, error=hostile))
    head = records[-1].revision
    gate = replace(example.gate(), head=head, sentence=hostile, notes=(hostile,))
    for page in pages(build_site(records, [gate], tmp_path)):
        assert "script" not in {tag for tag, _ in page.tags}
        assert "<script>alert(1)</script>" in page.text
        assert "\\u202e\\u0000\\ud800" in page.text


def test_a_subject_of_thousands_of_characters_is_cut(index: Path) -> None:
    assert len(example.LONG_SUBJECT) > 5000
    longest = max(len(word) for page in pages(index) for word in page.text.split("\n"))
    assert longest < 400


def test_the_same_records_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    records, gate = example.three_records(), example.gate()
    build_site(records, [gate], tmp_path / "a")
    build_site(records[::-1], [gate], tmp_path / "b")
    assert _files(tmp_path / "a") == _files(tmp_path / "b")


def test_a_page_without_records_says_so(tmp_path: Path) -> None:
    page = Page(build_site([], [], tmp_path))
    assert "No records yet." in page.text
    assert _broken_links(page.path) == []


def test_a_gate_without_records_still_has_its_verdicts(tmp_path: Path) -> None:
    index = build_site([], [example.gate()], tmp_path)
    assert len(Page(index).table("Verdicts").body) == 8
    assert "there are verdicts, but no figures" in Page(index).text
    assert _broken_links(index) == []


def test_a_rebuild_removes_pages_of_cases_that_are_gone_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    other = tmp_path / "case" / "notes.html"
    other.write_text("mine", encoding="utf-8")
    build_site([example.record(0)], [], tmp_path)
    gone = tmp_path / case_path(example.case_id("09_warp_tile"))
    assert gone.is_file()
    build_site([example.record(0, shapes=example.LADDER[:8])], [], tmp_path)
    assert not gone.exists()
    assert other.read_text(encoding="utf-8") == "mine"
    assert not [name for name in _files(tmp_path) if name.endswith(".tmp")]


def test_a_folder_that_cannot_be_written_is_reported_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "site").write_text("a file", encoding="utf-8")
    with pytest.raises(SiteFolderError, match="choose another folder"):
        build_site([example.record(0)], [], tmp_path / "site")


def test_a_template_refuses_a_number_that_was_not_formatted() -> None:
    template = _environment().from_string("{{ value }}")
    with pytest.raises(TemplateValueError, match="view model"):
        template.render(value=12)


def test_ids_that_a_file_name_cannot_tell_apart_get_two_pages() -> None:
    assert case_path("sgemm/a[M=1]") != case_path("sgemm/A[M=1]")
    assert re.fullmatch(r"case/[a-z0-9_-]+-[0-9a-f]{8}\.html", case_path("../../Ü" + "x" * 300))
    assert len(case_path("x" * 300)) < 100
