"""The properties of a matrix on which the choice of its format depends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gossamer_ir.interchange.records import Stats
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed
from gossamer_tune.properties.column_reuse import ColumnReuse, column_reuse
from gossamer_tune.properties.row_sample import GROUP, RowSample, distinct_count, sample_rows
from gossamer_tune.properties.slices import HEIGHTS, slice_fill

NEAR_GROUP = 8
"""Rows of a small group, in which a row of the dense operand is still in the first cache if rows have columns
in common, as those of finite elements."""

BLOCK_SIZES = (2, 3, 4, 6, 8, 16)
"""The sizes of square blocks whose fill is measured."""

ROW_BITS = 6
"""Bits for the number of a row in a group of `GROUP` rows."""

GROUP_HEIGHTS = (2, 3, 4)
"""The numbers of rows of a group whose fill is measured. Groups of 6 rows, for which registers hold tiles of
4 vectors only, were never the fastest format (measured with 15 matrices on Emerald Rapids)."""

DIAGONAL_ROWS = 32
"""The rows of a slice whose diagonals are counted: those of the format. They are the first ones of a group of
the sample, which has no two slices."""


class RowLengths(NamedTuple):
    """The numbers of elements in rows: mean, standard deviation and largest; and the number of rows without
    an element."""

    mean: float
    deviation: float
    longest: int
    empty: int


class GroupedColumns(NamedTuple):
    """The columns of groups of neighboring rows: the fraction of elements whose column occurs for the first
    time in its group (`fresh`), and the mean number of different columns of a group."""

    fresh: float
    distinct: float


class MatrixProperties(NamedTuple):
    """The properties of a matrix.

    >>> lengths, groups = RowLengths(2.0, 0.0, 2, 0), GroupedColumns(1.0, 8.0)
    >>> MatrixProperties(4, 8, 8, lengths, {2: 1.0}, 0.1, groups, groups, {8: 1.0}, {}).density
    0.25
    """

    rows: int
    columns: int
    nnz: int
    lengths: RowLengths
    block_fill: Mapping[int, float]
    """For each size of square blocks at multiples of it, the fraction of the slots of stored blocks
    that are elements."""
    bandwidth: float
    """The mean distance of an element from the diagonal, as a fraction of the number of columns."""
    groups: GroupedColumns
    """The columns of groups of 48 neighboring rows."""
    near_groups: GroupedColumns
    """The columns of groups of 8 neighboring rows."""
    slice_fill: Mapping[int, float]
    """For each number of rows of a slice, the fraction of the slots of SELL that are elements."""
    group_fill: Mapping[int, float]
    """For each number of neighboring rows of a group, the fraction of the slots of `row_groups` that are
    elements."""
    diagonal_fill: float = 0.0
    """The fraction of the slots of diagonals, in slices of `DIAGONAL_ROWS` rows, that are elements."""
    reuse: ColumnReuse | None = None
    """The distances after which columns occur again in the order of the rows."""
    ordered_reuse: ColumnReuse | None = None
    """The same for another order of the rows (`with_row_order`); None if there is none."""

    @property
    def density(self) -> float:
        """The fraction of the coordinates that are elements."""
        return self.nnz / (self.rows * self.columns) if self.rows and self.columns else 0.0


@typed
def properties_of(shape: tuple[int, int], indptr: Array, indices: Array) -> MatrixProperties:
    """Return the properties of a matrix in CSR. `indptr` has rows + 1 offsets, `indices` the columns (nnz).

    The lengths of rows are those of all rows. Other properties are those of a sample of neighboring rows, so
    that this takes a few milliseconds for any matrix.

    >>> from scipy.sparse import block_diag
    >>> matrix = block_diag([np.ones((2, 2))] * 3, format="csr")
    >>> summary = properties_of(matrix.shape, matrix.indptr, matrix.indices)
    >>> summary.lengths.mean, summary.lengths.deviation, summary.block_fill[2], summary.block_fill[4]
    (2.0, 0.0, 1.0, 0.375)
    >>> summary.group_fill
    {2: 1.0, 3: 0.5, 4: 0.5}
    """
    rows, columns = shape
    lengths = np.diff(indptr)
    # Lengths are known for all rows; what needs the columns is measured on a sample, in about a millisecond.
    sample = sample_rows(indptr, indices)
    groups = _columns_of_groups(sample, columns, (GROUP, NEAR_GROUP, *GROUP_HEIGHTS))
    return MatrixProperties(
        rows=rows,
        columns=columns,
        nnz=int(indices.size),
        lengths=_row_lengths(lengths),
        block_fill={size: _block_fill(sample, size, columns) for size in BLOCK_SIZES},
        bandwidth=_bandwidth(sample, shape),
        groups=groups[GROUP],
        near_groups=groups[NEAR_GROUP],
        slice_fill={height: slice_fill(lengths, height=height) for height in HEIGHTS},
        group_fill={height: _group_fill(groups[height], height) for height in GROUP_HEIGHTS},
        diagonal_fill=_diagonal_fill(sample, columns),
    )


def scheduled_stats(matrix: MatrixProperties) -> Stats:
    """Return the representative of similar matrices on which rules for schedules base their decisions.

    >>> lengths, groups = RowLengths(5.3, 1.0, 9, 0), GroupedColumns(1.0, 8.0)
    >>> scheduled_stats(MatrixProperties(1000, 1000, 5300, lengths, {}, 0.1, groups, groups, {8: 1.0}, {}))
    Stats(rows=512, columns=512, nnz=2560, longest_row=8, empty_rows=0, equal_rows=0)
    """
    lengths = matrix.lengths
    stats = Stats(matrix.rows, matrix.columns, matrix.nnz, lengths.longest, lengths.empty)
    return stats.representative()


@typed
def with_row_order(
    matrix: MatrixProperties, indptr: Array, indices: Array, order: Array
) -> MatrixProperties:
    """Return the properties of a matrix in CSR whose rows may also be visited in this order, which has each
    row once.

    >>> from scipy.sparse import block_diag
    >>> matrix = block_diag([np.ones((2, 2))] * 2, format="csr")[[0, 2, 1, 3]]
    >>> properties = properties_of(matrix.shape, matrix.indptr, matrix.indices)
    >>> properties = with_row_order(properties, matrix.indptr, matrix.indices, np.array([0, 2, 1, 3]))
    >>> properties.reuse.misses(rows=2), properties.ordered_reuse.misses(rows=2)
    (1.0, 0.5)
    """
    unordered, ordered = (
        column_reuse(matrix.columns, indptr, indices, rows) for rows in (None, order)
    )
    return matrix._replace(reuse=unordered, ordered_reuse=ordered)


def _row_lengths(lengths: Array) -> RowLengths:
    return RowLengths(
        mean=float(lengths.mean()) if lengths.size else 0.0,
        deviation=float(lengths.std()) if lengths.size else 0.0,
        longest=int(lengths.max(initial=0)),
        empty=int(lengths.size - np.count_nonzero(lengths)),
    )


def _block_fill(sample: RowSample, size: int, columns: int) -> float:
    if not sample.columns.size:
        return 0.0
    across = -(-columns // size)
    # One number for each block: numbers are sorted faster than pairs.
    blocks = sample.rows // size * across + sample.columns // size
    return sample.columns.size / (distinct_count(blocks) * size * size)


def _group_fill(groups: GroupedColumns, height: int) -> float:
    """Return the fraction of the slots of groups of this many rows that are elements: each column of a group
    has a slot for each of its rows."""
    return 1 / (height * groups.fresh) if groups.fresh else 0.0


def _diagonal_fill(sample: RowSample, columns: int) -> float:
    if not sample.columns.size:
        return 0.0
    slices, rows = np.divmod(sample.rows, GROUP)
    is_counted = rows < DIAGONAL_ROWS
    slices, rows, columns_counted = (part[is_counted] for part in (slices, rows, sample.columns))
    if not rows.size:
        return 0.0
    # A number for each diagonal of a slice: the column in its last row, which may be outside of the matrix.
    diagonals = slices * (columns + DIAGONAL_ROWS) + columns_counted + DIAGONAL_ROWS - 1 - rows
    return rows.size / (distinct_count(diagonals) * DIAGONAL_ROWS)


def _bandwidth(sample: RowSample, shape: tuple[int, int]) -> float:
    rows, columns = shape
    if not sample.columns.size:
        return 0.0
    # The diagonal of a matrix that is not square runs from corner to corner, too.
    diagonal = sample.rows * (columns / rows)
    return float(np.abs(sample.columns - diagonal).mean() / columns)


def _columns_of_groups(
    sample: RowSample, columns: int, sizes: tuple[int, ...]
) -> dict[int, GroupedColumns]:
    """Return the columns of groups of each of these numbers of rows, which divide `GROUP`."""
    groups = sample.rows // GROUP
    places = (groups * columns + sample.columns) << ROW_BITS | (sample.rows - groups * GROUP)
    # Sorted once for all sizes: the elements of a column are in the order of their rows.
    places.sort()
    selected, rows = places >> ROW_BITS, (places & (1 << ROW_BITS) - 1).astype(np.uint8)
    return {size: _grouped_columns(sample, selected, rows // size, size) for size in sizes}


def _grouped_columns(
    sample: RowSample, selected: Array, groups: Array, size: int
) -> GroupedColumns:
    """Return the columns of groups of this many rows, from the sorted columns that elements select and the
    groups in which they do."""
    distinct = _runs((selected[1:] != selected[:-1]) | (groups[1:] != groups[:-1]), selected.size)
    # The rows of a sample ascend.
    sampled = sample.rows // size
    count = _runs(sampled[1:] != sampled[:-1], sampled.size)
    return GroupedColumns(fresh=distinct / max(selected.size, 1), distinct=distinct / max(count, 1))


def _runs(ends: Array, size: int) -> int:
    """Return the number of runs of equal elements in an array of this size; `ends` is true where one ends."""
    return int(np.count_nonzero(ends)) + bool(size)
