"""Reduces a tensor along a dimension, or completely. Elements that are not stored are zeros."""

from __future__ import annotations

import operator
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from gossamer_formats.conversion.by_numpy.stored_elements import stored_elements
from gossamer_formats.storage import Storage, with_values_in
from gossamer_formats.value_dtypes import WIDE_DTYPES
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.core.dtypes import SUM_DTYPES
from gossamer_ir.errors import ArgumentError
from gossamer_support.arrays import Array

ReductionName: TypeAlias = Literal["sum", "mean", "max", "min"]
EXTREMA: dict[ReductionName, np.ufunc] = {"max": np.maximum, "min": np.minimum}


def reduce_storage(storage: Storage, reduction: ReductionName, axis: int | None) -> Any:
    """Return the sum, the mean, the maximum or the minimum of a checked storage.

    The result has the dtype of the tensor, or that in which its products are added (`SUM_DTYPES`), but means
    of integers are float64; sums are accumulated in float64. It has one dimension less than
    the tensor, or is a number if `axis` is None. `max` and `min` propagate NaN. Raises `ArgumentError`:
    `tensor.axis`, or `tensor.empty` for the maximum or minimum of nothing.

    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 1, 2]), "indices": np.array([0, 2]), "data": -np.ones(2)}
    >>> tensor = Storage(csr("float64"), {"m": 2, "n": 3, "nnz": 2}, arrays)
    >>> reduce_storage(tensor, "sum", 0), reduce_storage(tensor, "max", 1)
    (array([-1.,  0., -1.]), array([0., 0.]))
    >>> reduce_storage(tensor, "min", None)
    np.float64(-1.0)
    """
    dtype = storage.description.buffer.dtype
    if dtype not in WIDE_DTYPES:
        exact = np.asarray(reduce_storage(with_values_in(storage, "float64"), reduction, axis))
        is_fraction = reduction == "mean" and SUM_DTYPES[dtype] not in WIDE_DTYPES
        return exact[()] if is_fraction else exact.astype(SUM_DTYPES[dtype])[()]
    axes = _reduced_axes(storage, axis)
    coordinates, values = _distinct_elements(storage)
    kept = [number for number in range(len(storage.shape)) if number not in axes]
    shape = tuple(storage.shape[number] for number in kept)
    length = prod(storage.shape[number] for number in axes)
    flat_indices = np.zeros(values.size, np.int64)
    for number in kept:
        flat_indices = flat_indices * storage.shape[number] + coordinates[number]
    if reduction in EXTREMA:
        result = _extremum(values, flat_indices, prod(shape), length, EXTREMA[reduction])
    else:
        result = np.bincount(flat_indices, weights=values, minlength=prod(shape))
        if reduction == "mean":
            with np.errstate(invalid="ignore", divide="ignore"):
                result = result / length
    return result.astype(storage.values.dtype).reshape(shape)[()]


def _reduced_axes(storage: Storage, axis: int | None) -> tuple[int, ...]:
    ndim = len(storage.shape)
    if axis is None:
        return tuple(range(ndim))
    try:
        number = operator.index(axis)
    except TypeError:
        number = ndim
    if not -ndim <= number < ndim:
        raise ArgumentError(
            "tensor.axis",
            f"The axis is {axis!r}; the tensor has {ndim} dimensions.",
            hint="Give a number of a dimension, or None.",
        )
    return (number % ndim,)


def _distinct_elements(storage: Storage) -> tuple[tuple[Array, ...], Array]:
    """Return the coordinates and the values of elements; those of equal coordinates are added."""
    elements = stored_elements(storage)
    values = storage.values.reshape(-1)[elements.value_indices]
    indices = map(indices_of, storage.description.axes)
    if all(array is None or array.unique for array in indices):
        return elements.coordinates, values
    stacked = np.stack(elements.coordinates)
    distinct, inverse = np.unique(stacked, axis=1, return_inverse=True)
    sums = np.bincount(inverse.reshape(-1), weights=values, minlength=distinct.shape[1])
    return tuple(distinct), sums.astype(values.dtype)


def _extremum(
    values: Array, flat_indices: Array, size: int, length: int, combine: np.ufunc
) -> Array:
    if length == 0 and size:
        raise ArgumentError("tensor.empty", "The maximum or minimum of no elements is not defined.")
    start = -np.inf if combine is np.maximum else np.inf
    result = np.full(size, start, values.dtype)
    with np.errstate(invalid="ignore"):  # NaN
        combine.at(result, flat_indices, values)
    # Where not all elements are stored, one of them is zero.
    has_zero = np.bincount(flat_indices, minlength=size) < length
    result[has_zero] = combine(result[has_zero], 0)
    return result
