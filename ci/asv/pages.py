"""The asv plug-in that makes published pages work without a network.

asv's pages load their scripts from three other hosts; here they lie beside the pages.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from asv import util
from asv.publishing import OutputPublisher

from ci.results import codec

VENDOR = Path(__file__).with_name("vendor")
"""The scripts, their licences, and a manifest of where each comes from."""

_FOLDER = "vendor"
_REMOTE_TAG = re.compile(
    r'<(?P<tag>script|link)\b[^>]*\b(?:src|href)="(?P<url>https?://[^"]+)"[^>]*>'
)


class LocalScripts(OutputPublisher):  # type: ignore[misc]  # asv has no types
    """Puts the scripts beside the pages; asv runs it at the end of ``asv publish``."""

    name = "local scripts"
    button_label = ""
    description = ""

    @classmethod
    def publish(cls, conf: object, *_: object) -> None:
        """Change the pages that asv has just written."""
        localise(Path(getattr(conf, "html_dir", "")))


def localise(pages: Path) -> None:
    """Copy the vendored scripts into asv's pages and load them instead of remote ones.

    Raises:
        util.UserError: The page loads something that is not vendored: another version of asv.
    """
    files = vendored()
    index = pages / "index.html"

    def local(match: re.Match[str]) -> str:
        url = match["url"]
        if url not in files:
            msg = (
                f"{index}: loads {url}, which {VENDOR} lacks (add it with its licence to "
                f"manifest.json, or use the version of asv that pyproject.toml names)"
            )
            raise util.UserError(msg)
        place = f"{_FOLDER}/{files[url]}"
        if match["tag"] == "link":
            return f'<link rel="stylesheet" href="{place}">'
        return f'<script src="{place}" onerror="js_load_failure()">'

    text = _REMOTE_TAG.sub(local, index.read_text(encoding="utf-8"))
    for name in (*files.values(), "manifest.json"):
        (pages / _FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(VENDOR / name, pages / _FOLDER / name)
    shutil.copytree(VENDOR / "licences", pages / _FOLDER / "licences", dirs_exist_ok=True)
    index.write_text(text, encoding="utf-8")


def vendored() -> dict[str, str]:
    """Return address → file below ``VENDOR`` of everything asv's pages load from elsewhere."""
    manifest = VENDOR / "manifest.json"
    packages = codec.parse(manifest.read_text(encoding="utf-8"), str(manifest))
    files: dict[str, str] = {}
    for package in packages if isinstance(packages, list) else ():
        entries = package.get("files") if isinstance(package, dict) else None
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                files[str(entry.get("replaces"))] = str(entry.get("file"))
    return files
