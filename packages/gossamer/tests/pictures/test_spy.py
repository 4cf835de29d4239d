"""`gossamer.spy`: what is drawn, the legend of parts, and invalid arguments."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer_formats import from_arrays
from gossamer_ir.errors import ArgumentError, FormatError


@pytest.fixture
def ax():
    figure = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed")
    return figure.Figure().subplots()


def matrix_of(shape, density=0.1):
    return sparse.random_array(
        shape, density=density, format="csr", rng=np.random.default_rng(7), dtype=np.float32
    )


def picture(ax):
    (image,) = ax.get_images()
    return np.asarray(image.get_array())


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "tensor", "matrix"])
def test_the_elements_are_drawn(kind, ax):
    matrix = matrix_of((30, 20))
    convert = {"tensor": gs.from_scipy, "matrix": sparse.csr_matrix}.get(kind)
    drawn = gs.spy(convert(matrix) if convert else matrix.asformat(kind), ax=ax)
    assert drawn is ax
    opaque = picture(ax)[:, :, 3] == 1
    assert np.array_equal(opaque, matrix.toarray() != 0)
    assert (ax.get_xlim(), ax.get_ylim()) == ((-0.5, 19.5), (29.5, -0.5))
    assert ax.get_legend() is None


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (4, 4)])
@pytest.mark.parametrize("in_parts", [False, True])
def test_matrices_without_elements_are_drawn(shape, in_parts, ax):
    matrix = sparse.csr_array(shape, dtype=np.float32)
    gs.spy(gs.decompose(matrix, "hyb") if in_parts else matrix, ax=ax)
    ax.figure.canvas.draw()
    assert not any(np.asarray(image.get_array()).any() for image in ax.get_images())


def test_each_part_has_its_color(ax):
    matrix = matrix_of((40, 40), 0.3)
    below, above = ("csr", lambda i, j: i > j), "csr"
    gs.spy(gs.decompose(matrix, [below, above]), ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["csr_0: csr", "csr_1: csr"]
    lower, upper = (patch.get_facecolor()[:3] for patch in ax.get_legend().get_patches())
    assert lower != upper
    dense, colors = matrix.toarray(), picture(ax)[:, :, :3]
    assert np.allclose(colors[np.tril(dense, -1) != 0], lower)
    assert np.allclose(colors[np.triu(dense) != 0], upper)


def test_a_legend_of_many_parts_is_cut(ax):
    parts = [("csr", lambda i, j, row=row: i == row) for row in range(30)]
    gs.spy(gs.decompose(sparse.csr_array(np.ones((30, 4), np.float32)), parts), ax=ax)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert (len(texts), texts[-1]) == (21, "10 more parts")
    assert len({tuple(row[0]) for row in picture(ax)}) == 30


def test_a_large_matrix_is_binned(ax):
    matrix = sparse.diags_array(np.ones(5000, np.float32), format="csr")
    gs.spy(matrix, ax=ax, max_pixels=100)
    assert picture(ax).shape == (100, 100, 4)
    assert np.array_equal(picture(ax)[:, :, 3] > 0, np.eye(100) > 0)
    assert ax.get_xlim() == (-0.5, 4999.5)


@pytest.mark.parametrize(
    ("shape", "aspect"), [((10, 30), 1.0), ((10, 40), "auto"), ((90, 2), "auto")]
)
def test_long_matrices_are_drawn_as_a_square(shape, aspect, ax):
    gs.spy(matrix_of(shape), ax=ax)
    assert ax.get_aspect() == aspect


@pytest.mark.parametrize("in_parts", [False, True])
def test_the_order_of_values_is_drawn(in_parts, ax):
    matrix = sparse.csr_array(np.ones((2, 3), np.float32))
    stored = gs.from_scipy(matrix).asformat("csc")
    parts = [("csr", lambda i, j: j == 0), ("csr", lambda i, j: j == 1), "csr"]
    gs.spy(gs.decompose(matrix, parts) if in_parts else stored, ax=ax, order=True)
    greens = picture(ax)[:, :, 1].T.reshape(-1)
    assert np.array_equal(np.argsort(greens), np.arange(6)), (
        "the palette is brighter from place to place"
    )
    assert ax.get_legend() is None


def test_without_axes_there_is_a_new_figure():
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    ax = gs.spy(gs.decompose(matrix_of((2000, 30)), "hyb", k=2))
    assert ax.get_title() == "hyb, 2,000 by 30, 6,000 nonzeros"
    ax.figure.canvas.draw()
    pyplot.close(ax.figure)


@pytest.mark.parametrize("count", [0, -3, 10**6])
def test_the_number_of_pixels_is_checked(count, ax):
    with pytest.raises(ArgumentError, match=f"is {count}; expected 1 to 4096") as caught:
        gs.spy(matrix_of((3, 3)), ax=ax, max_pixels=count)
    assert caught.value.code == "spy.max_pixels"


def test_what_is_not_a_matrix_is_refused(ax):
    cube = from_arrays(
        "coo", (2, 2, 2), data=np.ones(1), **{f"indices_{axis}": np.array([0]) for axis in range(3)}
    )
    for wrong, error in (
        (cube, ArgumentError),
        (np.ones((2, 2)), FormatError),
        (None, FormatError),
    ):
        with pytest.raises(error):
            gs.spy(wrong, ax=ax)


def test_without_matplotlib_a_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ArgumentError, match=r"pip install 'gossamer\[plot\]'") as caught:
        gs.spy(matrix_of((3, 3)))
    assert caught.value.code == "spy.matplotlib"
