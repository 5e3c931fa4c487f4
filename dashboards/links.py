"""Where each page lies and what its anchors are called. Changes when addresses change."""

from __future__ import annotations

import hashlib
import re

INDEX = "index.html"
CASE_FOLDER = "case"
ROOFLINE_FOLDER = "roofline"
NOISE_FOLDER = "noise"

_SLUG_CHARACTERS = 72
_DIGEST_CHARACTERS = 8


def case_path(case_id: str) -> str:
    """Return the path of a case's page, relative to the site's folder.

    The digest keeps apart ids that differ in letters a file name cannot hold, also where the file
    system does not tell upper from lower case.
    """
    return f"{CASE_FOLDER}/{_file_name(case_id)}"


def roofline_path(machine: str, ladder: str) -> str:
    """Return the path of the roofline of a ladder on a machine, relative to the site's folder."""
    return f"{ROOFLINE_FOLDER}/{_file_name(f'{machine}/{ladder}')}"


def noise_path(machine: str) -> str:
    """Return the path of a machine's noise ledger, relative to the site's folder."""
    return f"{NOISE_FOLDER}/{_file_name(machine)}"


def _file_name(identity: str) -> str:
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{slug(identity)}-{digest[:_DIGEST_CHARACTERS]}.html"


def slug(text: str) -> str:
    """Return text as a name of lower-case letters, digits and dashes, never empty."""
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-_")[:_SLUG_CHARACTERS] or "case"
