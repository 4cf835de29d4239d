"""`spy`: a picture of the pattern of a matrix and of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.pictures.pattern import StoredPattern, merged_layers, pattern_of
from gossamer.pictures.pixels import Colors, pixels_of
from gossamer_formats import Array
from gossamer_ir.errors import ArgumentError
from gossamer_support.message_texts import amount
from gossamer_support.typed_calls import typed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_PIXELS = 1 << 12
"""The number of pixels along a dimension: pixels of 0.5 GB."""

_FEW = 10
"""The number of parts up to which neighbors have colors that differ clearly, those of the palette tab10."""

_LEGEND = 20
"""The number of parts that a legend names."""

_LONG = 4
"""The ratio of the sides from which a matrix is drawn as a square."""


@typed
def spy(
    A: Any,
    *,
    ax: Axes | None = None,
    max_pixels: int = 256,
    order: bool = False,
) -> Axes:
    """Draw the pattern of a matrix with matplotlib, and return the axes of the picture.

    A is a `SparseTensor`, a SciPy matrix, or a `Decomposition`, each part of which has a color; the legend
    names the parts with their formats. Along each dimension there are at most `max_pixels` pixels: the more
    elements are in a pixel, the stronger is its color. Zeros that fill blocks or diagonals are faint. With
    `order`, the color of an element shows its place in the array of values: dark ones are stored first. The
    picture is drawn on `ax`, or on a new figure.

    Raises `ArgumentError`: `spy.matplotlib` if matplotlib is not installed (it comes with `gossamer[plot]`),
    `spy.dimensions` unless A has two dimensions, `spy.max_pixels`; and `FormatError` for a matrix that is not
    valid.

    >>> import scipy.sparse, gossamer as gs
    >>> from matplotlib.figure import Figure
    >>> shape, rng = (1000, 800), np.random.default_rng(0)
    >>> matrix = scipy.sparse.random_array(shape, density=0.01, format="csr", dtype=np.float32, rng=rng)
    >>> ax = gs.spy(gs.decompose(matrix, "hyb", k=3), ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['p0b0: ell_rows (width=1)', 'p0b1: ell_rows (width=2)', 'p0b2: ell_rows (width=4)', ...]
    """
    _require_matplotlib()
    if not 1 <= max_pixels <= _MAX_PIXELS:
        raise ArgumentError(
            "spy.max_pixels",
            f"The number of pixels 'max_pixels' is {max_pixels}; expected 1 to {_MAX_PIXELS}.",
        )
    pattern = pattern_of(A)
    labels = [layer.label for layer in pattern.layers]
    if order:
        pattern = pattern._replace(layers=(merged_layers(pattern.layers),))
    palette = _palette(len(pattern.layers), order=order)
    if ax is None:
        ax = _new_axes(pattern)
    _paint(ax, pattern, pixels_of(pattern, palette, max_pixels=max_pixels))
    if len(labels) > 1 and not order:
        _add_legend(ax, labels, palette)
    return ax


def _require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ArgumentError(
            "spy.matplotlib",
            "'spy' draws with matplotlib, which is not installed.",
            hint="Install it: python -m pip install 'gossamer[plot]'.",
        ) from error


def _new_axes(pattern: StoredPattern) -> Axes:
    from matplotlib import pyplot

    _, ax = pyplot.subplots(layout="constrained")
    rows, columns = pattern.shape
    ax.set_title(f"{pattern.format}, {rows:,} by {columns:,}, {pattern.nnz:,} nonzeros")
    return ax


def _palette(count: int, *, order: bool) -> list[Colors]:
    """Return the colors of each layer: one color, or with `order` those of the places."""
    from matplotlib import colormaps

    if order:
        return [lambda places: colormaps["viridis"](places)[:, :3]]
    if count <= _FEW:
        return [_one_color(color) for color in colormaps["tab10"](np.arange(count))]
    return [_one_color(color) for color in colormaps["turbo"](np.linspace(0.05, 0.95, count))]


def _one_color(color: Array) -> Colors:
    return lambda places: np.broadcast_to(color[:3], (places.size, 3))


def _paint(ax: Axes, pattern: StoredPattern, pixels: Array) -> None:
    rows, columns = (max(length, 1) for length in pattern.shape)
    left, right, bottom, top = -0.5, columns - 0.5, rows - 0.5, -0.5
    # matplotlib cannot show an image without pixels, but the axes of an empty matrix.
    if pixels.size:
        ax.imshow(pixels, extent=(left, right, bottom, top), interpolation="nearest")
    ax.set_aspect("equal" if rows < _LONG * columns and columns < _LONG * rows else "auto")
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    ax.set_xlabel("column")
    ax.set_ylabel("row")


def _add_legend(ax: Axes, labels: Sequence[str], palette: Sequence[Colors]) -> None:
    from matplotlib.patches import Patch

    colors = [color(np.zeros(1))[0] for color in palette]
    named = [
        Patch(color=tuple(color), label=label)
        for color, label in zip(colors[:_LEGEND], labels, strict=False)
    ]
    if len(labels) > _LEGEND:
        named.append(
            Patch(alpha=0, label=f"{amount(len(labels) - _LEGEND, 'more part', 'more parts')}")
        )
    ax.legend(handles=named, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)
