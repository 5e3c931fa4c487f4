"""asv's pages show the dashboard's history, and need no network."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from asv import util

from ci.asv import pages
from ci.results.asv_quantities import QUANTITIES, figures
from ci.results.store import load_all, save
from dashboards.history import histories
from tests.asv.asv_repository import GPU, ROOT, commit, empty_repository, git, history, run

NOT_LOCAL = re.compile(r'(?:src|href)="(?:https?:)?//[^"]*"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of three measured commits and one that was rebased away, and its site."""
    folder = empty_repository(tmp_path_factory.mktemp("site") / "repository")
    commit(folder, "Root")
    gone = commit(folder, "Rebased away", "2026-01-02T12:00:00+00:00")
    git(folder, "reset", "--quiet", "--hard", "HEAD~1")
    commits = [
        commit(folder, f"Change {day}", f"2026-01-{day:02d}T12:00:00+00:00") for day in (3, 4, 5)
    ]
    for record in history([*commits, gone]):
        save(folder / "records", record)
    done = run(folder, "ci", "site", home=folder)
    assert done.returncode == 0, done.stderr
    assert f"{gone} is not on main" in done.stderr
    return folder


def graph(folder: Path, machine: str, name: str) -> dict[str, list[float | None]]:
    """Return what asv's page of a benchmark draws: commit → value of each combination."""
    asv = folder / "build/site/asv"
    hashes = json.loads((asv / "index.json").read_text())["revision_to_hash"]
    points = json.loads((asv / f"graphs/branch-main/machine-{machine}/{name}.json").read_text())
    return {hashes[str(revision)]: values for revision, values in points}


def index(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "build/site/asv/index.json").read_text())
    return found


@pytest.mark.parametrize("machine", ["simulator", GPU])
def test_asv_draws_the_history_that_the_dashboard_draws(site: Path, machine: str) -> None:
    stored = [each for each in load_all(site / "records") if each.machine.name == machine]
    (shown,) = histories(stored, [])
    on_main = git(site, "rev-list", "main").split()
    drawn = 0
    for quantity in QUANTITIES:
        name = f"sgemm.{quantity.name}"
        expected = {}
        for known in shown.commits:
            found = figures("sgemm", quantity, known.stages.values(), known.cases.values())
            if found and known.revision.commit in on_main:
                expected[known.revision.commit] = [
                    statistics.median(each) if isinstance(each, tuple) else each
                    for each in (
                        found[tuple(text.strip("'") for text in combination)]
                        for combination in itertools.product(
                            *index(site)["benchmarks"][name]["params"]
                        )
                    )
                ]
        if expected:
            assert graph(site, machine, name) == expected
            drawn += len(expected)
    assert drawn == 3 * (6 if machine == GPU else 4)


def test_benchmarks_keep_their_unit_on_the_page(site: Path) -> None:
    units = {name: entry["unit"] for name, entry in index(site)["benchmarks"].items()}
    assert units == {f"sgemm.{quantity.name}": quantity.unit for quantity in QUANTITIES}


def test_the_dashboard_links_asvs_pages_and_says_what_they_need(site: Path) -> None:
    text = (site / "build/site/index.html").read_text()
    assert re.search(r'href="asv/index.html">[^<]*needs a web server', text)


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    asv = site / "build/site/asv"
    text = (asv / "index.html").read_text()
    # A link that a reader may follow is not loaded.
    loaded = re.findall(r"<(?:script|link)\b[^>]*>", text)
    assert loaded
    assert [tag for tag in loaded if NOT_LOCAL.search(tag)] == []
    for tag in loaded:
        for place in re.findall(r'(?:src|href)="([^"]+)"', tag):
            assert (asv / place).is_file(), place
    assert "url(" not in (asv / "asv.css").read_text().replace("url(swallow", "")


def test_building_again_changes_no_result_file(site: Path) -> None:
    before = {path: path.read_bytes() for path in (site / "results").rglob("*.json")}
    assert run(site, "ci", "site", home=site).returncode == 0
    assert {path: path.read_bytes() for path in (site / "results").rglob("*.json")} == before


def test_the_site_is_built_where_asv_is_not_installed(site: Path, tmp_path: Path) -> None:
    code = (
        "import importlib.util, sys; find = importlib.util.find_spec;"
        "importlib.util.find_spec = lambda name, *a: None if name == 'asv' else find(name, *a);"
        "sys.modules['asv'] = sys.modules['asv_runner'] = None;"
        f"from ci.cli import main; sys.exit(main(['site', '--out', {str(tmp_path)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=site,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "asv is not installed" in done.stderr
    assert "asv/index.html" not in (tmp_path / "index.html").read_text()
    assert not (tmp_path / "asv").exists()


def test_the_site_is_built_where_there_is_no_git(site: Path, tmp_path: Path) -> None:
    records = history(["a" * 40])
    save(tmp_path / "records", records[0])
    (tmp_path / "asv.conf.json").write_text((site / "asv.conf.json").read_text())
    done = run(tmp_path, "ci", "site", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "without asv's pages" in done.stderr
    assert (tmp_path / "build/site/index.html").exists()
    assert (tmp_path / "results/simulator/aaaaaaaa-flopwatch.json").exists()


def test_an_edited_result_file_is_refused_and_kept(site: Path) -> None:
    path = next((site / "results/simulator").glob("*-flopwatch.json"))
    sound = path.read_text()
    try:
        path.write_text(sound.replace('"flopwatch_runs"', '"other_runs"'))
        done = run(site, "ci", "site", home=site)
        assert '"other_runs"' in path.read_text()
    finally:
        path.write_text(sound)
    assert done.returncode == 2
    assert str(path.relative_to(site)) in done.stderr
    assert "Traceback" not in done.stderr


def test_every_vendored_file_is_the_one_that_was_looked_at() -> None:
    packages = json.loads((pages.VENDOR / "manifest.json").read_text())
    listed = {"manifest.json"}
    for package in packages:
        assert package["licence"] == "MIT"
        assert {"package", "version", "source"} < set(package)
        text = package["licence_text"]
        if text.startswith("licences/"):
            assert "Permission is hereby granted" in (pages.VENDOR / text).read_text()
            listed.add(text)
        for entry in package["files"]:
            content = (pages.VENDOR / entry["file"]).read_bytes()
            assert hashlib.sha256(content).hexdigest() == entry["sha256"], entry["file"]
            listed.add(entry["file"])
    on_disk = {
        path.relative_to(pages.VENDOR).as_posix()
        for path in pages.VENDOR.rglob("*")
        if path.is_file()
    }
    assert on_disk == listed


def test_a_script_that_is_not_vendored_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text('<script src="https://example.org/new.js"></script>')
    with pytest.raises(util.UserError, match=r"example\.org/new\.js"):
        pages.localise(tmp_path)
