"""The page of the noise ledger: the noisiest first, what is in quarantine told in a sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dashboards import build_site
from dashboards.links import case_path, noise_path
from dashboards.noise_page import CaseNoise, MachineNoise
from tests.dashboards import example_records as example
from tests.dashboards.page_reader import Page

RECORDS = example.three_records()
KNOWN = RECORDS[0].cases[0].id
CALM = CaseNoise(case=KNOWN, deviation=0.0004, used=True, gates=12, undecided=0, quarantined=False)
LOUD = replace(CALM, case="sgemm/gone[M=1]", deviation=0.0123, used=False, gates=3)
NOISE = MachineNoise(machine="simulator", gates=14, faulty=2, cases=(CALM, LOUD))


def page_of(folder: Path, noise: MachineNoise) -> Page:
    build_site(RECORDS, [], folder, noise=[noise])
    return Page(folder / noise_path(noise.machine))


def test_the_noisiest_case_stands_first_with_its_figures_in_percent(tmp_path: Path) -> None:
    rows = page_of(tmp_path, NOISE).table("Noise of a round").body
    assert [[cell.text for cell in row[:4]] for row in rows] == [
        [LOUD.case, "1.2", "3", "0"],
        [KNOWN, "0.040", "12", "0"],
    ]
    assert ["Too few gates" in row[4].text for row in rows] == [True, False]


def test_a_case_has_a_link_where_it_has_a_page(tmp_path: Path) -> None:
    references = page_of(tmp_path, NOISE).references
    assert f"../{case_path(KNOWN)}" in references
    assert f"../{case_path(LOUD.case)}" not in references
    assert noise_path("simulator") in Page(tmp_path / "index.html").references


def test_quarantine_is_said_first(tmp_path: Path) -> None:
    assert "the noisiest is sgemm/gone[M=1]" in page_of(tmp_path, NOISE).text
    held = replace(NOISE, cases=(CALM, replace(LOUD, gates=60, undecided=7, quarantined=True)))
    text = page_of(tmp_path, held).text
    assert "1 case in quarantine" in text
    assert "Quarantined" in text


def test_a_case_that_no_gate_tells_of_has_no_figure(tmp_path: Path) -> None:
    silent = replace(NOISE, cases=(replace(CALM, deviation=None, used=False),))
    page = page_of(tmp_path, silent)
    assert "No gate tells yet" in page.text
    assert page.table("Noise of a round").body[0][1].text == "–"


def test_the_page_goes_with_its_ledger(tmp_path: Path) -> None:
    page = page_of(tmp_path, NOISE).path
    build_site(RECORDS, [], tmp_path)
    assert not page.exists()
