"""A format description with its sizes and arrays, and the sizes that follow from these."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from gossamer_formats.value_dtypes import converted_values
from gossamer_ir.analysis.axes.logical_elements import logical_shape
from gossamer_ir.arith.evaluate_integer import NotArithmeticError, evaluate_integer
from gossamer_ir.core.axis_kinds import indptr_of, is_varied, width_of, with_declared_order
from gossamer_ir.errors import FormatError, UnsupportedError
from gossamer_ir.nodes import (
    Axis,
    Expr,
    FormatDescription,
    Var,
)
from gossamer_ir.support.arrays import Array
from gossamer_ir.support.items_by_name import items_by_name

MAX_FORMATS = 256
"""The number of descriptions for which a function keeps its result: several variants of each format."""


class Storage(NamedTuple):
    """A format description, the values of its scalar parameters (`sizes`) and the arrays of its handles.

    The constructor checks nothing; `checks.check_storage` does.

    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 1]), "indices": np.array([2]), "data": np.ones(1)}
    >>> Storage(csr("float64"), {"m": 1, "n": 4, "nnz": 1}, arrays).shape
    (1, 4)
    """

    description: FormatDescription
    sizes: Mapping[str, int]
    arrays: Mapping[str, Array]

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        return evaluated_shape(self.description, self.sizes)

    @property
    def values(self) -> Array:
        """The array of values."""
        return self.arrays[values_handle(self.description)]


# As many as there are dtypes of numbers in both byte orders; others are errors.
@lru_cache(maxsize=64)
def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype; a name with the byte order if that is not this machine's.

    >>> dtype_name(np.dtype("float32")), dtype_name(np.dtype("float32").newbyteorder()) == "float32"
    ('float32', False)
    """
    return dtype.name if dtype.isnative else dtype.str


def evaluated_shape(description: FormatDescription, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the logical shape of a tensor with these sizes."""
    return tuple(evaluate(size, sizes) for size in shape_of(description))


@lru_cache(maxsize=MAX_FORMATS)
def shape_of(description: FormatDescription) -> tuple[Expr, ...]:
    """Return the sizes of the logical dimensions.

    Raises `FormatError` (`format.shape.undeclared`) if the description has a map but no shape.

    >>> from gossamer_formats import csr
    >>> [size.name for size in shape_of(csr())]
    ['m', 'n']
    """
    shape = logical_shape(description)
    if shape is not None:
        return shape
    raise FormatError(
        "format.shape.undeclared",
        f"The description '{description.name}' has a map, but does not declare the logical shape.",
        hint="Write T.sp.map(lambda ..., shape=(m, n)).",
    )


def values_handle(description: FormatDescription) -> str:
    """Return the name of the array of values."""
    return description.buffer.handle or description.buffer.name


def evaluate(expr: Expr, sizes: Mapping[str, int]) -> int:
    """Return the value of a size."""
    # Most sizes are parameters; descriptions are evaluated often.
    if type(expr) is Var:
        return int(sizes[expr.name])
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
    axis = items_by_name(storage.description.axes)[axis_name]
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
    names = storage.description.buffer.axes
    axes = items_by_name(storage.description.axes)
    parents = {axes[name].parent for name in names}
    count = 1
    for name in names:
        # An axis with a child is counted by the child, whose elements are over all fibers.
        if name not in parents:
            count *= element_count(storage, name)
    return count + storage.description.buffer.extra_storage


@lru_cache(maxsize=MAX_FORMATS)
def with_value_dtype(description: FormatDescription, dtype: str) -> FormatDescription:
    """Return the description with another dtype of its values."""
    buffer = replace(description.buffer, dtype=dtype)
    return replace(description, buffer=buffer)


def with_values_in(storage: Storage, dtype: str) -> Storage:
    """Return the storage with its values converted to another dtype."""
    values = converted_values(storage.values, storage.description.buffer.dtype, dtype)
    arrays = {**storage.arrays, values_handle(storage.description): values}
    return Storage(with_value_dtype(storage.description, dtype), storage.sizes, arrays)


def with_order(
    description: FormatDescription,
    *,
    sorted: bool | None = None,
    unique: bool | None = None,
    axis_names: Collection[str] | None = None,
) -> FormatDescription:
    """Return the description with other declarations of the order of coordinates.

    They are those of the axes of these names (None: of all) that store coordinates: whether these never
    decrease in a fiber, and whether they are unique in it. None leaves a declaration as it is.

    >>> from gossamer_formats.descriptions.csc import csc
    >>> axis = with_order(csc(), sorted=False).axes[1]
    >>> axis.sorted, axis.unique
    (False, True)
    """
    changed = tuple(
        with_declared_order(axis, sorted=sorted, unique=unique)
        if axis_names is None or axis.name in axis_names
        else axis
        for axis in description.axes
    )
    return replace(description, axes=changed)


def index_array(storage: Storage, name: str) -> Array:
    """Return an index array of the map, in its shape."""
    buffer = next(array for array in storage.description.index_arrays if array.name == name)
    array = storage.arrays[buffer.handle or name]
    return array.reshape([evaluate(size, storage.sizes) for size in buffer.shape])


@lru_cache(maxsize=MAX_FORMATS)
def require_nested_axes(description: FormatDescription) -> None:
    """Require that the slots of every varied axis of the buffer are numbered within its ancestors only.

    Raises `UnsupportedError` (`format.nesting`) if another axis stands before it: then the values need
    prefix sums of products.
    """
    axes = items_by_name(description.axes)
    before: list[str] = []
    for name in description.buffer.axes:
        if is_varied(axes[name]) and set(before) != set(ancestors(axes, name)):
            raise UnsupportedError(
                "format.nesting",
                f"The axis '{name}' of the format '{description.name}' varies in length, but the axes before "
                "it are not its ancestors.",
            )
        before.append(name)


def ancestors(by_name: Mapping[str, Axis], name: str) -> list[str]:
    """Return the names of the ancestors of an axis, the parent first."""
    parent = by_name[name].parent
    return [] if parent is None else [parent, *ancestors(by_name, parent)]


def axes_between(by_name: Mapping[str, Axis], above: Axis, below: Axis) -> list[str]:
    """Return the names of the axes between an axis and one below it, from the outermost.

    >>> from gossamer_formats.descriptions.csf import csf
    >>> from gossamer_ir.support.items_by_name import items_by_name
    >>> axes = items_by_name(csf(ndim=4).axes)
    >>> names = list(axes)
    >>> axes_between(axes, axes[names[0]], axes[names[-1]]) == names[1:-1]
    True
    """
    names = ancestors(by_name, below.name)
    return names[: names.index(above.name)][::-1]
