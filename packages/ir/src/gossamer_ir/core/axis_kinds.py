"""The table of axis types: whether fibers vary in length, and whether coordinates are stored.

Passes, primitives and checks ask the functions of this module about an axis, never its type, so that a new
type needs one entry here, and one in the tables of the printer and the parser. Tests check that the tables
cover the language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from gossamer_ir.nodes import (
    Axis,
    BitmaskVaried,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Expr,
)

V = TypeVar("V")


class AxisKind(msgspec.Struct, frozen=True):
    """Properties of every axis of a type."""

    width: Callable[[Any], Expr] | None
    """Returns the number of slots in every fiber. None: fibers vary in length. Such a type has the fields
    `indptr`, `indptr_dtype` and `nnz`."""
    has_indices: bool
    """True if the coordinate of each slot is stored. Such a type has the fields `indices`, `indices_dtype`,
    `sorted`, `unique` and `padded`. Otherwise coordinates are positions: 0, 1, ... in each fiber."""
    has_words: bool = False
    """True if the coordinates of a fiber are the positions of the bits that are set in a word. Such a type
    has the fields `words` and `words_dtype`, and no indices."""


class Indptr(msgspec.Struct, frozen=True):
    """The array of offsets of a varied axis: element p of the parent has the slots indptr[p], ...,
    indptr[p + 1] - 1."""

    handle: str
    dtype: str
    parent: str
    nnz: Expr | None
    """The number of all slots; None: the last offset."""


class Indices(msgspec.Struct, frozen=True):
    """The array of coordinates of a compressed axis, and what is declared about each fiber.

    The array has one coordinate for each slot; if `is_mask`, one word for each fiber."""

    handle: str
    dtype: str
    sorted: bool
    unique: bool
    padded: bool
    is_mask: bool = False

    @property
    def is_searchable(self) -> bool:
        """True if a lookup finds the one slot of a coordinate."""
        return self.sorted and self.unique


AXIS_KINDS: dict[type[Any], AxisKind] = {
    DenseFixed: AxisKind(width=attrgetter("length"), has_indices=False),
    DenseVaried: AxisKind(width=None, has_indices=False),
    CompressedFixed: AxisKind(width=attrgetter("width"), has_indices=True),
    CompressedVaried: AxisKind(width=None, has_indices=True),
    BitmaskVaried: AxisKind(width=None, has_indices=False, has_words=True),
}
"""One entry for each type of axis."""


def is_varied(axis: Axis) -> bool:
    """Return whether fibers vary in length, so that `indptr` delimits them."""
    return AXIS_KINDS[type(axis)].width is None


def is_full(axis: Axis) -> bool:
    """Return whether every fiber holds all coordinates, so that the axis needs no index array.

    The term is that of Chou, Kjolstad and Amarasinghe, "Format abstraction for sparse tensor algebra
    compilers" (OOPSLA 2018).
    """
    kind = AXIS_KINDS[type(axis)]
    return kind.width is not None and not (kind.has_indices or kind.has_words)


def is_dense_root(axis: Axis) -> bool:
    """Return whether an axis is dense and has no parent."""
    return is_full(axis) and axis.parent is None


def is_padded(axis: Axis) -> bool:
    """Return whether slots of the axis may be unused."""
    indices = indices_of(axis)
    return indices is not None and indices.padded


def width_of(axis: Axis) -> Expr:
    """Return the number of slots in every fiber of a fixed axis.

    >>> from gossamer_ir.core.build import index, index_var
    >>> width = width_of(CompressedFixed("J", "I", index_var("n"), index(8), "indices"))
    >>> width.text
    '8'
    """
    width = AXIS_KINDS[type(axis)].width
    assert width is not None
    return width(axis)


def indptr_of(axis: Axis) -> Indptr | None:
    """Return the array of offsets of a varied axis, None for a fixed one.

    >>> from gossamer_ir.core.build import index_var
    >>> indptr_of(DenseVaried("J", "I", index_var("n"), None, "offsets"))
    Indptr(handle='offsets', dtype='int32', parent='I', nnz=None)
    """
    if AXIS_KINDS[type(axis)].width is not None:
        return None
    varied: Any = axis  # the table says that it has these fields
    return Indptr(varied.indptr, varied.indptr_dtype, varied.parent, varied.nnz)


def indices_of(axis: Axis) -> Indices | None:
    """Return the array of coordinates of a compressed axis or a bitmask, None for a dense one.

    >>> from gossamer_ir.core.build import index_var
    >>> indices_of(DenseVaried("J", "I", index_var("n"), None, "offsets"))
    """
    kind = AXIS_KINDS[type(axis)]
    # Each coordinate has one bit, and bits are in the order of coordinates: nothing is to be declared.
    fields: Any = axis  # the table says which fields it has
    if kind.has_words:
        return Indices(
            fields.words, fields.words_dtype, sorted=True, unique=True, padded=False, is_mask=True
        )
    if not kind.has_indices:
        return None
    return Indices(
        fields.indices, fields.indices_dtype, fields.sorted, fields.unique, fields.padded
    )


def index_handles(axis: Axis) -> tuple[str, ...]:
    """Return the handles of the index arrays of an axis: of the offsets, then of the coordinates.

    >>> from gossamer_ir.core.build import index_var
    >>> index_handles(CompressedVaried("J", "I", index_var("n"), None, "offsets", "columns"))
    ('offsets', 'columns')
    """
    arrays = (indptr_of(axis), indices_of(axis))
    return tuple([array.handle for array in arrays if array is not None])


def with_index_dtypes(axis: Axis, *, indptr: str | None = None, indices: str | None = None) -> Axis:
    """Return the axis with other dtypes for the index arrays that it has; None leaves a dtype as it is. Words
    of bits keep theirs.

    >>> from gossamer_ir.core.build import index_var
    >>> axis = DenseVaried("J", "I", index_var("n"), None, "offsets")
    >>> with_index_dtypes(axis, indptr="int64", indices="uint8").indptr_dtype
    'int64'
    """
    kind = AXIS_KINDS[type(axis)]
    dtypes = {"indptr_dtype": indptr} if kind.width is None and indptr else {}
    dtypes |= {"indices_dtype": indices} if kind.has_indices and indices else {}
    return replace(axis, **dtypes)


def with_declared_order(
    axis: Axis, *, sorted: bool | None = None, unique: bool | None = None
) -> Axis:
    """Return the axis with another declaration of the order in each fiber, if it has one: the coordinates of
    a dense axis and of a bitmask are always sorted and unique. None leaves a declaration as it is.

    >>> from gossamer_ir.core.build import index_var
    >>> axis = CompressedVaried("J", "I", index_var("n"), None, "offsets", "columns")
    >>> changed = with_declared_order(axis, sorted=False)
    >>> changed.sorted, changed.unique
    (False, True)
    """
    if not AXIS_KINDS[type(axis)].has_indices:
        return axis
    declared = {"sorted": sorted, "unique": unique}
    changes = {field: value for field, value in declared.items() if value is not None}
    return replace(axis, **changes)


def parent_value(axis: Axis, values: Mapping[str, V]) -> V | None:
    """Return the value for the parent of an axis, by the names of axes; None without a parent or a value.

    >>> from gossamer_ir.core.build import index_var
    >>> axis = DenseVaried("J", "I", index_var("n"), None, "offsets")
    >>> parent_value(axis, {"I": 1}), parent_value(axis, {"J": 2})
    (1, None)
    """
    return None if axis.parent is None else values.get(axis.parent)
