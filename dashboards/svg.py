"""How an ``<svg>`` element is put together. Changes when all charts are written otherwise."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from dashboards.formatting import legible


def drawing(width: int, height: int, name: str, title: str) -> ET.Element:
    """Return an empty drawing of a CSS class; ``title`` is its name for those who do not see it."""
    svg = ET.Element("svg", {"class": name, "viewBox": f"0 0 {width} {height}", "role": "img"})
    svg.set("aria-label", legible(title))
    return svg


def add(
    parent: ET.Element, tag: str, name: str, *, text: str = "", **attributes: float | str
) -> ET.Element:
    """Add an element of a CSS class and return it; ``text_anchor`` is written ``text-anchor``."""
    element = ET.SubElement(parent, tag, {"class": name})
    for key, value in attributes.items():
        written = value if isinstance(value, str) else number(value)
        element.set(key.replace("_", "-"), written)
    if text:
        element.text = legible(text)
    return element


def entitle(element: ET.Element, text: str) -> None:
    """Say in words what an element stands for."""
    ET.SubElement(element, "title").text = legible(text)


def number(value: float) -> str:
    """Return a coordinate with at most one decimal: the same bytes on every machine."""
    return f"{value:.1f}".removesuffix(".0")


def markup(svg: ET.Element) -> str:
    """Return a drawing as it stands in a page."""
    return ET.tostring(svg, encoding="unicode", short_empty_elements=False)
