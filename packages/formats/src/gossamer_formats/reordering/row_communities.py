"""An order of rows by communities: rows that select the same columns come one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed

CompileProgram: TypeAlias = Callable[[Module], Callable[..., Any]]
"""Compiles a module to a function that takes the parameters of the program by name."""

ROUNDS = 3
"""The number of times that all labels are updated (measured on graphs of citations: after one round the order
gains nothing, after two half as much as after three, and after more than three not more)."""

_SCRIPT = """
@T.prim_func
def propagate(
    indptr: T.handle, indices: T.handle, labels: T.handle, counts: T.handle, m: T.int64,
    nnz: T.int64, rounds: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 0})
    OFFSETS = T.match_buffer(indptr, (m + 1,), "OFFSET")
    COLUMNS = T.match_buffer(indices, (nnz,), "COLUMN")
    LABELS = T.match_buffer(labels, (m,), "int32")
    COUNTS = T.match_buffer(counts, (m,), "int32")
    T.assume(monotone(OFFSETS))
    T.assume(in_range(OFFSETS, 0, nnz + 1))
    T.assume(in_range(COLUMNS, 0, m))
    BEST = T.alloc_buffer((1,), "int32", scope="local")
    MOST = T.alloc_buffer((1,), "int32", scope="local")
    for t in T.serial(rounds):
        for i in T.serial(m):
            BEST[0] = LABELS[i]
            MOST[0] = 0
            for p in T.serial(T.int64(OFFSETS[i]), T.int64(OFFSETS[i + 1])):
                label = LABELS[T.int64(COLUMNS[p])]
                count = COUNTS[T.int64(label)] + 1
                COUNTS[T.int64(label)] = count
                wins = count > MOST[0] or (count == MOST[0] and label < BEST[0])
                BEST[0] = T.select(wins, label, BEST[0])
                MOST[0] = T.max(count, MOST[0])
            for p in T.serial(T.int64(OFFSETS[i]), T.int64(OFFSETS[i + 1])):
                COUNTS[T.int64(LABELS[T.int64(COLUMNS[p])])] = 0
            LABELS[i] = BEST[0]
"""


@typed
def community_order(
    shape: tuple[int, int], indptr: Array, indices: Array, *, compile: CompileProgram
) -> Array:
    """Return the rows of a square matrix in CSR in an order of communities, each row once.

    `indptr` (rows + 1) and `indices` (nnz) are int32 or int64. A row takes the label that most of the rows
    whose numbers are its columns have (label propagation: Raghavan, Albert and Kumara, Phys. Rev. E 76,
    2007), in a few rounds over all rows; rows are then sorted by label. Products with the rows in this order
    find rows of the dense operand in the caches. A round reads the matrix twice, on one thread; all rounds
    take less time than one product with 128 features (measured on graphs of 90,000 and 1.2 million nonzeros).

    Raises `ArgumentError` (`format.order.shape`) for a matrix that is not square.

    >>> from scipy.sparse import block_diag
    >>> order = np.array([0, 3, 1, 4, 2, 5])
    >>> matrix = block_diag([np.ones((3, 3))] * 2, format="csr")[order][:, order]
    >>> from gossamer_ir.interpret import run
    >>> def interpreted(module):
    ...     return lambda **arguments: run(module, arguments)
    >>> community_order(matrix.shape, matrix.indptr, matrix.indices, compile=interpreted).tolist()
    [0, 2, 4, 1, 3, 5]
    """
    rows, columns = shape
    if rows != columns:
        raise ArgumentError(
            "format.order.shape",
            f"The matrix has {rows} rows and {columns} columns; communities are those of a square matrix.",
        )
    labels = np.arange(rows, dtype=np.int32)
    if not rows or not indices.size:
        return labels.astype(np.int64)
    kernel = compile(_program(indptr.dtype.name, indices.dtype.name))
    kernel(
        indptr=indptr,
        indices=indices,
        labels=labels,
        counts=np.zeros(rows, np.int32),
        m=rows,
        nnz=int(indices.size),
        rounds=ROUNDS,
    )
    # Sorted as numbers, of which the row is the low part: rows of a community stay in order, and this takes a
    # seventh of the time of a stable `argsort`.
    numbers = (labels.astype(np.int64) << 32) | np.arange(rows)
    numbers.sort()
    return numbers & 0xFFFF_FFFF


@lru_cache(maxsize=4)
def _program(offset: str, column: str) -> Module:
    """Return the program for index arrays of these dtypes."""
    return parse_module(_SCRIPT.replace('OFFSET"', f'{offset}"').replace('COLUMN"', f'{column}"'))
