"""Pixels of patterns: the sums of elements in each, against a loop; colors of parts and of places."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.pictures.pattern import Layer, StoredPattern
from gossamer.pictures.pixels import FILLING, MIN_OPACITY, pixels_of


def layer_of(rows, columns, is_filling=None):
    rows, columns = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
    filling = np.zeros(rows.size, bool) if is_filling is None else np.asarray(is_filling)
    return Layer("", rows, columns, np.arange(rows.size), filling)


def one_color(*color):
    return lambda places: np.tile(np.array(color, float), (places.size, 1))


RED, BLUE = one_color(1, 0, 0), one_color(0, 0, 1)


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (40, 3), (3, 40), (33, 33)])
@pytest.mark.parametrize("most", [1, 4, 7, 100])
def test_the_opacity_follows_the_density_of_each_pixel(shape, most):
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, shape[0], 60), rng.integers(0, shape[1], 60)
    pixels = pixels_of(StoredPattern(shape, "", (layer_of(rows, columns),)), [RED], max_pixels=most)
    height, width = min(shape[0], most), min(shape[1], most)
    counts, areas = np.zeros((height, width)), np.zeros((height, width))
    for row in range(shape[0]):
        for column in range(shape[1]):
            areas[row * height // shape[0], column * width // shape[1]] += 1
    for row, column in zip(rows, columns, strict=True):
        counts[row * height // shape[0], column * width // shape[1]] += 1
    density = counts / areas
    opacity = MIN_OPACITY + (1 - MIN_OPACITY) * np.sqrt(density / density.max())
    assert pixels.shape == (height, width, 4)
    assert np.allclose(pixels[:, :, 3], np.where(counts, opacity, 0), rtol=1e-14)
    assert np.array_equal(pixels[:, :, 0], counts > 0)


def test_a_pixel_has_the_mean_color_of_its_elements():
    layers = (layer_of([0, 0], [0, 1]), layer_of([1, 1], [0, 1], [False, True]))
    (((red, green, blue, _),),) = pixels_of(
        StoredPattern((2, 2), "", layers), [RED, BLUE], max_pixels=1
    )
    assert (red, green) == (pytest.approx(2 / (3 + FILLING)), 0)
    assert red + blue == pytest.approx(1)


def test_zeros_that_fill_blocks_are_fainter():
    layer = layer_of([0, 1], [0, 1], [False, True])
    pixels = pixels_of(StoredPattern((2, 2), "", (layer,)), [RED], max_pixels=9)
    assert pixels[0, 0, 3] == 1
    assert MIN_OPACITY < pixels[1, 1, 3] < 1


def test_colors_of_places_go_from_the_first_to_the_last_value():
    layer = layer_of([0, 1, 2], [0, 1, 2])
    pixels = pixels_of(
        StoredPattern((3, 3), "", (layer,)),
        [lambda places: np.stack([places] * 3, 1)],
        max_pixels=3,
    )
    assert pixels[range(3), range(3), 0].tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (5, 5)])
def test_no_elements_are_no_color(shape):
    pixels = pixels_of(StoredPattern(shape, "", (layer_of([], []),)), [RED], max_pixels=4)
    assert pixels.shape == (min(shape[0], 4), min(shape[1], 4), 4)
    assert not pixels.any()
    assert not pixels_of(StoredPattern(shape, "", ()), [], max_pixels=4).any()


def test_large_coordinates_do_not_overflow():
    last = 2**40 - 1
    layer = layer_of([0, last], [last, 0])
    pixels = pixels_of(StoredPattern((last + 1, last + 1), "", (layer,)), [RED], max_pixels=4096)
    assert np.argwhere(pixels[:, :, 3]).tolist() == [[0, 4095], [4095, 0]]
