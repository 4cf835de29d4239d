"""A format description with its sizes and arrays, and the sizes that follow from these."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from gossamer_ir.arith.evaluate_integer import NotArithmeticError, evaluate_integer
from gossamer_ir.core.axis_kinds import indptr_of, width_of
from gossamer_ir.errors import FormatError, UnsupportedError
from gossamer_ir.nodes import (
    Axis,
    Expr,
    FormatDescription,
)

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Storage(NamedTuple):
    """A format description, the values of its scalar parameters (`sizes`) and the arrays of its handles.

    The constructor checks nothing; `checks.check_storage` does.

    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 1]), "indices": np.array([2]), "data": np.ones(1)}
    >>> Storage(csr("float64"), {"m": 1, "n": 4, "nnz": 1}, arrays).shape
    (1, 4)
    """

    format: FormatDescription
    sizes: Mapping[str, int]
    arrays: Mapping[str, Array]

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        axes = axes_by_name(self.format)
        return tuple(evaluate(axes[name].length, self.sizes) for name in self.format.buffer.axes)

    @property
    def values(self) -> Array:
        """The array of values."""
        return self.arrays[values_handle(self.format)]


@lru_cache(maxsize=256)
def native_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype, or "" if it is not in this machine's byte order."""
    return dtype.name if dtype.isnative else ""


def values_handle(description: FormatDescription) -> str:
    """Return the name of the array of values."""
    return description.buffer.handle or description.buffer.name


def axes_by_name(description: FormatDescription) -> dict[str, Axis]:
    """Return the axes of a description by name."""
    return {axis.name: axis for axis in description.axes}


def evaluate(expr: Expr, sizes: Mapping[str, int]) -> int:
    """Return the value of a size."""
    try:
        return evaluate_integer(expr, sizes)
    except ZeroDivisionError:
        raise FormatError("format.shape", "A size of the format is divided by zero.") from None
    except NotArithmeticError as error:
        raise UnsupportedError(
            "format.size",
            f"A size of a format description cannot be an expression of kind '{error}'.",
        ) from None


def element_count(storage: Storage, axis_name: str | None) -> int:
    """Return the number of elements of an axis, in all fibers; 1 for None, the parent of a root axis."""
    if axis_name is None:
        return 1
    axis = axes_by_name(storage.format)[axis_name]
    indptr = indptr_of(axis)
    if indptr is None:
        width = evaluate(width_of(axis), storage.sizes)
        return element_count(storage, axis.parent) * width
    if indptr.nnz is None:
        return int(storage.arrays[indptr.handle][-1])
    return evaluate(indptr.nnz, storage.sizes)


def value_count(storage: Storage) -> int:
    """Return the number of values that the buffer stores, extra storage included.

    This is the product of the sizes of the axes that have no child in the buffer.
    """
    names = storage.format.buffer.axes
    axes = axes_by_name(storage.format)
    parents = {axes[name].parent for name in names}
    count = 1
    for name in names:
        # An axis with a child is counted by the child, whose elements are over all fibers.
        if name not in parents:
            count *= element_count(storage, name)
    return count + storage.format.buffer.extra_storage


def with_value_dtype(description: FormatDescription, dtype: str) -> FormatDescription:
    """Return the description with another dtype of its values."""
    buffer = msgspec.structs.replace(description.buffer, dtype=dtype)
    return msgspec.structs.replace(description, buffer=buffer)
