"""For each format: when to use it, the matrix that suits it, and the parameters of its pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gossamer_formats import (
    Array,
    Decomposition,
    SparseTensor,
    decompose,
    format_named,
    from_arrays,
    prune,
)
from gossamer_formats.decomposition.format_list import ChosenFormat
from gossamer_formats.registry.composable_formats import COMPOSABLE_FORMATS
from tools.drawing import matrices

SMALL = np.array(
    [[1, 2, 0, 0, 0, 0], [0, 3, 0, 0, 0, 0], [4, 0, 5, 6, 0, 7], [0, 0, 8, 0, 0, 0]], float
)
"""The matrix whose arrays are drawn; zeros are not stored."""

SMALL_CUBE = np.stack([SMALL[:, :4], np.where(SMALL[::-1, 2:] > 4, SMALL[::-1, 2:] + 4, 0)])
"""The same for formats of three dimensions."""


class Example(NamedTuple):
    """A sentence or two on when to use a format, and the matrix of its picture. `parameters` are those of the
    matrix; `small` are those of the small one, if `example_parameters` of the format do not suit it."""

    use: str
    matrix: Array
    parameters: Mapping[str, int] = {}
    small: Mapping[str, int] = {}


EXAMPLES: dict[str, Example] = {
    "bitmask": Example(
        "For weights that were pruned without a pattern to a third or a half of their elements: a column "
        "takes 1.5 bits, whether it is stored or not, instead of 32 bits for each one that is. An element "
        "is found in constant time.",
        matrices.weights(),
    ),
    "blocked_sell": Example(
        "For products of a matrix of finite elements with a vector: the block rows of a slice are computed "
        "in the lanes of a vector, and an element of the vector is gathered once for all rows of a block.",
        matrices.elements(),
        {"block_rows": 4, "block_columns": 4, "height": 2},
    ),
    "bsr": Example(
        "For matrices of dense blocks: finite elements with several unknowns in a node, and weights that "
        "were pruned in blocks. A block has one index, and `spmm` multiplies it from registers.",
        matrices.elements(),
        {"block_rows": 4, "block_columns": 4},
    ),
    "coo": Example(
        "For exchange, and for tensors of any number of dimensions: each element has all its coordinates. "
        "Operators convert it to `csr` once.",
        matrices.graph(),
    ),
    "csc": Example(
        "For access by columns, and for products with the transposed matrix.",
        matrices.graph(),
    ),
    "csf": Example(
        "For tensors of three dimensions and more: a coordinate that many elements share is stored once.",
        matrices.relations(),
    ),
    "csr": Example(
        "The default. Files of matrices are read as `csr`, and every operator computes with it.",
        matrices.graph(),
    ),
    "dbsr": Example(
        "For weights that were pruned in blocks so far that whole rows of blocks are empty.",
        matrices.pruned_blocks(),
        {"block_rows": 4, "block_columns": 4},
    ),
    "dcsr": Example(
        "For matrices in which most rows are empty, such as one relation of a large graph. Empty rows "
        "have no offsets, and loops skip them.",
        matrices.few_rows(),
    ),
    "dia": Example(
        "For stencils and bands whose diagonals are nearly full. An element has no index of its own.",
        matrices.stencil(),
    ),
    "ell": Example(
        "For meshes, and other matrices whose rows have about the same number of nonzeros. There are no "
        "offsets, and all rows take the same time.",
        matrices.mesh_graph(),
    ),
    "ell3d": Example(
        "For graphs of several relations (relational graph convolution): they are one tensor, and a kernel "
        "computes groups of rows.",
        matrices.relations(),
        {"group_rows": 4, "width": 2},
        {"group_rows": 2, "width": 2},
    ),
    "ell_rows": Example(
        "For rows of similar length that are anywhere in the matrix: it is one bucket of `hyb`. A long "
        "row is stored in several places.",
        matrices.few_rows(),
        {"width": 4},
    ),
    "n_m": Example(
        "For weights that were pruned to N of M columns (`gossamer.prune`). An index takes a byte, and "
        "all rows have the same number of slots.",
        matrices.weights(),
    ),
    "padded_csr": Example(
        "For rows of different lengths that are computed in whole vectors: a chunk never has elements of two "
        "rows.",
        matrices.graph(),
        {"width": 4},
    ),
    "ragged": Example(
        "For rows that are dense up to a length of their own, such as the sequences of a batch. No "
        "columns are stored.",
        matrices.sequences(),
    ),
    "row_groups": Example(
        "For products with a matrix. In groups of one row, rows with columns in common are computed one "
        "after the other, so that rows of the dense matrix are still in a cache. In larger groups, the rows "
        "of a group share their columns, and each row of the dense matrix is read once for all of them.",
        matrices.elements(),
        {"height": 4},
    ),
    "sell": Example(
        "For products with a vector if rows differ in length: the rows of a slice are computed in the "
        "lanes of a vector. Rows are sorted by length in windows, so that few slots are unused.",
        matrices.graph(),
        {"height": 4, "sigma": 16},
    ),
    "sliced_dia": Example(
        "For products of stencils and other matrices of diagonals with a vector: a diagonal of a slice takes "
        "one index, and its elements are loaded as vectors, as are those of the dense operand. Other "
        "diagonals than those of the whole matrix are stored only where they have elements.",
        matrices.elements(),
        {"height": 4},
    ),
    "sr_bcrs": Example(
        "For weights that were pruned in vectors of several rows: a strip has one index for all rows of a "
        "vector, and vectors are computed in groups.",
        matrices.pruned_vectors(),
        {"strip": 4, "width": 4},
    ),
    "tiled_csr": Example(
        "For pruned weights with many nonzeros in a row. The rows of the dense matrix that belong to a tile "
        "stay in a cache while the tile is multiplied. `gossamer.prepare` chooses it where it pays.",
        matrices.pruned_weights(),
        {"tile_columns": 12},
    ),
    "v_n_m": Example(
        "For weights of higher sparsity than N:M (`gossamer.prune`): V rows share some of M columns, and "
        "each of them has N slots there.",
        matrices.weights(),
        {"rows": 4, "group": 9, "chosen": 4, "slots": 2},
    ),
    "hyb": Example(
        "For graphs whose rows differ much in length. Each bucket has rows of similar length, which are "
        "padded to its width; partitions of the columns keep the dense operand in a cache.",
        matrices.graph(),
        {"c": 2, "k": 2},
        {"k": 2},
    ),
}
"""The examples by the names of the formats: those of tensors, then composable ones."""

_PRUNED = ("n_m", "v_n_m")
"""Formats that cannot store every matrix: the pictures show pruned ones."""


def small_example(name: str) -> SparseTensor | Decomposition:
    """Return a small matrix in a format.

    >>> small_example("csr").arrays["indptr"].tolist()
    [0, 2, 3, 7, 8]
    """
    dense = SMALL_CUBE if EXAMPLES[name].matrix.ndim == 3 else SMALL
    return _store_matrix(name, dense, EXAMPLES[name].small or _example_parameters(name))


def stored_example(name: str) -> SparseTensor | Decomposition:
    """Return the matrix that suits a format, in this format.

    >>> [part.name for part in stored_example("hyb").parts]
    ['p0b0', 'p0b1', 'p0b2', 'p1b0', 'p1b1', 'p1b2']
    """
    return _store_matrix(name, EXAMPLES[name].matrix, EXAMPLES[name].parameters)


def matrix_in_parts() -> Decomposition:
    """Return a matrix in a list of formats: the band in diagonals, blocks, and all other elements in CSR."""
    dense = matrices.mixed_matrix()
    blocks = np.kron(dense.reshape(7, 4, 7, 4).all(axis=(1, 3)), np.ones((4, 4), bool))
    parts: list[ChosenFormat] = [
        ("bsr", lambda rows, columns: blocks[rows, columns], {"block_rows": 4, "block_columns": 4}),
        ("dia", lambda rows, columns: abs(rows - columns) <= 1),
        "csr",
    ]
    return decompose(_tensor(dense), parts)


def _example_parameters(name: str) -> Mapping[str, int]:
    is_composable = name in COMPOSABLE_FORMATS.names()
    record = COMPOSABLE_FORMATS.lookup(name) if is_composable else format_named(name)
    return record.example_parameters


def _store_matrix(
    name: str, dense: Array, parameters: Mapping[str, int]
) -> SparseTensor | Decomposition:
    sizes: dict[str, Any] = dict(parameters)
    if name in _PRUNED:
        return prune(dense, name, **sizes)
    if name in COMPOSABLE_FORMATS.names():
        return decompose(_tensor(dense), name, **sizes)
    return _tensor(dense).asformat(name, **sizes)


def _tensor(dense: Array) -> SparseTensor:
    coordinates = dense.nonzero()
    arrays = {f"indices_{axis}": array for axis, array in enumerate(coordinates)}
    return from_arrays("coo", dense.shape, data=dense[coordinates], **arrays)
