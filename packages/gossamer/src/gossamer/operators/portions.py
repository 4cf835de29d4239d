"""Large matrices in portions: rows that are too long for one sum, and calls that take long.

A kernel adds the elements of a row in the dtype of its result, and a call of it cannot be interrupted. So a
very long row is cut into blocks, whose sums are added in float64, and a call with much work is made for
portions of the rows, between which Python handles signals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gossamer.operators.operands import Operands
from gossamer_backend import BoundCall
from gossamer_backend.arguments.match import Value
from gossamer_formats import Array
from gossamer_ir.core import build
from gossamer_ir.interchange.records import Signature

LONG_ROW = 1 << 24
"""The number of elements from which on float32 cannot count: 1 added to 2**24 is 2**24."""

BLOCK_ELEMENTS = 1 << 16
"""The number of elements of a block of a long row."""

PORTION_PRODUCTS = 1 << 30
"""The number of products in a portion: 0.1 to 1 second of work."""


def has_long_rows(operands: Operands) -> bool:
    """Return whether the matrix has rows whose elements cannot be added one by one."""
    matrix = operands.matrix
    is_possible = operands.dtype == "float32" and matrix.nnz > LONG_ROW
    return is_possible and matrix.stats().longest_row > LONG_ROW


def is_much_work(products: int) -> bool:
    """Return whether a call that computes so many products is made in portions."""
    return products > PORTION_PRODUCTS


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
    signature: Signature, arrays: dict[str, Array], products: int
) -> Iterator[dict[str, Array]]:
    """Yield the arrays of a kernel that computes so many products for portions of its rows: parts of the
    arrays with a value for each row or stored element, and all of the others."""
    indptr = arrays["indptr"]
    first = {param.name: param.shape[0] for param in signature.buffers}
    each = max(1, products // max(1, int(indptr[-1])))
    for begin, end in _row_ranges(indptr, max(1, PORTION_PRODUCTS // each)):
        rows, elements = slice(begin, end), slice(int(indptr[begin]), int(indptr[end]))
        part = {
            name: array[elements]
            if first[name] == first["indices"]
            else array[rows]
            if build.add(first[name], build.ONE) == first["indptr"]
            else array
            for name, array in arrays.items()
        }
        yield {**part, "indptr": indptr[begin : end + 1] - indptr[begin]}


class BoundPortions(BoundCall):
    """Calls that are bound to portions of the arrays. They run one after the other; Ctrl-C is noticed
    between them."""

    __slots__ = ("_later", "_whole")

    def __init__(self, calls: Sequence[BoundCall], arguments: Mapping[str, Value]) -> None:
        """`arguments` are the values of the parameters for all portions together."""
        first, *later = calls
        super().__init__(first.kernel, first.prepared_arguments, first.arguments)
        self._later, self._whole = tuple(later), arguments

    @property
    def arguments(self) -> Mapping[str, Value]:
        return self._whole

    def __call__(self) -> None:
        super().__call__()
        for call in self._later:
            call()


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
