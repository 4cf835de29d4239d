"""SVG in light and dark: texts, cells and arrows on a background of their own, readable on any page."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

CELL, GAP, MARGIN = 30, 22, 24

STYLE = """\
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #1f2933 }
.title { font: bold 14px system-ui, sans-serif }
.note { font: 12px system-ui, sans-serif; fill: #52606d }
.back { fill: #ffffff; stroke: #cbd2d9 }
.cell { stroke: #7b8794; fill: none }
.pad { stroke: #7b8794; fill: #e4e7eb }
.box { stroke: #7b8794; fill: #f5f7fa }
.arrow { stroke: #52606d; stroke-width: 1.5; fill: none }
.head { fill: #52606d }
.row0 { stroke: #7b8794; fill: #b3d9f2 } .row1 { stroke: #7b8794; fill: #f7d6a8 }
.row2 { stroke: #7b8794; fill: #b9e4cf } .row3 { stroke: #7b8794; fill: #edc4da }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f4f8 }
  .note { fill: #bcccdc }
  .back { fill: #1b2027; stroke: #486581 }
  .pad { fill: #323f4b }
  .box { fill: #252d36 }
  .arrow { stroke: #bcccdc } .head { fill: #bcccdc }
  .row0 { fill: #1c5d87 } .row1 { fill: #8a5a13 } .row2 { fill: #1d6b4a } .row3 { fill: #8a2f63 }
}"""

BoxContent: TypeAlias = tuple[str, str]
"""The text of a cell and its class."""


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    """Return a text at a place."""
    attribute = f' class="{kind}"' if kind else ""
    place = f'x="{x}" y="{y}" text-anchor="{anchor}"'
    return f'<text {place}{attribute} xml:space="preserve">{escape(content)}</text>'


def box(x: float, y: float, cell: BoxContent, width: float = CELL) -> str:
    """Return a cell with its text in the middle."""
    content, kind = cell
    rectangle = f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{CELL}"/>'
    return rectangle + text(x + width / 2, y + CELL / 2 + 5, content, anchor="middle")


def drawing(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """Return the file: a background, and the parts on it."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="back" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def arrow(x: float, start: float, end: float, label: str) -> list[str]:
    """Return an arrow down, with the name of a pass beside it."""
    return [
        f'<path class="arrow" d="M{x} {start} V{end}"/>',
        f'<path class="head" d="M{x - 5} {end - 2} h10 l-5 8 z"/>',
        text(x + 14, (start + end) / 2 + 5, label, "note"),
    ]
