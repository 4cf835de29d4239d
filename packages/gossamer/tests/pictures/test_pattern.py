"""Patterns of matrices: the coordinates and values of each part, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.pictures.pattern import merged_layers, pattern_of
from gossamer_formats import from_arrays
from gossamer_ir.errors import ArgumentError, FormatError

FORMATS = {
    "csr": {},
    "csc": {},
    "coo": {},
    "dcsr": {},
    "dia": {},
    "bsr": {"block_rows": 3, "block_columns": 2},
    "ell": {},
    "sell": {"height": 4, "sigma": 8},
    "sr_bcrs": {"strip": 4, "width": 2},
    "padded_csr": {"width": 2},
    "tiled_csr": {"tile_columns": 5},
}
SHAPES = [(0, 0), (0, 4), (4, 0), (1, 1), (37, 29), (29, 37)]


def matrix_of(shape, density=0.2):
    matrix = sparse.random_array(
        shape, density=density, format="csr", rng=np.random.default_rng(7), dtype=np.float32
    )
    matrix.data = np.arange(1, matrix.nnz + 1, dtype=np.float32)
    return matrix


def drawn(layer, shape):
    """The dense matrix of the elements that a layer has."""
    dense, is_stored = np.zeros(shape, int), ~layer.is_filling
    np.add.at(dense, (layer.rows[is_stored], layer.columns[is_stored]), 1)
    return dense


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("format", FORMATS)
def test_the_elements_are_those_of_the_matrix(format, shape):
    matrix = matrix_of(shape)
    tensor = gs.from_scipy(matrix).asformat(format, **FORMATS[format])
    pattern = pattern_of(tensor)
    (layer,) = pattern.layers
    assert (pattern.shape, pattern.format, pattern.nnz) == (shape, tensor.format, matrix.nnz)
    assert np.array_equal(drawn(layer, shape), matrix.toarray() != 0)
    values = tensor.storage.values[layer.places]
    assert np.array_equal(values, matrix.toarray()[layer.rows, layer.columns])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("c", [1, 3])
def test_the_layers_of_a_decomposition_are_its_parts(shape, c):
    matrix = matrix_of(shape)
    decomposition = gs.decompose(matrix, "hyb", c=c, k=2)
    pattern = pattern_of(decomposition)
    assert [layer.label.partition(":")[0] for layer in pattern.layers] == [
        part.name for part in decomposition.parts
    ]
    assert pattern.nnz == matrix.nnz
    total = sum((drawn(layer, shape) for layer in pattern.layers), np.zeros(shape, int))
    assert np.array_equal(total, matrix.toarray() != 0)
    assert merged_layers(pattern.layers).rows.size == matrix.nnz


def test_labels_name_the_format_of_a_part_with_its_sizes():
    parts = [
        ("dia", lambda i, j: i == j),
        ("bsr", lambda i, j: i < 20, {"block_rows": 2, "block_columns": 4}),
        "csr",
    ]
    matrix = (matrix_of((40, 40)) + sparse.eye_array(40, dtype=np.float32, format="csr")).tocsr()
    labels = [layer.label for layer in pattern_of(gs.decompose(matrix, parts)).layers]
    assert labels == ["dia_0: dia", "bsr_1: bsr (block_rows=2, block_columns=4)", "csr_2: csr"]


def test_zeros_of_the_matrix_are_elements_and_zeros_that_fill_blocks_are_not():
    matrix = sparse.csr_array((np.array([0.0, 2.0]), np.array([0, 3]), np.array([0, 1, 2])), (2, 4))
    assert pattern_of(matrix).nnz == 2
    parts = gs.decompose(matrix, [("bsr", None, {"block_rows": 1, "block_columns": 2})])
    (layer,) = pattern_of(parts).layers
    assert layer.is_filling.tolist() == [False, True, True, False]


def test_a_borrowed_tensor_that_is_not_valid_is_refused():
    matrix = matrix_of((9, 9))
    tensor = gs.from_scipy(matrix, copy=False)
    matrix.indices[0] = 100
    with pytest.raises(FormatError):
        pattern_of(tensor)


def test_tensors_of_three_dimensions_are_refused():
    indices = {f"indices_{axis}": np.array([0]) for axis in range(3)}
    cube = from_arrays("coo", (2, 2, 2), data=np.ones(1), **indices)
    with pytest.raises(ArgumentError, match="3 dimensions") as caught:
        pattern_of(cube)
    assert caught.value.code == "spy.dimensions"
