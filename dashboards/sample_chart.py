"""The samples of a measurement as strips of dots. Changes when that drawing does.

Every strip is in percent of its own median, so that the spread of a short launch and of a long
one stand on one axis. A dot is a sample; the first lies on top, so that drift shows as a slope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from dashboards.charts import scale_for
from dashboards.formatting import signed_percent
from dashboards.svg import add, drawing, markup

_WIDTH = 480
_MARGIN = 34
_LABEL, _STRIP, _GAP = 20, 44, 10
_AXIS = 26
_DOT = 1.8
_NARROWEST = 0.01
"""Half the axis where all samples are equal (%)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Strip:
    """The samples of one measurement, in any unit."""

    label: str
    median: float
    """Above zero."""
    quartiles: tuple[float, float]
    samples: tuple[float, ...]
    """In the order they were taken."""

    def offset(self, value: float) -> float:
        """Return how far a value lies from the median (%)."""
        return 100 * (value / self.median - 1)


def strips(measured: Sequence[Strip], *, title: str) -> str:
    """Return one strip a measurement above a common axis as one ``<svg>`` element."""
    offsets = [abs(strip.offset(sample)) for strip in measured for sample in strip.samples]
    scale = scale_for([max([_NARROWEST, *offsets])])
    height = len(measured) * (_LABEL + _STRIP + _GAP) + _AXIS

    def x(offset: float) -> float:
        return _WIDTH / 2 + offset / scale.high * (_WIDTH / 2 - _MARGIN)

    svg = drawing(_WIDTH, height, "chart samples", title)
    bottom = height - _AXIS
    for tick in (-scale.high, -scale.high / 2, 0.0, scale.high / 2, scale.high):
        add(svg, "line", "grid", x1=x(tick), x2=x(tick), y1=_LABEL, y2=bottom)
        text = signed_percent(tick) if tick else "median"
        add(svg, "text", "tick", text=text, x=x(tick), y=bottom + 17, text_anchor="middle")
    for index, strip in enumerate(measured):
        top = index * (_LABEL + _STRIP + _GAP) + _LABEL
        add(svg, "text", "name", text=strip.label, x=_MARGIN, y=top - 6)
        _add_strip(svg, strip, top, x)
    return markup(svg)


def _add_strip(svg: ET.Element, strip: Strip, top: float, x: Callable[[float], float]) -> None:
    left, right = (x(strip.offset(end)) for end in strip.quartiles)
    add(svg, "rect", "band", x=left, y=top, width=max(right - left, 1), height=_STRIP)
    centre = x(0.0)
    add(svg, "line", "line", x1=centre, x2=centre, y1=top, y2=top + _STRIP)
    count = len(strip.samples)
    for index, sample in enumerate(strip.samples):
        y = top + _STRIP * (index + 0.5) / count
        add(svg, "circle", "sample", cx=x(strip.offset(sample)), cy=y, r=_DOT)
