"""Descriptions with other dtypes of values and indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from gossamer_formats.checks.array_checks import INDEX_DTYPES
from gossamer_formats.storage import values_handle, with_value_dtype
from gossamer_formats.value_dtypes import dtype_name, value_array_dtype
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, with_index_dtypes
from gossamer_ir.nodes import FormatDescription, Load
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_support.arrays import Array


def with_dtypes_of(
    description: FormatDescription, arrays: Mapping[str, Array]
) -> FormatDescription:
    """Return the description with the dtypes of arrays, where a tensor may choose. The arrays are not
    checked.

    >>> import numpy as np
    >>> from gossamer_formats import csr
    >>> arrays = dict.fromkeys(("indptr", "indices"), np.zeros(1, np.int64)) | {"data": np.zeros(1)}
    >>> description = with_dtypes_of(csr(), arrays)
    >>> description.buffer.dtype, description.axes[1].indices_dtype
    ('float64', 'int64')
    """

    def choose_dtype(handle: str, declared: str) -> str:
        dtype = dtype_name(arrays[handle].dtype)
        return dtype if declared in INDEX_DTYPES and dtype in INDEX_DTYPES else declared

    described = _with_index_dtypes(description, choose_dtype)
    stored = arrays[values_handle(description)].dtype
    # Only the description tells values of bfloat16 from integers of 16 bits.
    is_declared = stored == value_array_dtype(description.buffer.dtype)
    return described if is_declared else with_value_dtype(described, dtype_name(stored))


@lru_cache(maxsize=16)
def limits_of(dtype: str) -> tuple[int, int]:
    """Return the least and the largest integer of a dtype.

    >>> limits_of("uint8")
    (0, 255)
    """
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def native_index_dtype(largest: int) -> str:
    """Return the dtype of indices up to an integer.

    >>> native_index_dtype(2**31)
    'int64'
    """
    return "int32" if largest < 2**31 else "int64"


@lru_cache(maxsize=256)
def with_index_dtype(description: FormatDescription, dtype: str) -> FormatDescription:
    """Return the description with one dtype for all indices for which a tensor may choose one.

    >>> from gossamer_formats import csr
    >>> with_index_dtype(csr(), "int64").axes[1].indptr_dtype
    'int64'
    """
    return _with_index_dtypes(
        description, lambda handle, declared: dtype if declared in INDEX_DTYPES else declared
    )


@lru_cache(maxsize=512)
def index_dtypes(description: FormatDescription) -> Mapping[str, str]:
    """Return the dtype of each index array by its handle.

    >>> from gossamer_formats import csr
    >>> dict(index_dtypes(csr()))
    {'indptr': 'int32', 'indices': 'int32'}
    """
    dtypes = {}
    for axis in description.axes:
        for array in (indptr_of(axis), indices_of(axis)):
            if array is not None:
                dtypes[array.handle] = array.dtype
    for buffer in description.index_arrays:
        dtypes[buffer.handle or buffer.name] = buffer.dtype
    return MappingProxyType(dtypes)


def _with_index_dtypes(
    description: FormatDescription, chosen: Callable[[str, str], str]
) -> FormatDescription:
    dtypes = {handle: chosen(handle, dtype) for handle, dtype in index_dtypes(description).items()}
    axes = []
    for axis in description.axes:
        indptr, indices = indptr_of(axis), indices_of(axis)
        axes.append(
            with_index_dtypes(
                axis,
                indptr=dtypes[indptr.handle] if indptr is not None else None,
                indices=dtypes[indices.handle] if indices is not None else None,
            )
        )
    buffers = {
        buffer.name: replace(buffer, dtype=dtypes[buffer.handle or buffer.name])
        for buffer in description.index_arrays
    }

    # A load of the map has the dtype of its array.
    def retype_load(node: object) -> Load | None:
        if not isinstance(node, Load):
            return None
        loaded: Load = replace(node, dtype=buffers[node.buffer].dtype)
        return loaded

    return replace(
        description,
        axes=tuple(axes),
        index_arrays=tuple(buffers.values()),
        map=rewrite(description.map, retype_load) if description.map is not None else None,
    )
