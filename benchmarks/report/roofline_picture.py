"""The roofline of a run as SVG: speed over intensity, both logarithmic, a panel per thread count.

The roofs are measured (Williams, Waterman, Patterson, "Roofline", 2009): reading from memory, reading
from cache, and the peak of multiply-adds. A point is a cell of gossamer: filled if its arrays exceed the
caches, hollow if they fit; hovering shows its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape

import msgspec

from benchmarks.contenders import OURS
from benchmarks.machine.roofline import Roofline
from benchmarks.operators import PROBLEMS
from benchmarks.operators.problem import Marker
from benchmarks.records import Cell, Run

WIDTH, HEIGHT, GAP = 460, 400, 70
LEFT, TOP, BOTTOM, LEGEND = 60, 56, 48, 58
CACHED_BYTES = 1 << 20
"""The working set whose bandwidth is drawn as the cache roof."""

STYLE = """\
text { font-family: sans-serif; font-size: 12px; fill: #222 }
.title { font-size: 14px; font-weight: bold }
.grid { stroke: #ddd; stroke-width: 1 }
.roof { stroke: #222; stroke-width: 1.6; fill: none }
.cache { stroke: #222; stroke-width: 1.2; fill: none; stroke-dasharray: 6 4 }
.point { stroke-width: 1.4 }
.back, .hollow { fill: #fff }
@media (prefers-color-scheme: dark) {
  text { fill: #eee }
  .back, .hollow { fill: #1b2027 }
  .grid { stroke: #3a424d }
  .roof, .cache { stroke: #eee }
}"""


class LogScale(msgspec.Struct, frozen=True):
    """A logarithmic scale from `low` to `high`, drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the coordinate of a value.

        >>> LogScale(1.0, 100.0, 0.0, 200.0).at(10.0)
        100.0
        """
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def decades(self) -> list[float]:
        """Return the powers of ten on it.

        >>> LogScale(0.05, 20.0, 0.0, 1.0).decades()
        [0.1, 1.0, 10.0]
        """
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


class PanelScales(msgspec.Struct, frozen=True):
    """The scales of a panel."""

    x: LogScale
    y: LogScale

    def point_text(self, intensity: float, speed: float) -> str:
        """Return a point as SVG writes it."""
        return f"{self.x.at(intensity)},{self.y.at(speed)}"


def draw(run: Run) -> str:
    """Return the picture's text."""
    cells = [cell for cell in run.cells if OURS in cell.figures]
    roofs = sorted(run.rooflines, key=lambda roof: roof.threads)
    width = LEFT + len(roofs) * (WIDTH + GAP)
    height = TOP + HEIGHT + BOTTOM + LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
        f"<style>{STYLE}</style>",
        f'<rect class="back" width="{width}" height="{height}"/>',
        label(LEFT, 20, f"{run.machine.cpu}, {run.date[:10]}", kind="title"),
    ]
    for number, roof in enumerate(roofs):
        scales = panel_scales(cells, roofs, LEFT + number * (WIDTH + GAP))
        parts += panel(scales, roof, [cell for cell in cells if cell.threads == roof.threads])
    parts += legend(cells, TOP + HEIGHT + BOTTOM + 14)
    return "\n".join([*parts, "</svg>"]) + "\n"


def panel_scales(cells: Sequence[Cell], roofs: Sequence[Roofline], left: float) -> PanelScales:
    """Return scales that hold all cells and roofs, the same for every panel."""
    intensities = [cell.intensity for cell in cells] or [1.0]
    speeds = [cell.gflop_per_s(OURS) for cell in cells] or [1.0]
    top = max([*speeds, *(peak(roof) for roof in roofs)])
    x = LogScale(min(intensities) / 1.6, max(intensities) * 1.6, left, left + WIDTH)
    y = LogScale(min(speeds) / 2, top * 2, TOP + HEIGHT, TOP)
    return PanelScales(x, y)


def peak(roof: Roofline) -> float:
    """Return the highest roof."""
    return max(roof.gflop_per_s.values())


def panel(scales: PanelScales, roof: Roofline, cells: Sequence[Cell]) -> Iterator[str]:
    """Draw the panel of one number of threads."""
    yield label(scales.x.start, TOP - 10, f"{roof.threads} thread{'s' * (roof.threads > 1)}")
    yield from grid(scales)
    yield from roof_lines(scales, roof)
    yield from (point(scales, cell) for cell in cells)


def grid(scales: PanelScales) -> Iterator[str]:
    """Yield the powers of ten with their lines, and what the axes are."""
    for value in scales.x.decades():
        yield line(scales.x.at(value), scales.y.start, scales.x.at(value), scales.y.end)
        yield label(scales.x.at(value), scales.y.start + 16, f"{value:g}", anchor="middle")
    for value in scales.y.decades():
        yield line(scales.x.start, scales.y.at(value), scales.x.end, scales.y.at(value))
        yield label(scales.x.start - 6, scales.y.at(value) + 4, f"{value:g}", anchor="end")
    yield (
        f'<rect x="{scales.x.start}" y="{scales.y.end}" width="{WIDTH}" height="{HEIGHT}" '
        'fill="none" stroke="#888"/>'
    )
    middle = (scales.x.start + scales.x.end) / 2
    text = "least work: operations per byte"
    yield label(middle, scales.y.start + 34, text, anchor="middle")
    yield label(scales.x.start + 6, scales.y.end + 16, "GFLOP/s")


def roof_lines(scales: PanelScales, roof: Roofline) -> Iterator[str]:
    """Yield the peak, reading from memory, reading from cache."""
    top, memory, cached = peak(roof), roof.read[-1].gb_per_s, roof.gb_per_s(CACHED_BYTES)
    yield from slope(scales, memory, top, kind="roof", name="memory")
    yield from slope(scales, cached, top, kind="cache", name="cache")
    ridge = max(min(top / cached, scales.x.high), scales.x.low)
    if ridge < scales.x.high:
        yield polyline(
            "roof",
            [scales.point_text(ridge, top), scales.point_text(scales.x.high, top)],
        )
    text = f"peak {top:.0f} GFLOP/s"
    yield label(scales.x.end - 6, scales.y.at(top) - 6, text, anchor="end")


def slope(
    scales: PanelScales, bandwidth: float, top: float, *, kind: str, name: str
) -> Iterator[str]:
    """Yield the roof of a bandwidth in GB/s, up to the peak."""
    low = max(scales.x.low, scales.y.low / bandwidth)
    high = min(scales.x.high, top / bandwidth)
    if low >= high:
        return
    yield polyline(
        kind,
        [
            scales.point_text(low, low * bandwidth),
            scales.point_text(high, high * bandwidth),
        ],
    )
    x, y = scales.x.at(low), scales.y.at(low * bandwidth)
    across, up = scales.x.at(high) - x, scales.y.at(high * bandwidth) - y
    turn = math.degrees(math.atan2(up, across))
    yield (
        f'<text transform="translate({x + 0.12 * across:.1f} {y + 0.12 * up - 6:.1f}) '
        f'rotate({turn:.1f})">{name} {bandwidth:.0f} GB/s</text>'
    )


def square(x: float, y: float) -> str:
    return f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9"'


def triangle(x: float, y: float) -> str:
    return f'<polygon points="{x},{y - 6:.1f} {x - 5.5:.1f},{y + 4:.1f} {x + 5.5:.1f},{y + 4:.1f}"'


def diamond(x: float, y: float) -> str:
    return f'<polygon points="{x},{y - 6.5:.1f} {x + 6:.1f},{y} {x},{y + 6.5:.1f} {x - 6:.1f},{y}"'


def pentagon(x: float, y: float) -> str:
    corners = ((0, -6), (5.7, -1.9), (3.5, 4.9), (-3.5, 4.9), (-5.7, -1.9))
    return f'<polygon points="{" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)}"'


def circle(x: float, y: float) -> str:
    return f'<circle cx="{x}" cy="{y}" r="5"'


SHAPES: dict[Marker, Callable[[float, float], str]] = {
    "circle": circle,
    "triangle": triangle,
    "square": square,
    "pentagon": pentagon,
    "diamond": diamond,
}


def mark(op: str, x: float, y: float, *, hollow: str) -> str:
    """Return the shape and color of an operator, its end left open."""
    color, shape = PROBLEMS[op].color, SHAPES[PROBLEMS[op].marker]
    kind = "point hollow" if hollow == "yes" else "point"
    return f'{shape(x, y)} class="{kind}" stroke="{color}" fill="{color}" fill-opacity="0.75"'


def point(scales: PanelScales, cell: Cell) -> str:
    """Return a cell; hovering tells which."""
    speed = cell.gflop_per_s(OURS)
    hollow = "yes" if cell.fits_cache else "no"
    shape = mark(cell.op, scales.x.at(cell.intensity), scales.y.at(speed), hollow=hollow)
    text = f"{cell.op} {cell.matrix} K={cell.features}: {speed:.1f} GFLOP/s"
    return f"{shape}><title>{escape(text)}</title></{shape[1:].partition(' ')[0]}>"


def legend(cells: Sequence[Cell], y: float) -> Iterator[str]:
    """Yield the operators' shapes, and what hollow means."""
    x = float(LEFT)
    for op in dict.fromkeys(cell.op for cell in cells):
        yield mark(op, x + 6, y, hollow="no") + "/>"
        yield label(x + 18, y + 4, op)
        x += 40 + 8 * len(op)
    text = "full: the arrays of a call exceed the caches; hollow: they fit"
    yield label(LEFT, y + 26, text)


def label(x: float, y: float, text: str, *, anchor: str = "start", kind: str | None = None) -> str:
    """Return a text."""
    styled = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{styled}>{escape(text)}</text>'


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a line of the grid."""
    return f'<line class="grid" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def polyline(kind: str, points: Sequence[str]) -> str:
    """Return a line of a roof."""
    return f'<polyline class="{kind}" points="{" ".join(points)}"/>'
