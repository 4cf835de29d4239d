"""Buckets of rows of similar length in partitions of the columns, in the format `ell_rows` (SparseTIR)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gossamer_formats.conversion.convert_storage import MIN_COMPILED
from gossamer_formats.conversion.destination.dtypes import native_index_dtype, with_index_dtype
from gossamer_formats.decomposition.composable_format import ComposableFormat
from gossamer_formats.decomposition.part import Part, part_of
from gossamer_formats.decomposition.stored_segments import StoredSegments
from gossamer_formats.descriptions.ell_rows import ell_rows
from gossamer_formats.permutation import UNSTORED, with_fill
from gossamer_formats.registry.compiler import find_compiler
from gossamer_formats.storage import Storage
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_ir.errors import FormatError
from gossamer_support.arrays import Array

if TYPE_CHECKING:
    from gossamer_formats.registry.compiler import Compile

WIDEST = 24
"""Maximum exponent of a bucket's width. float32 represents every integer up to 2**24, so longer rows could
not be summed exactly."""


COUNTERS_PER_ELEMENT = 4
"""The largest number of rows in all partitions, for each element, with which a table counts the elements."""


def hyb(matrix: SparseTensor, *, c: int = 1, k: int | None = None) -> Iterator[Part]:
    """Yield the parts of a CSR matrix whose rows are sorted.

    The columns are divided into `c` partitions of equal width. Bucket b of a partition has the rows with more
    than 2**(b - 1) and at most 2**b elements there, and the format `ell_rows`. Bucket `k` also has all longer
    rows, cut into segments. By default, `k` is the first width that holds an average row (Ye and others,
    ASPLOS 2023, section 4.2). Parts without elements are left out.

    Raises `FormatError` (`format.parameter.value`).

    >>> from scipy.sparse import csr_array
    >>> matrix = SparseTensor(csr_array(np.array([[1.0, 2.0, 3.0], [0.0, 4.0, 0.0]])))
    >>> [(part.name, part.tensor.arrays["indices"].tolist()) for part in hyb(matrix, k=2)]
    [('p0b0', [1]), ('p0b2', [0, 1, 2, 3])]
    >>> [(part.name, part.tensor.arrays["rows"].tolist()) for part in hyb(matrix, c=3, k=0)]
    [('p0b0', [0]), ('p1b0', [0, 1]), ('p2b0', [0])]
    """
    if c < 1:
        raise FormatError(
            "format.parameter.value", f"The parameter 'c' is {c}; expected at least 1 partition."
        )
    widest = _exponent(-(-matrix.nnz // max(matrix.shape[0], 1))) if k is None else k
    if widest > WIDEST:
        raise FormatError(
            "format.parameter.value",
            f"The parameter 'k' is {k}; expected at most {WIDEST}, rows of 2**{WIDEST} elements.",
        )
    compile = find_compiler() if matrix.nnz >= MIN_COMPILED else None
    source = _Source.from_matrix(matrix, compile)
    # More partitions than columns would all be empty.
    partitions = min(c, max(matrix.shape[1], 1))
    segments, segment_partitions = _segments(matrix, partitions, compile)
    buckets = widest + 1
    parts = (
        segment_partitions.astype(np.min_scalar_type(partitions * buckets), copy=False) * buckets
    )
    parts += np.searchsorted(1 << np.arange(widest), segments.lengths).astype(parts.dtype)
    for part, members in enumerate(_members(parts, partitions * buckets)):
        if members.size:
            partition, bucket = divmod(part, buckets)
            bucket_segments = segments.select(members)
            yield _bucket(source, f"p{partition}b{bucket}", bucket_segments, width=1 << bucket)


class _Source(NamedTuple):
    """A matrix: its shape, its columns and values. If NumPy stores its parts, each array has one more element
    at the end, for unused slots; otherwise kernels do, which `compile` returns."""

    shape: tuple[int, ...]
    columns: Array
    values: Array
    compile: Compile | None

    @classmethod
    def from_matrix(cls, matrix: SparseTensor, compile: Compile | None) -> _Source:
        rows, columns = matrix.shape
        dtype = np.int32 if max(rows, columns) <= np.iinfo(np.int32).max else np.int64
        indices = matrix.arrays["indices"].astype(dtype, copy=False)
        if compile is not None:
            return cls(matrix.shape, indices, matrix.arrays["data"], compile)
        return cls(
            matrix.shape,
            with_fill(indices, columns),
            with_fill(matrix.arrays["data"], 0),
            None,
        )

    def store(self, segments: _Segments, width: int) -> StoredSegments:
        """Return the elements of segments in rows of `width` slots."""
        if self.compile is not None:
            # This module needs the parser, which takes a third of the time to import this package.
            from gossamer_formats.decomposition.segment_kernels import store_segments

            return store_segments(
                self.compile,
                (self.columns, self.values),
                segments.starts,
                segments.lengths,
                width=width,
                unused=self.shape[1],
            )
        value_indices = segments.starts[:, np.newaxis] + np.arange(width)
        if segments.lengths.min() < width:
            value_indices[np.arange(width) >= segments.lengths[:, np.newaxis]] = UNSTORED
        permutation = value_indices.reshape(-1)
        columns, values = self.columns[permutation], self.values[permutation]
        return StoredSegments(columns, values, permutation)


class _Segments(NamedTuple):
    """Consecutive elements of a row that belong to one partition: the row, the value index of the first
    element and their number."""

    rows: Array
    starts: Array
    lengths: Array

    def select(self, chosen: Array) -> _Segments:
        return _Segments(*(array[chosen] for array in self))


def _segments(
    matrix: SparseTensor, partitions: int, compile: Compile | None
) -> tuple[_Segments, Array]:
    """Return the segments of all rows, in the order of the rows, and their partitions."""
    offsets = matrix.arrays["indptr"]
    if partitions == 1:
        lengths = np.diff(offsets)
        rows = np.flatnonzero(lengths)
        return _Segments(rows, offsets[rows], lengths[rows]), np.zeros(rows.size, np.uint8)
    columns = matrix.arrays["indices"]
    if compile is not None and matrix.shape[0] * partitions <= COUNTERS_PER_ELEMENT * columns.size:
        from gossamer_formats.decomposition.segment_kernels import segment_lengths

        span = -(-matrix.shape[1] // partitions)
        counted = segment_lengths(compile, offsets, columns, span=span, partitions=partitions)
        # The segments of a row follow each other, so that their starts are the sums of lengths before.
        ends = np.cumsum(counted, dtype=offsets.dtype)
        segments = np.flatnonzero(counted).astype(native_index_dtype(counted.size), copy=False)
        lengths = counted[segments]
        # NumPy divides in vectors, but not by `divmod`.
        rows = segments // partitions
        return _Segments(rows, ends[segments] - lengths, lengths), segments - rows * partitions
    column_partitions = columns // columns.dtype.type(max(-(-matrix.shape[1] // partitions), 1))
    begins = np.empty(columns.size + 1, bool)
    np.not_equal(column_partitions[1:], column_partitions[:-1], out=begins[1:-1])
    begins[offsets] = True
    starts = np.flatnonzero(begins)
    ends, starts = starts[1:], starts[:-1]
    # The last row that begins at or before a segment; empty rows begin where the next one does.
    counts = np.diff(np.searchsorted(starts, offsets))
    rows = np.repeat(np.arange(matrix.shape[0]), counts)
    return _Segments(rows, starts, ends - starts), column_partitions[starts]


def _members(parts: Array, count: int) -> Iterator[Array]:
    """Yield the indices of the segments of each of `count` parts, in ascending order.

    >>> [members.tolist() for members in _members(np.array([1, 0, 1]), 3)]
    [[1], [0, 2], []]
    """
    # A stable sort of 16 bits is a radix sort, so that this takes one pass for all parts.
    order = np.argsort(parts.astype(np.uint16 if count <= 1 << 16 else np.int64), kind="stable")
    ends = np.cumsum(np.bincount(parts, minlength=count))
    return iter(np.split(order, ends[:-1]))


def _bucket(source: _Source, name: str, segments: _Segments, *, width: int) -> Part:
    """Return a part whose rows are segments of at most `width` elements; longer ones are cut."""
    is_cut = bool(segments.lengths.max() > width)
    if is_cut:
        segments = _cut_segments(segments, width)
    columns, values, permutation = source.store(segments, width)
    arrays = {
        "rows": segments.rows.astype(columns.dtype),
        "indices": columns,
        "data": values,
    }
    described = ell_rows(values.dtype.name, unique=not is_cut)
    rows, length = source.shape
    sizes = {"m": rows, "n": length, "stored": segments.rows.size, "width": width}
    storage = Storage(with_index_dtype(described, columns.dtype.name), sizes, arrays)
    return part_of(name, storage, permutation, fixed_sizes={"width": width})


def _cut_segments(segments: _Segments, width: int) -> _Segments:
    """Return segments cut into shorter ones of `width` elements; the last one of each may have fewer."""
    counts = -(-segments.lengths // width)
    cut = segments.select(np.repeat(np.arange(counts.size), counts))
    skipped = np.arange(cut.rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
    skipped *= width
    return cut._replace(
        starts=cut.starts + skipped, lengths=np.minimum(cut.lengths - skipped, width)
    )


def _exponent(length: int) -> int:
    """Return the exponent of the first power of two that is at least a length.

    >>> [_exponent(length) for length in (0, 1, 2, 5)]
    [0, 0, 1, 3]
    """
    return max(length - 1, 0).bit_length()


FORMAT = ComposableFormat("hyb", hyb, parameters={"c": 1, "k": None}, chosen=("k",))
