"""The roofline as SVG: two roofs and the stages below them. Changes when that drawing does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from dashboards.formatting import shortened, significant, with_prefix
from dashboards.roofs import Roofs
from dashboards.svg import add, drawing, entitle, markup, number

_WIDTH, _HEIGHT = 480, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 314, 28, 316
_LABELS = 330
_LINE_HEIGHT = 17
_LABEL_CHARACTERS = 18
_ROOM = 1.8
"""Factor of free room around the outermost figures."""
_MARK = 4.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A stage, or the baseline, at one size."""

    label: str
    flop_per_s: float
    least: float
    """FLOP per byte if every operand crossed device memory once."""
    logical: float | None
    """FLOP per byte that the threads load; None where it was not counted."""
    baseline: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _Frame:
    """Logarithmic axes: FLOP per byte to the right, FLOP/s upwards."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, intensity: float) -> float:
        share = math.log(intensity / self.x_low) / math.log(self.x_high / self.x_low)
        return _LEFT + share * (_RIGHT - _LEFT)

    def y(self, flop_per_s: float) -> float:
        share = math.log(flop_per_s / self.y_low) / math.log(self.y_high / self.y_low)
        return _BOTTOM - share * (_BOTTOM - _TOP)


def roofline(marks: Sequence[Mark], roofs: Roofs, *, title: str) -> str:
    """Return the roofs and the marks on logarithmic axes as one ``<svg>`` element.

    A filled mark stands at the intensity of the least traffic, a hollow one at that of the
    logical traffic. Names stand in a column on the right, fastest on top, so that none overlaps.
    """
    frame = _frame(marks, roofs)
    svg = drawing(_WIDTH, _HEIGHT, "chart roofline", title)
    _add_axes(svg, frame)
    _add_roofs(svg, frame, roofs)
    ranked = sorted(marks, key=lambda mark: -mark.flop_per_s)
    for mark, y in zip(ranked, _spread([frame.y(mark.flop_per_s) for mark in ranked]), strict=True):
        _add_mark(svg, frame, mark, y)
    return markup(svg)


def _frame(marks: Sequence[Mark], roofs: Roofs) -> _Frame:
    intensities = [roofs.ridge, *(mark.least for mark in marks)]
    intensities += [mark.logical for mark in marks if mark.logical]
    speeds = [roofs.flop_per_s, *(mark.flop_per_s for mark in marks)]
    return _Frame(
        x_low=min(intensities) / _ROOM,
        x_high=max(intensities) * _ROOM,
        y_low=min(roofs.at(min(intensities)), *speeds) / _ROOM,
        y_high=max(speeds) * _ROOM,
    )


def _add_axes(svg: ET.Element, frame: _Frame) -> None:
    for tick in _decades(frame.y_low, frame.y_high):
        y = frame.y(tick)
        add(svg, "line", "grid", x1=_LEFT, x2=_RIGHT, y1=y, y2=y)
        text = f"{tick / 1e12:g}"
        add(svg, "text", "tick", text=text, x=_LEFT - 7, y=y + 4, text_anchor="end")
    for tick in _decades(frame.x_low, frame.x_high):
        x = frame.x(tick)
        add(svg, "line", "grid", x1=x, x2=x, y1=_TOP, y2=_BOTTOM)
        add(svg, "text", "tick", text=f"{tick:g}", x=x, y=_BOTTOM + 18, text_anchor="middle")
    add(svg, "line", "axis", x1=_LEFT, x2=_RIGHT, y1=_BOTTOM, y2=_BOTTOM)
    add(svg, "text", "tick", text="TFLOP/s", x=4, y=_TOP - 14)
    add(svg, "text", "tick", text="FLOP per byte", x=_RIGHT, y=_BOTTOM + 36, text_anchor="end")


def _add_roofs(svg: ET.Element, frame: _Frame, roofs: Roofs) -> None:
    foot = max(frame.x_low, frame.y_low / roofs.bytes_per_s)
    corners = (
        (frame.x(foot), frame.y(roofs.at(foot))),
        (frame.x(roofs.ridge), frame.y(roofs.flop_per_s)),
        (float(_RIGHT), frame.y(roofs.flop_per_s)),
    )
    path = "L".join(f"{number(x)} {number(y)}" for x, y in corners)
    add(svg, "path", "roof", d=f"M{path}")
    label = f"FP32 {with_prefix(roofs.flop_per_s, 'FLOP/s')}"
    y = frame.y(roofs.flop_per_s) - 7
    add(svg, "text", "name", text=label, x=_RIGHT, y=y, text_anchor="end")
    # Below the slope nothing is drawn but stages that memory binds, and those lie higher up.
    x, y = frame.x(foot), frame.y(roofs.at(foot))
    label = f"copy {with_prefix(roofs.bytes_per_s, 'B/s')}"
    add(svg, "text", "name", text=label, x=x + 24, y=y - 8)


def _add_mark(svg: ET.Element, frame: _Frame, mark: Mark, label_y: float) -> None:
    x, y = frame.x(mark.least), frame.y(mark.flop_per_s)
    add(svg, "path", "leader", d=f"M{number(x)} {number(y)}L{_LABELS - 4} {number(label_y)}")
    if mark.logical:
        logical_x = frame.x(mark.logical)
        add(svg, "line", "leader", x1=logical_x, x2=x, y1=y, y2=y)
        add(svg, "circle", "hollow", cx=logical_x, cy=y, r=_MARK)
    name = "point baseline" if mark.baseline else "point"
    if mark.baseline:
        d = f"M{number(x)} {number(y - 6)}l6 6l-6 6l-6 -6Z"
        shape = add(svg, "path", name, d=d)
    else:
        shape = add(svg, "circle", name, cx=x, cy=y, r=_MARK)
    entitle(shape, f"{mark.label}: {significant(mark.flop_per_s / 1e12)} TFLOP/s")
    text = shortened(mark.label, _LABEL_CHARACTERS)
    add(svg, "text", "name", text=text, x=_LABELS, y=label_y + 4)


def _spread(wanted: Sequence[float]) -> list[float]:
    """Return label positions near the wanted ones (top first) that keep a line's distance."""
    placed: list[float] = []
    for y in wanted:
        placed.append(max(y, placed[-1] + _LINE_HEIGHT) if placed else y)
    limit = float(_BOTTOM)
    for index in range(len(placed) - 1, -1, -1):
        placed[index] = min(placed[index], limit)
        limit = placed[index] - _LINE_HEIGHT
    return placed


def _decades(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]
