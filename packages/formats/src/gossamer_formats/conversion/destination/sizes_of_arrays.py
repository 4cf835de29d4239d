"""The scalar parameters of a format that follow from the shape of a tensor and its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gossamer_formats.conversion.destination.inverse_map import inverse_map
from gossamer_formats.conversion.destination.known_sizes import KnownSizes
from gossamer_formats.description_sizes import shape_of
from gossamer_ir.analysis.axes.logical_elements import map_vars
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, width_of
from gossamer_ir.nodes import Axis, Buffer, FormatDescription
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name


def sizes_of_arrays(
    description: FormatDescription,
    shape: Sequence[int],
    arrays: Mapping[str, Array],
    declared: Mapping[str, int],
) -> dict[str, int]:
    """Return all scalar parameters. Nothing is checked: sizes that do not fit the arrays are found with them.

    Raises `FormatError` (`format.parameter.missing`) for a size that does not follow.

    >>> from gossamer_formats.descriptions.ell import ell
    >>> arrays = {"indices": np.zeros(6, np.int32), "data": np.zeros(6)}
    >>> sizes_of_arrays(ell(), (3, 9), arrays, {})
    {'m': 3, 'n': 9, 'width': 2}
    """
    sizes = KnownSizes(description, declared)
    for expr, size in zip(shape_of(description), shape, strict=True):
        sizes.bind(expr, size)
    for buffer in description.index_arrays:
        _bind_dimension(buffer, arrays, sizes)
    _bind_extents(description, shape, sizes)
    counts: dict[str | None, int] = {None: 1}
    for axis in description.axes:
        counts[axis.name] = _bind_axis(axis, counts[axis.parent], arrays, sizes)
    for param in description.params:
        if param.dtype != "handle":
            sizes.require(param.name)
    return sizes.known


def _bind_dimension(buffer: Buffer, arrays: Mapping[str, Array], sizes: KnownSizes) -> None:
    """Bind the one dimension of an index array that is not known."""
    unknown = [size for size in buffer.shape if not sizes.is_known(size)]
    if len(unknown) != 1:
        return
    others = [sizes.value(size) for size in buffer.shape if sizes.is_known(size)]
    product = int(np.prod(others, dtype=np.int64))
    sizes.bind(unknown[0], arrays[buffer.handle or buffer.name].size // max(product, 1))


def _bind_extents(description: FormatDescription, shape: Sequence[int], sizes: KnownSizes) -> None:
    names, axes = description.buffer.axes, items_by_name(description.axes)
    vars = map_vars(description)
    solved = inverse_map(description, sizes.known, shape).coordinates
    for var, name in zip(vars, names, strict=True):
        extent = solved[var].extent if var in solved else None
        if extent is not None:
            sizes.bind(axes[name].length, extent)


def _bind_axis(axis: Axis, parents: int, arrays: Mapping[str, Array], sizes: KnownSizes) -> int:
    """Bind the sizes of an axis below `parents` elements, and return the number of its elements."""
    indptr, indices = indptr_of(axis), indices_of(axis)
    if indptr is not None:
        offsets = arrays[indptr.handle]
        total = int(offsets[-1]) if offsets.ndim == 1 and offsets.size else 0
        if indptr.nnz is not None:
            total = sizes.bind(indptr.nnz, total)
        if indices is None and not sizes.is_known(axis.length):
            sizes.bind(axis.length, int(np.diff(offsets).max(initial=0)))
        return total
    if indices is not None and not sizes.is_known(width_of(axis)):
        sizes.bind(width_of(axis), arrays[indices.handle].size // max(parents, 1))
    return parents * sizes.value(width_of(axis))
