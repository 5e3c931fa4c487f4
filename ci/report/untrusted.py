"""Strangers' text made harmless: case names, source lines and compiler messages.

Source: GitHub Flavored Markdown Spec, sections 4.10 (tables), 6.1 (backslash escapes), 6.3 (code
spans) and 6.9 (autolinks); mentions and issue links are GitHub's own and ignore code spans only.
"""

from __future__ import annotations

import html
import re

_MARKUP = re.compile(r"([\\`*_\[\]<>#|~$&])")
_LINK_START = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
_BLOCK_START = re.compile(r"^(\d+(?=[.)])|(?=[-+=]))")
_ZERO_WIDTH_SPACE = "\u200b"


def one_line(text: str) -> str:
    """Return ``text`` on one line, without control, bidirectional and unpaired code points."""
    visible = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(visible.split())


def prose(text: str) -> str:
    """Return ``text`` as markdown that shows it literally: no markup, link, mention or column."""
    escaped = _MARKUP.sub(r"\\\1", one_line(text))
    escaped = _LINK_START.sub(lambda match: f"\\{match[0]}", escaped)
    escaped = _BLOCK_START.sub(r"\1\\", escaped)
    return escaped.replace("@", f"@{_ZERO_WIDTH_SPACE}").replace("#", f"#{_ZERO_WIDTH_SPACE}")


def code(text: str) -> str:
    """Return ``text`` as a markdown code span, fit for a table; empty for empty text."""
    line = one_line(text)
    if not line:
        return ""
    if "`" not in line and "|" not in line:
        return f"`{line}`"
    # A backtick would end the span and a pipe the column, so these are spelt as HTML.
    entities = "".join(
        f"&#{ord(char)};" if char in "`|*_[]\\~:.$" else char
        for char in html.escape(line, quote=False)
    )
    return f"<code>{entities}</code>"
