"""The pixels of a picture of a matrix: their colors, and how many elements fall into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from gossamer.pictures.pattern import Layer, StoredPattern
from gossamer_formats import Array

Colors: TypeAlias = Callable[[Array], Array]
"""Returns the colors (n by 3, from 0 to 1) of places in the array of values, as fractions of its length."""

FILLING = 0.3
"""The weight of a zero that fills a dense axis; that of an element is 1."""

MIN_OPACITY = 0.2
"""The opacity of a pixel with a single element, which has to be seen in a large matrix."""


def pixels_of(pattern: StoredPattern, colors: Sequence[Colors], *, max_pixels: int) -> Array:
    """Return the picture of a pattern: pixels by 4, red, green, blue and opacity, each from 0 to 1.

    There are at most `max_pixels` pixels along each dimension. A pixel has the mean color of its elements.
    Its opacity grows with the square root of their number, relative to the pixel that has most.

    >>> layer = Layer("", np.array([0, 0, 3]), np.array([0, 1, 3]), np.arange(3), np.zeros(3, bool))
    >>> def red(places):
    ...     return np.tile([1.0, 0.0, 0.0], (places.size, 1))
    >>> pixels_of(StoredPattern((4, 4), "csr", (layer,)), [red], max_pixels=2)[:, :, 3].round(2)
    array([[1.  , 0.  ],
           [0.  , 0.77]])
    """
    height, width = (min(length, max_pixels) for length in pattern.shape)
    weights = np.zeros(height * width)
    painted = np.zeros((height * width, 3))
    for layer, color in zip(pattern.layers, colors, strict=True):
        layer_weights, places = _weights_and_places(pattern, layer, height, width)
        seen = np.flatnonzero(layer_weights)
        painted[seen] += color(places[seen]) * layer_weights[seen, np.newaxis]
        weights += layer_weights
    picture = np.zeros((height, width, 4))
    seen = np.flatnonzero(weights)
    density = weights / _areas(pattern.shape, height, width)
    # Square roots, because the densities of graphs differ by orders of magnitude.
    share = np.sqrt(density[seen] / density.max(initial=0))
    flat = picture.reshape(-1, 4)
    flat[seen, :3] = painted[seen] / weights[seen, np.newaxis]
    flat[seen, 3] = MIN_OPACITY + (1 - MIN_OPACITY) * share
    return picture


def _weights_and_places(
    pattern: StoredPattern, layer: Layer, height: int, width: int
) -> tuple[Array, Array]:
    """Return for each pixel the weight of the elements in it, and the mean of their places."""
    rows, columns = pattern.shape
    pixels = layer.rows * height // max(rows, 1) * width + layer.columns * width // max(columns, 1)
    count = height * width
    weights = np.bincount(pixels, np.where(layer.is_filling, FILLING, 1.0), minlength=count)
    elements = np.maximum(np.bincount(pixels, minlength=count), 1)
    # At least 1, for a layer with one value.
    last = max(int(layer.places.max(initial=0)), 1)
    places = np.bincount(pixels, layer.places / last, minlength=count) / elements
    return weights, places


def _areas(shape: tuple[int, int], height: int, width: int) -> Array:
    """Return the number of coordinates in each pixel.

    >>> _areas((3, 4), 2, 2).tolist()
    [4.0, 4.0, 2.0, 2.0]
    """
    heights, widths = map(_lengths, shape, (height, width))
    return np.outer(heights, widths).reshape(-1)


def _lengths(length: int, pixels: int) -> Array:
    """Return how many of the coordinates 0, 1, ... below a length are in each pixel."""
    bounds = -(-np.arange(pixels + 1) * length // max(pixels, 1))
    return np.diff(bounds).astype(float)
