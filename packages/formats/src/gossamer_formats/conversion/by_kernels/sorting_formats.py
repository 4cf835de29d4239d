"""Formats by way of which elements in any order are sorted: each is a counting sort by one coordinate."""

from __future__ import annotations

from functools import cache

from gossamer_formats.checks.coordinate_order import without_order
from gossamer_formats.conversion.destination.conversion_destination import Destination
from gossamer_formats.descriptions.csc import csc
from gossamer_formats.descriptions.csr import csr
from gossamer_ir.core.build import ONE, index_var
from gossamer_ir.nodes import (
    Axis,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    FormatDescription,
    IndexMap,
    Param,
    SparseBuffer,
)

CSR = Destination(csr())
_CSC = Destination(csc())
_BY_ROW, _BY_COLUMN = (
    Destination(without_order(make_description())) for make_description in (csr, csc)
)
"""CSR and CSC whose rows or columns have any order: CSC or CSR that is made from them is sorted."""


def compressed_formats(ndim: int) -> tuple[tuple[Destination, ...], ...]:
    """Return the formats of which each may sort the elements of a tensor alone, as they are tried."""
    return ((CSR,), (_CSC,)) if ndim == 2 else ()


def sorting_formats(ndim: int) -> tuple[tuple[Destination, ...], ...]:
    """Return the sequences of formats that may sort distinct elements, in the order in which they are tried:
    one format is tried before several, since each is a pass over all elements.

    The sequences sort by one coordinate after the other, as a radix sort does.
    """
    if ndim == 2:
        return (*compressed_formats(ndim), (_BY_COLUMN, CSR), (_BY_ROW, _CSC))
    return (buckets_of_dimensions(ndim),) if ndim > 1 else ()


@cache
def buckets_of_dimensions(ndim: int) -> tuple[Destination, ...]:
    """Return the formats of which each sorts by one coordinate, the last one first."""
    return tuple(Destination(_buckets(ndim, dimension)) for dimension in reversed(range(ndim)))


def _buckets(ndim: int, first: int) -> FormatDescription:
    """Return the description of a tensor whose elements are together if they agree in a dimension, in any
    order otherwise."""
    lengths = [index_var(f"n{number}") for number in range(ndim)]
    nnz, names = index_var("nnz"), [f"I{number}" for number in range(ndim)]
    second, *others = (number for number in range(ndim) if number != first)
    handles = {number: f"indices_{number}" for number in (second, *others)}
    axes: list[Axis] = [
        DenseFixed(names[first], lengths[first]),
        CompressedVaried(
            names[second], names[first], lengths[second], nnz, "indptr", handles[second]
        ),
    ]
    for number in others:
        above = axes[-1].name
        axes.append(
            CompressedFixed(
                names[number], above, lengths[number], ONE, handles[number], padded=False
            )
        )
    vars = {number: f"i{number}" for number in (first, second, *others)}
    arrays = (Param(handle, "handle") for handle in ("data", "indptr", *handles.values()))
    sizes = (Param(size.name, "int64") for size in (*lengths, nnz))
    description = FormatDescription(
        name=f"by_{first}",
        params=(*arrays, *sizes),
        axes=tuple(axes),
        buffer=SparseBuffer("A", tuple(axis.name for axis in axes), "float32", handle="data"),
        map=IndexMap(
            tuple(vars.values()), tuple(index_var(vars[number]) for number in range(ndim))
        ),
        shape=tuple(lengths),
    )
    return without_order(description)
