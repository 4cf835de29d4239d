"""Large matrices in portions: rows that are too long for one sum, and calls that take long.

A kernel adds the elements of a row in the dtype of its result, and a call of it cannot be interrupted. So a
very long row is cut into blocks, whose sums are added in float64, and a call with much work is made for
portions of the rows, between which Python handles signals.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gossamer.operators.operands import Operands
from gossamer_formats import Array
from gossamer_ir.core.build import index_var
from gossamer_ir.interchange.records import Signature
from gossamer_ir.nodes import Expr

LONG_ROW = 1 << 24
"""The number of elements from which on float32 cannot count: 1 added to 2**24 is 2**24."""

BLOCK_ELEMENTS = 1 << 16
"""The number of elements of a block of a long row."""

PORTION_PRODUCTS = 1 << 30
"""The number of products in a portion: 0.1 to 1 second of work."""

_ROWS, _ELEMENTS = index_var("m"), index_var("nnz")


def has_long_rows(operands: Operands) -> bool:
    """Return whether the matrix has rows whose elements cannot be added one by one."""
    matrix = operands.matrix
    is_possible = operands.dtype == "float32" and matrix.nnz > LONG_ROW
    return is_possible and matrix.stats().longest_row > LONG_ROW


def is_much_work(operands: Operands) -> bool:
    """Return whether a call with these operands is made in portions."""
    return operands.matrix.nnz * (operands.features or 1) > PORTION_PRODUCTS


def in_blocks(operands: Operands) -> tuple[Operands, Array]:
    """Return operands whose matrix has a row for each block of a row, and the first block of each row.

    The columns and values are shared. An empty row has one block.
    """
    matrix = operands.matrix
    offsets, starts = _block_offsets(matrix.arrays["indptr"])
    storage = matrix.storage
    sizes = {**storage.sizes, "m": len(offsets) - 1}
    cut = storage._replace(sizes=sizes, arrays={**storage.arrays, "indptr": offsets})
    shape = (len(offsets) - 1, *operands.shape[1:])
    return operands._replace(matrix=matrix._replace(storage=cut, tensor=None), shape=shape), starts


def _block_offsets(indptr: Array) -> tuple[Array, Array]:
    """Return the offsets of blocks, and the number of the first block of each row.

    >>> offsets, starts = _block_offsets(np.array([0, 2, 2, BLOCK_ELEMENTS + 5]))
    >>> offsets.tolist() == [0, 2, 2, BLOCK_ELEMENTS + 2, BLOCK_ELEMENTS + 5], starts.tolist()
    (True, [0, 1, 2])
    """
    begins = indptr[:-1].astype(np.int64)
    counts = np.maximum(1, -(-(indptr[1:] - begins) // BLOCK_ELEMENTS))
    starts = np.cumsum(counts) - counts
    row = np.repeat(np.arange(len(counts)), counts)
    offsets = begins[row] + BLOCK_ELEMENTS * (np.arange(len(row)) - starts[row])
    return np.append(offsets, indptr[-1]).astype(indptr.dtype), starts


def row_portions(
    signature: Signature, arrays: dict[str, Array], features: int | None
) -> Iterator[dict[str, Array]]:
    """Yield the arrays of a kernel for portions of the rows: parts of the arrays with a value for each row or
    stored element, and all of the others."""
    indptr = arrays["indptr"]
    first = {param.name: param.shape[0] for param in signature.buffers}
    for begin, end in _row_ranges(indptr, max(1, PORTION_PRODUCTS // (features or 1))):
        rows, elements = slice(begin, end), slice(int(indptr[begin]), int(indptr[end]))
        parts: dict[Expr, slice] = {_ROWS: rows, _ELEMENTS: elements}
        part = {
            name: array[parts[first[name]]] if first[name] in parts else array
            for name, array in arrays.items()
        }
        yield {**part, "indptr": indptr[begin : end + 1] - indptr[begin]}


def _row_ranges(indptr: Array, count: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with at most `count` elements, or of one row.

    >>> list(_row_ranges(np.array([0, 0, 2, 4, 9, 9, 10]), 4))
    [(0, 3), (3, 4), (4, 6)]
    """
    begin, rows = 0, len(indptr) - 1
    while begin < rows:
        last = int(np.searchsorted(indptr, int(indptr[begin]) + count, side="right")) - 1
        end = min(rows, max(begin + 1, last))
        yield begin, end
        begin = end
