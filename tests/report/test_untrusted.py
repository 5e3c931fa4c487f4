"""Nothing a stranger writes becomes markup, a link, a mention, a column or a control code."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.report.untrusted import code, one_line, prose


def test_lines_and_control_codes_become_blanks() -> None:
    assert one_line("  a\r\n\tb\x1b[31mred\x00\u202egpj\u2066 ") == "a b [31mred gpj"


@given(st.text())
def test_one_line_is_printable_and_settled(text: str) -> None:
    line = one_line(text)
    assert line.isprintable()
    assert one_line(line) == line
    line.encode()


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a|b", r"a\|b"),
        ("<b>", r"\<b\>"),
        ("&lt;", r"\&lt;"),
        ("`x`", r"\`x\`"),
        ("*x* __y__", r"\*x\* \_\_y\_\_"),
        ("[a](b)", r"\[a\](b)"),
        ("![a](b)", r"!\[a\](b)"),
        ("a\\|b", r"a\\\|b"),
        ("$x$", r"\$x\$"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("--- rule", r"\--- rule"),
        ("https://evil.example", r"https\://evil.example"),
        ("www.evil.example", r"www\.evil.example"),
        ("@owner", "@\u200bowner"),
        ("see #123", "see \\#\u200b123"),
        ("plain text, 1,024 → 8,192", "plain text, 1,024 → 8,192"),
    ],
)
def test_prose_shows_text_literally(text: str, markdown: str) -> None:
    assert prose(text) == markdown


@given(st.text())
def test_prose_has_no_bare_markup_and_no_mention(text: str) -> None:
    without_escapes = re.sub(r"\\.", "", prose(text))
    assert not re.search(r"[\\`*_\[\]<>#|~$&\n]", without_escapes)
    assert not re.search(r"@(?!\u200b)", prose(text))


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("", ""),
        ("sgemm/01_naive[M=64]", "`sgemm/01_naive[M=64]`"),
        ("<b>@owner #1", "`<b>@owner #1`"),
        ("a|b", "<code>a&#124;b</code>"),
        ("a`<b>&", "<code>a&#96;&lt;b&gt;&amp;</code>"),
        ("a\\|*b*", "<code>a&#92;&#124;&#42;b&#42;</code>"),
    ],
)
def test_code_is_one_span_that_fits_a_table(text: str, markdown: str) -> None:
    assert code(text) == markdown


@given(st.text())
def test_code_never_ends_its_span_or_column_early(text: str) -> None:
    span = code(text)
    assert "|" not in span
    assert span.count("`") in (0, 2)
    assert not re.search(r"<(?!/?code>)", span) or span.startswith("`")
