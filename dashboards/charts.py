"""Charts as SVG, from numbers alone. Changes when a chart looks different.

Every chart is a step line: a figure of a commit holds until the next commit. A commit without a
value is a gap and a mark on the axis, never a joined line and never a zero. Shape, not colour
alone, tells a rise from a fall. A value that was sampled has a band around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from dashboards.svg import add, drawing, entitle, markup, number

_WIDTH, _HEIGHT = 320, 180
_TOP, _RIGHT, _BOTTOM = 14, 18, 30
_GLYPH_WIDTH = 7.4
"""Widest digit of the chart's 12 px label font (px)."""
_LABEL_GAP = 14
_MARKER_ROOM = 7
_NARROWEST_LEFT = 34
_TICKS = 4
_FIT_BELOW = 0.25
"""The axis starts above zero where the values span less than this share of the largest."""
_ROUNDING = 1e-9
"""Share of the largest value by which two equal figures may differ from their arithmetic."""
_SPARK_WIDTH, _SPARK_HEIGHT = 80, 24
_BAND_END = 6
_THINNEST_BAND = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One commit on a chart."""

    label: str
    """The commit, as the x axis names it."""
    value: float | None
    """None: there is no value; a gap."""
    text: str
    """The value in words, or why there is none."""
    band: tuple[float, float] | None = None
    """Where the middle half of the samples lies; None where a value is exact."""

    @property
    def extent(self) -> tuple[float, ...]:
        """Return what the axis must hold of this point."""
        return () if self.value is None else (self.value, *(self.band or ()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """A linear y axis."""

    low: float
    high: float
    step: float

    def ticks(self) -> tuple[float, ...]:
        """Return the labelled values, lowest first."""
        count = round((self.high - self.low) / self.step)
        return tuple(self.low + index * self.step for index in range(count + 1))

    @property
    def starts_at_zero(self) -> bool:
        """Return whether lengths on this axis can be compared."""
        return self.low == 0


def scale_for(values: Sequence[float]) -> Scale:
    """Return a scale with round, distinct ticks that holds all values (finite, not negative)."""
    smallest, largest = min(values, default=0.0), max(values, default=0.0)
    span = largest - smallest
    fitted = _ROUNDING * largest < span < _FIT_BELOW * largest
    bottom = smallest - 0.1 * span if fitted else 0.0
    whole_numbers = all(float(value).is_integer() for value in values)
    step = _round_up((largest - bottom) / _TICKS or 1 / _TICKS, whole_numbers=whole_numbers)
    low = math.floor(bottom / step) * step
    high = max(math.ceil(largest / step) * step, low + step)
    return Scale(low=low, high=high, step=step)


def scale_of(points: Sequence[Point]) -> Scale:
    """Return the scale of a chart: it holds every value and its band."""
    return scale_for([value for point in points for value in point.extent])


def tick_labels(scale: Scale) -> tuple[str, ...]:
    """Return the ticks of a scale as short text with a common suffix: ``0``, ``1.5 M``."""
    power, suffix = next(
        (entry for entry in ((1e9, " G"), (1e6, " M"), (1e3, " k")) if scale.high >= entry[0] * 2),
        (1.0, ""),
    )
    decimals = max(0, -math.floor(math.log10(scale.step / power) + 1e-9))
    if not math.isclose(round(scale.step / power, decimals), scale.step / power):
        decimals += 1
    return tuple(f"{tick / power:,.{decimals}f}{suffix}" if tick else "0" for tick in scale.ticks())


def history(points: Sequence[Point], *, title: str, worse: int, least_change: float = 0.0) -> str:
    """Return a step chart over commits as one ``<svg>`` element.

    Args:
        points: Commits, oldest first.
        title: Accessible name: what is shown, with its unit.
        worse: 1 if more is worse, -1 if fewer is, 0 if neither.
        least_change: Share of the value before, above which a change is marked as one.
    """
    scale = scale_of(points)
    labels = tick_labels(scale)
    widest = math.ceil(_GLYPH_WIDTH * max(len(label) for label in labels))
    left = max(_NARROWEST_LEFT, 10 + widest)
    frame = _Frame(
        left=left,
        right=_WIDTH - _RIGHT,
        top=_TOP,
        bottom=_HEIGHT - _BOTTOM,
        count=len(points),
        scale=scale,
    )
    svg = drawing(_WIDTH, _HEIGHT, "chart", title)
    for tick, label in zip(scale.ticks(), labels, strict=True):
        y = frame.y(tick)
        add(svg, "line", "grid", x1=left, x2=frame.right, y1=y, y2=y)
        add(svg, "text", "tick", text=label, x=left - 7, y=y + 4, text_anchor="end")
    _add_commits(svg, points, frame)
    _add_bands(svg, points, frame)
    add(svg, "path", "line", d=_steps(points, frame))
    _add_points(svg, points, frame, worse, least_change)
    return markup(svg)


def sparkline(points: Sequence[Point], *, title: str, worse: int, least_change: float = 0.0) -> str:
    """Return a small step chart without axes as one ``<svg>`` element."""
    scale = scale_of(points)
    frame = _Frame(
        left=6,
        right=_SPARK_WIDTH - 6,
        top=6,
        bottom=_SPARK_HEIGHT - 5,
        count=len(points),
        scale=scale,
    )
    svg = drawing(_SPARK_WIDTH, _SPARK_HEIGHT, "spark", title)
    add(svg, "path", "line", d=_steps(points, frame))
    _add_points(svg, points, frame, worse, least_change)
    return markup(svg)


def bar(fraction: float) -> str:
    """Return a bar from zero, as a share (0 to 1) of its full length, as one ``<svg>`` element."""
    svg = ET.Element(
        "svg",
        {
            "class": "bar",
            "viewBox": "0 0 100 4",
            "preserveAspectRatio": "none",
            "aria-hidden": "true",
        },
    )
    add(svg, "rect", "track", width=100, height=4)
    add(svg, "rect", "fill", width=100 * min(max(fraction, 0.0), 1.0), height=4)
    return markup(svg)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Frame:
    left: float
    right: float
    top: float
    bottom: float
    count: int
    scale: Scale

    def x(self, index: int) -> float:
        if self.count == 1:
            return (self.left + self.right) / 2
        # Half a marker of room on both sides, so that no point touches the frame.
        inner_left, inner_right = self.left + 6, self.right - 6
        return inner_left + (inner_right - inner_left) * index / (self.count - 1)

    def y(self, value: float) -> float:
        share = (value - self.scale.low) / (self.scale.high - self.scale.low)
        return self.bottom - share * (self.bottom - self.top)


def _steps(points: Sequence[Point], frame: _Frame) -> str:
    parts: list[str] = []
    joined = False
    for index, point in enumerate(points):
        if point.value is None:
            joined = False
            continue
        x, y = number(frame.x(index)), number(frame.y(point.value))
        parts.append(f"H{x}V{y}" if joined else f"M{x} {y}")
        joined = True
    return "".join(parts)


def _add_bands(svg: ET.Element, points: Sequence[Point], frame: _Frame) -> None:
    for index, point in enumerate(points):
        if point.band is None:
            continue
        low, high = point.band
        # Like the step line, a band holds until the next value; the last one gets a marker's width.
        ends = index + 1 == len(points) or points[index + 1].value is None
        left = frame.x(index) - (_BAND_END if ends else 0)
        right = frame.x(index) + _BAND_END if ends else frame.x(index + 1)
        top = frame.y(high)
        height = max(frame.y(low) - top, _THINNEST_BAND)
        add(svg, "rect", "band", x=left, y=top, width=right - left, height=height)


def _add_points(
    svg: ET.Element, points: Sequence[Point], frame: _Frame, worse: int, least_change: float
) -> None:
    previous: float | None = None
    # Hundreds of markers would hide the line: then only changes and the last value are marked.
    crowded = (frame.right - frame.left) / max(frame.count, 1) < _MARKER_ROOM
    for index, point in enumerate(points):
        x = frame.x(index)
        if point.value is None:
            mark = add(svg, "path", "gap", d=f"M{number(x - 3)} {number(frame.bottom)}h6m-3 -3v6")
            entitle(mark, f"{point.label}: {point.text}")
            continue
        y = frame.y(point.value)
        change = 0.0 if previous is None else point.value - previous
        if previous is not None and abs(change) <= least_change * previous:
            change = 0.0
        last = index == len(points) - 1
        if change or last or previous is None or not crowded:
            mark = _marker(svg, x, y, change, worse)
            entitle(mark, f"{point.label}: {point.text}")
        previous = point.value


def _marker(svg: ET.Element, x: float, y: float, change: float, worse: int) -> ET.Element:
    if not change:
        return add(svg, "circle", "point", cx=x, cy=y, r=3.2)
    name = "shown" if not worse else "worse" if (change > 0) == (worse > 0) else "better"
    up = -1 if change > 0 else 1
    tip, foot = number(y + 5.5 * up), number(y - 3.5 * up)
    d = f"M{number(x)} {tip}L{number(x + 5)} {foot}H{number(x - 5)}Z"
    return add(svg, "path", f"point {name}", d=d)


def _add_commits(svg: ET.Element, points: Sequence[Point], frame: _Frame) -> None:
    y = frame.bottom
    add(svg, "line", "axis", x1=frame.left, x2=frame.right, y1=y, y2=y)
    for index in _labelled(points, frame):
        x, width = frame.x(index), _GLYPH_WIDTH * len(points[index].label)
        add(svg, "line", "axis", x1=x, x2=x, y1=y, y2=y + 4)
        centre = min(x, _WIDTH - 2 - width / 2)
        add(svg, "text", "tick", text=points[index].label, x=centre, y=y + 18, text_anchor="middle")


def _labelled(points: Sequence[Point], frame: _Frame) -> Iterator[int]:
    """Yield the commits that get a label, from the last back, as many as fit side by side."""
    taken_from = math.inf
    for index in range(len(points) - 1, -1, -1):
        width = _GLYPH_WIDTH * len(points[index].label)
        centre = min(frame.x(index), _WIDTH - 2 - width / 2)
        if centre - width / 2 < 0:
            return
        if centre + width / 2 + _LABEL_GAP <= taken_from:
            taken_from = centre - width / 2
            yield index


def _round_up(step: float, *, whole_numbers: bool) -> float:
    wanted = max(step, 1.0) if whole_numbers else step
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(factor * power for factor in (1, 2, 5, 10) if wanted <= factor * power * 1.000001)
