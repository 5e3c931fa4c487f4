"""Writing the site: pages rendered from view models, files replaced whole."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2

from ci.results.model import GateResult, RunRecord
from dashboards.case_page import case_page
from dashboards.errors import SiteFolderError, TemplateValueError
from dashboards.formatting import legible
from dashboards.history import histories
from dashboards.index_page import index_page, sections
from dashboards.links import (
    CASE_FOLDER,
    INDEX,
    NOISE_FOLDER,
    ROOFLINE_FOLDER,
    case_path,
    noise_path,
    roofline_path,
)
from dashboards.noise_page import MachineNoise, noise_page
from dashboards.page_parts import Link, frame_of
from dashboards.roofline_page import RooflinePage, rooflines

_HERE = Path(__file__).parent
_STATIC = ("site.css", "icon.svg")
_FOLDERS = (CASE_FOLDER, ROOFLINE_FOLDER, NOISE_FOLDER)
_OWN_PAGES = "*-????????.html"


def build_site(
    records: Sequence[RunRecord],
    gates: Sequence[GateResult],
    folder: Path,
    *,
    asv_pages: str = "",
    noise: Sequence[MachineNoise] = (),
) -> Path:
    """Write the static site and return the path of its front page.

    The same records and gates give the same bytes, in whatever order they come. Each file is
    written beside its place and renamed, the front page last, so that a reader never meets half
    a page. Pages of an earlier build that no record asks for any more are removed; nothing else
    in the folder is touched.

    Args:
        records: Runs of any number of commits and machines.
        gates: Gates of any number of machines; the latest of each machine is shown.
        folder: Where the site goes; made if it is missing.
        asv_pages: Path of asv's front page, relative to ``folder``; empty: it is not linked.
        noise: What past gates tell about the noise of each machine.

    Raises:
        SiteFolderError: The folder cannot be written.
    """
    pages = _render(records, gates, asv_pages, noise)
    try:
        for name in _STATIC:
            _replace(folder / "static" / name, (_HERE / "static" / name).read_bytes())
        for path, text in pages.items():
            _replace(folder / path, text.encode())
        for stale in (path for own in _FOLDERS for path in (folder / own).glob(_OWN_PAGES)):
            if f"{stale.parent.name}/{stale.name}" not in pages:
                stale.unlink()
    except OSError as error:
        msg = f"{folder}: the site cannot be written ({error}); free space or choose another folder"
        raise SiteFolderError(msg) from error
    return folder / INDEX


def _render(
    records: Sequence[RunRecord],
    gates: Sequence[GateResult],
    asv_pages: str,
    noise: Sequence[MachineNoise],
) -> Mapping[str, str]:
    """Return path → page, the front page last."""
    environment = _environment()
    history = histories(records, gates)
    index = index_page(history)
    roofs = {
        roofline_path(page.machine, page.ladder): page
        for entry in history
        for page in rooflines(entry, history)
    }
    nav = (*sections(index), *_roofline_links(roofs), *_noise_links(noise))
    nav += (Link(label="asv history (needs a web server)", href=asv_pages),) if asv_pages else ()
    inner, outer = (frame_of(history, root=root, nav=nav) for root in ("../", ""))
    pages = {}
    template = environment.get_template("case.html.j2")
    paged = list(dict.fromkeys(case_id for entry in history for case_id in entry.case_ids))
    for case_id in paged:
        pages[case_path(case_id)] = template.render(page=case_page(case_id, history), frame=inner)
    template = environment.get_template("roofline.html.j2")
    for path, page in roofs.items():
        pages[path] = template.render(page=page, frame=inner)
    template = environment.get_template("noise.html.j2")
    for each in noise:
        page_of_machine = noise_page(each, paged)
        pages[noise_path(each.machine)] = template.render(page=page_of_machine, frame=inner)
    pages[INDEX] = environment.get_template("index.html.j2").render(page=index, frame=outer)
    return pages


def _roofline_links(roofs: Mapping[str, RooflinePage]) -> tuple[Link, ...]:
    alone = len({page.machine for page in roofs.values()}) == 1
    return tuple(
        Link(
            label=f"Roofline {page.ladder}" if alone else f"Roofline {page.machine} {page.ladder}",
            href=path,
        )
        for path, page in roofs.items()
    )


def _noise_links(noise: Sequence[MachineNoise]) -> tuple[Link, ...]:
    return tuple(
        Link(
            label="Noise" if len(noise) == 1 else f"Noise {each.machine}",
            href=noise_path(each.machine),
        )
        for each in noise
    )


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_text_only,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _text_only(value: object) -> str:
    """Let text through, without what is invisible in it; numbers must have been formatted."""
    if not isinstance(value, str):
        msg = f"a template printed {value!r}, expected text; format it in the view model"
        raise TemplateValueError(msg)
    return value if hasattr(value, "__html__") else legible(value)


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
