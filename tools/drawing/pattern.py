"""The picture of the pattern of a tensor: where its elements are, in which order and part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gossamer.pictures.pattern import Layer, StoredPattern, pattern_of
from gossamer_formats import Decomposition, SparseTensor
from gossamer_formats.conversion.by_numpy.stored_elements import stored_elements
from tools.drawing.svg import MARGIN, drawing, text

SIDE = 9
"""The width of an element."""

BETWEEN = 2
"""The columns between two slices of a tensor of three dimensions."""

GRADIENT = ((0x2B, 0x6C, 0xB0), (0x80, 0x4F, 0xB3), (0xD6, 0x4A, 0x6B), (0xEE, 0xA2, 0x36))
"""The colors from the first to the last value, each readable on a light and on a dark background."""

PALETTE = ("#2b6cb0", "#dd6b20", "#2f9e55", "#c53030", "#805ad5", "#8a6d3b")
"""The colors of parts."""

STEPS = 24
"""The number of colors in the legend of the order."""


def picture_of_pattern(tensor: SparseTensor | Decomposition, title: str) -> str:
    """Return the pattern. Colors show the order of the values, or of a tensor in parts the part; zeros that
    fill dense axes are faint."""
    pattern = _pattern(tensor)
    rows, columns = pattern.shape
    top, right = MARGIN + 24, MARGIN + columns * SIDE
    parts = [text(MARGIN, MARGIN + 6, title, "title")]
    for left, width in _slices(tensor):
        parts.append(
            f'<rect class="box" x="{MARGIN + left * SIDE}" y="{top}" width="{width * SIDE}" '
            f'height="{rows * SIDE}"/>'
        )
    for number, layer in enumerate(pattern.layers):
        colors = _colors(layer) if len(pattern.layers) == 1 else [PALETTE[number]] * layer.rows.size
        parts += _squares(layer, colors, top)
    bottom = top + rows * SIDE
    if len(pattern.layers) == 1:
        parts += _order_legend(bottom + 12)
        return drawing(right + MARGIN, bottom + 36 + MARGIN / 2, title, parts)
    labels = [layer.label for layer in pattern.layers]
    parts += _part_legend(labels, right + 20, top)
    wide = right + 20 + 22 + 8 * max(map(len, labels))
    return drawing(wide + MARGIN, bottom + MARGIN, title, parts)


def _pattern(tensor: SparseTensor | Decomposition) -> StoredPattern:
    """Return the pattern of a matrix, or of the slices of a tensor, side by side."""
    if isinstance(tensor, Decomposition) or tensor.ndim == 2:
        return pattern_of(tensor)
    slices, rows, columns = tensor.shape
    (number, row, column), places = stored_elements(tensor.storage)
    across = number * (columns + BETWEEN) + column
    layer = Layer(tensor.format, row, across, places, np.zeros(places.size, bool))
    return StoredPattern((rows, slices * (columns + BETWEEN) - BETWEEN), tensor.format, (layer,))


def _slices(tensor: SparseTensor | Decomposition) -> Iterator[tuple[int, int]]:
    """Yield the first column and the width of each slice; a matrix is one."""
    columns = tensor.shape[-1]
    for number in range(tensor.shape[0] if len(tensor.shape) == 3 else 1):
        yield number * (columns + BETWEEN), columns


def _colors(layer: Layer) -> list[str]:
    last = max(int(layer.places.max(initial=0)), 1)
    return [_color(place / last) for place in layer.places]


def _color(fraction: float) -> str:
    """Return a color of the gradient.

    >>> _color(0), _color(0.5), _color(1)
    ('#2b6cb0', '#ab4c8f', '#eea236')
    """
    place = fraction * (len(GRADIENT) - 1)
    first = min(int(place), len(GRADIENT) - 2)
    share = place - first
    mixed = (
        round(a + share * (b - a))
        for a, b in zip(GRADIENT[first], GRADIENT[first + 1], strict=True)
    )
    return "#" + "".join(f"{component:02x}" for component in mixed)


def _squares(layer: Layer, colors: Sequence[str], top: float) -> Iterator[str]:
    for row, column, color, is_filling in zip(
        layer.rows, layer.columns, colors, layer.is_filling, strict=True
    ):
        opacity = ' fill-opacity="0.25"' if is_filling else ""
        place = f'x="{MARGIN + column * SIDE}" y="{top + row * SIDE}"'
        yield f'<rect {place} width="{SIDE - 1}" height="{SIDE - 1}" fill="{color}"{opacity}/>'


def _order_legend(y: float) -> Iterator[str]:
    """Yield a bar of the colors from the first to the last value."""
    first = MARGIN + 66
    yield text(MARGIN, y + 11, "first value", "note")
    for step in range(STEPS):
        color = _color(step / (STEPS - 1))
        yield f'<rect x="{first + step * 5}" y="{y}" width="5" height="12" fill="{color}"/>'
    yield text(first + STEPS * 5 + 6, y + 11, "last value", "note")


def _part_legend(labels: Sequence[str], x: float, y: float) -> Iterator[str]:
    for number, label in enumerate(labels):
        place = f'x="{x}" y="{y + number * 22}"'
        yield f'<rect {place} width="14" height="14" fill="{PALETTE[number]}"/>'
        yield text(x + 22, y + number * 22 + 12, label)
