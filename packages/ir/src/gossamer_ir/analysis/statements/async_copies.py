"""Copies that a device can make asynchronously: the conditions on a store and its load."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of, has_lanes
from gossamer_ir.nodes import Expr, Load, Ramp, Stmt, Store

COPIED_BYTES = (4, 8, 16)
"""The numbers of bytes that an asynchronous copy may have."""


class ContiguousCopy(msgspec.Struct, frozen=True):
    """A store of consecutive elements that a load reads."""

    store: Store
    load: Load

    @property
    def size(self) -> int:
        """The bytes of the elements."""
        dtype = DType.parse(self.load.dtype)
        return dtype.bits * dtype.lanes // 8


def contiguous_copy(stmt: Stmt) -> ContiguousCopy | None:
    """Return the copy of consecutive elements that a statement is; None for any other.

    >>> from gossamer_ir.core.build import ZERO, index
    >>> copied = Load("X", (index(4),), "float32")
    >>> contiguous_copy(Store("S", (ZERO,), copied)).size
    4
    >>> contiguous_copy(Store("S", (ZERO,), index(4))) is None
    True
    """
    match stmt:
        case Store(value=Load(predicate=None) as load, predicate=None):
            is_vector = DType.parse(dtype_of(load)).is_vector
            is_contiguous = all(
                _is_contiguous(access.indices, is_vector=is_vector) for access in (stmt, load)
            )
            return ContiguousCopy(stmt, load) if is_contiguous else None
    return None


def _is_contiguous(indices: tuple[Expr, ...], *, is_vector: bool) -> bool:
    """Return whether indices select one element, or consecutive ones along the last dimension."""
    if not is_vector:
        return not any(map(has_lanes, indices))
    if any(map(has_lanes, indices[:-1])):
        return False
    match indices[-1:]:
        case (Ramp(stride=stride, lanes=lanes),):
            return integer_value(stride) == 1 and not lanes.scalable
    return False
