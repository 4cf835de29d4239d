"""Long calls in ranges of rows.

A call of a kernel cannot be interrupted. So a call with much work is made for ranges of rows, between
which Python handles signals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gossamer_formats import Array
from gossamer_ir.core.build import ONE, add
from gossamer_ir.interchange.records import Signature

RANGE_PRODUCTS = 1 << 30
"""The number of products in a range: 0.1 to 1 second of work."""


def is_made_in_ranges(products: int) -> bool:
    """Return whether a call that computes this many products is made in ranges."""
    return products > RANGE_PRODUCTS


def arguments_by_rows(
    signature: Signature, arguments: dict[str, Any], products: int
) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a kernel that computes this many products: as they are, or, if that is much work
    and the matrix is in compressed rows, those for ranges of rows. Arrays with a value for each row or
    stored element are divided, the others are passed to each range."""
    if not is_made_in_ranges(products) or "indptr" not in arguments:
        yield arguments
        return
    indptr = arguments["indptr"]
    # Expressions of the signature say which arrays are divided: sizes may be equal by chance.
    first = {param.name: param.shape[0] for param in signature.buffers}
    products_of_element = max(1, products // max(1, int(indptr[-1])))
    for begin, end in _row_ranges(indptr, max(1, RANGE_PRODUCTS // products_of_element)):
        rows, elements = slice(begin, end), slice(int(indptr[begin]), int(indptr[end]))
        part = {
            name: array[elements]
            if first[name] == first["indices"]
            else array[rows]
            if add(first[name], ONE) == first["indptr"]
            else array
            for name, array in arguments.items()
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
        # At least one row, however long it is.
        end = min(rows, max(begin + 1, last))
        yield begin, end
        begin = end
