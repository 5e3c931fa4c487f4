"""Where flopwatch itself was loaded from, and the refusal to run as a mixture of two copies."""

from __future__ import annotations

import importlib.util
import sysconfig
from pathlib import Path

from ci.errors import OriginError

PACKAGES = ("kernels", "ci", "dashboards")
"""Import names this application owns; all three are common words that others use too."""


def loaded_from() -> tuple[Path, str]:
    """Return the one folder that holds all of flopwatch, and ``installed`` or ``checkout``.

    Raises:
        OriginError: The packages come from different folders: another distribution or a folder
            on the path has one of the names.
    """
    places = {name: _folder_of(name) for name in PACKAGES}
    home = places["ci"]
    for name, place in places.items():
        if place != home:
            where = place or "nowhere"
            msg = (
                f"the package {name} comes from {where}, expected {home} like the rest of "
                f"flopwatch (another distribution or folder of this name is in the way: give "
                f"flopwatch an environment of its own, and start it outside that folder)"
            )
            raise OriginError(msg)
    if home is None:
        msg = "the package ci was not loaded from a folder (install flopwatch from its wheel)"
        raise OriginError(msg)
    site = {Path(sysconfig.get_path(key)).resolve() for key in ("purelib", "platlib")}
    return home, "installed" if home in site else "checkout"


def _folder_of(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))).resolve().parent
