"""Converts the table of CSR matrices to other formats and to the arguments of other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from gossamer_support.arrays import Array
from gossamer_testkit.corpus.case import Case, Options
from gossamer_testkit.corpus.inputs.csr_inputs import UNTOUCHED, integers, random_values
from gossamer_testkit.matrices.cases import csr_cases
from gossamer_testkit.matrices.csr_matrix import Csr

MAX_VALUE = 1000
COLUMNS_OF_TILE = 16
"""The columns of a tile in the script `tiled_csr_spmm`."""
GROUP_ROWS = 3
"""The rows of a group in the script `row_groups_spmm`."""

_Make: TypeAlias = Callable[[Csr, Options], dict[str, Any]]


def sddmm_cases(options: Options) -> Iterator[Case]:
    """Return dense X and Y for every matrix, of which only the structure is used."""
    return _cases(options, _sddmm)


def elements_cases(options: Options) -> Iterator[Case]:
    """Return every matrix with a vector R over its rows and X over its columns."""
    return _cases(options, _elements)


def row_sums_cases(options: Options) -> Iterator[Case]:
    """Return every matrix, without further operands."""
    return _cases(options, _sums)


def segment_sums_cases(options: Options) -> Iterator[Case]:
    """Return the rows of every matrix as segments, without column indices."""
    return _cases(
        options, lambda matrix, options: _without_names(_sums(matrix, options), "indices")
    )


def ell_cases(options: Options) -> Iterator[Case]:
    """Return ELL with one slot more than the longest row has elements; unused slots hold NaN."""
    return _cases(options, _ell)


def dcsr_cases(options: Options) -> Iterator[Case]:
    """Return DCSR with the rows that are not empty, and some empty ones."""
    return _cases(options, _dcsr)


def bsr_cases(options: Options) -> Iterator[Case]:
    """Return BSR with a block for each element of the matrices."""
    return _cases(options, _bsr)


def row_groups_cases(options: Options) -> Iterator[Case]:
    """Return groups of three rows, in the order of their numbers modulo 5."""
    return _cases(options, _row_groups)


def bitmask_cases(options: Options) -> Iterator[Case]:
    """Return the distinct elements of every matrix, with a word of bits for each 64 columns of a row."""
    return _cases(options, _bitmask)


def tiled_csr_cases(options: Options) -> Iterator[Case]:
    """Return whole tiles of 16 columns; those after the last column of the matrix are empty."""
    return _cases(options, _tiled_csr)


def _cases(options: Options, make: _Make) -> Iterator[Case]:
    """Yield the cases for matrices with finite values and at most `options["most"]` elements, a limit because
    interpreters are slow."""
    most = options.get("most", MAX_VALUE)
    for matrix in csr_cases(dtype=options["dtype"], index_dtype=options["index_dtype"]):
        if np.isfinite(matrix.data).all() and matrix.nnz <= most:
            yield Case(matrix.name, make(matrix, options))


def _untouched_values(shape: tuple[int, ...], matrix: Csr) -> Array:
    return np.full(shape, UNTOUCHED, matrix.data.dtype)


def _without_names(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _sddmm(matrix: Csr, options: Options) -> dict[str, Any]:
    x, y = (integers((size, options["features"]), options["dtype"]) for size in matrix.shape)
    values = _without_names(random_values(matrix), "a")
    return {**values, "x": x, "y": y, "out": _untouched_values((matrix.nnz,), matrix)}


def _elements(matrix: Csr, options: Options) -> dict[str, Any]:
    r, x = (integers((size,), options["dtype"]) for size in matrix.shape)
    return {
        **random_values(matrix),
        "r": r,
        "x": x,
        "out": _untouched_values((matrix.nnz,), matrix),
    }


def _sums(matrix: Csr, _options: Options) -> dict[str, Any]:
    return {**random_values(matrix), "y": _untouched_values(matrix.shape[:1], matrix)}


def _product(matrix: Csr, options: Options) -> dict[str, Any]:
    features = options["features"]
    return {
        "m": matrix.shape[0],
        "n": matrix.shape[1],
        "b": integers((matrix.shape[1], features), options["dtype"]),
        "c": _untouched_values((matrix.shape[0], features), matrix),
    }


def _ell(matrix: Csr, options: Options) -> dict[str, Any]:
    width = matrix.longest_row + 1
    used = np.arange(width) < matrix.row_lengths[:, None]
    indices = np.full(used.shape, matrix.shape[1], matrix.indices.dtype)
    # A kernel that multiplies an unused slot gives NaN, which no comparison overlooks.
    a = np.full(used.shape, np.nan, matrix.data.dtype)
    indices[used], a[used] = matrix.indices, matrix.data
    return {**_product(matrix, options), "indices": indices, "a": a, "width": width}


def _dcsr(matrix: Csr, options: Options) -> dict[str, Any]:
    # DCSR may store rows without elements, and kernels must not rely on the contrary.
    kept = np.flatnonzero((matrix.row_lengths > 0) | (np.arange(matrix.shape[0]) % 3 == 1))
    index_dtype = matrix.indptr.dtype
    return {
        **_product(matrix, options),
        "a": matrix.data,
        "indptr_i": np.array([0, kept.size], index_dtype),
        "indices_i": kept.astype(index_dtype),
        "indptr_j": np.concatenate([[0], np.cumsum(matrix.row_lengths[kept])]).astype(index_dtype),
        "indices_j": matrix.indices,
        "stored": kept.size,
        "nnz": matrix.nnz,
    }


def _bitmask(matrix: Csr, options: Options) -> dict[str, Any]:
    (rows, columns), index_dtype = matrix.shape, matrix.indptr.dtype
    words = -(-columns // 64)
    places = matrix.rows * words * 64 + matrix.indices
    # A bit is set once, so that of repeated elements the first is taken.
    places, firsts = np.unique(places, return_index=True)
    bits = np.zeros(rows * words, np.uint64)
    np.bitwise_or.at(bits, places // 64, np.uint64(1) << (places % 64).astype(np.uint64))
    lengths = np.bincount(places // 64, minlength=rows * words)
    return {
        "m": rows,
        "n": columns,
        "nnz": len(places),
        "a": matrix.data[firsts],
        "indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(index_dtype),
        "words": bits,
        "b": integers((columns, options["features"]), options["dtype"]),
        "c": _untouched_values((rows, options["features"]), matrix),
    }


def _tiled_csr(matrix: Csr, options: Options) -> dict[str, Any]:
    rows, tiles = matrix.shape[0], -(-matrix.shape[1] // COLUMNS_OF_TILE)
    fibers = matrix.indices // COLUMNS_OF_TILE * rows + matrix.rows
    order = np.argsort(fibers, kind="stable")
    index_dtype, features, dtype = matrix.indptr.dtype, options["features"], options["dtype"]
    lengths = np.bincount(fibers, minlength=tiles * rows)
    return {
        "m": rows,
        "n": tiles * COLUMNS_OF_TILE,
        "nnz": matrix.nnz,
        "a": matrix.data[order],
        "indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(index_dtype),
        "indices": (matrix.indices[order] % COLUMNS_OF_TILE).astype(index_dtype),
        "b": integers((tiles * COLUMNS_OF_TILE, features), dtype),
        "c": integers((rows, features), dtype),
    }


def _row_groups(matrix: Csr, options: Options) -> dict[str, Any]:
    count = matrix.shape[0]
    groups = -(-count // GROUP_ROWS)
    rows = np.concatenate(
        [np.argsort(np.arange(count) % 5, kind="stable"), np.arange(groups * 3)[count:]]
    )
    places = np.argsort(rows)[matrix.rows]
    # A slot for each column of a group, in ascending order, and the slots of the elements.
    keys = places // GROUP_ROWS * max(matrix.shape[1], 1) + matrix.indices
    stored, slots = np.unique(keys, return_inverse=True)
    index_dtype = matrix.indptr.dtype
    values = np.zeros((stored.size, GROUP_ROWS), matrix.data.dtype)
    np.add.at(values, (slots, places % GROUP_ROWS), matrix.data)
    lengths = np.bincount(stored // max(matrix.shape[1], 1), minlength=groups)
    return {
        **_product(matrix, options),
        "a": values,
        "indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(index_dtype),
        "indices": (stored % max(matrix.shape[1], 1)).astype(index_dtype),
        "rows": rows.reshape(groups, GROUP_ROWS).astype(np.int32),
        "slots": stored.size,
    }


def _bsr(matrix: Csr, options: Options) -> dict[str, Any]:
    block, features, dtype = options["block"], options["features"], options["dtype"]
    shape = matrix.shape[0], block, features
    return {
        "nb": matrix.shape[0],
        "mb": matrix.shape[1],
        "nnzb": matrix.nnz,
        "indptr": matrix.indptr,
        "indices": matrix.indices,
        "a": integers((matrix.nnz, block, block), dtype),
        "b": integers((matrix.shape[1], block, features), dtype),
        "c": _untouched_values(shape, matrix),
    }
