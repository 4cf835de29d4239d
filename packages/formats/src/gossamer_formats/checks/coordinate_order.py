"""Records in a description whether the coordinates of each fiber are sorted and unique."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_formats.axis_order import with_order
from gossamer_formats.checks.fibers import fibers_of, has_repeated
from gossamer_formats.storage import Storage
from gossamer_ir.core.axis_kinds import indices_of, with_declared_order
from gossamer_ir.facts.index_arrays import Segments, first_unsorted
from gossamer_ir.nodes import Axis, FormatDescription


def without_order(description: FormatDescription) -> FormatDescription:
    """Return the description without any declaration that coordinates are sorted or unique.

    >>> from gossamer_formats.descriptions.csc import csc
    >>> without_order(csc()).axes[1].sorted
    False
    """
    return with_order(description, sorted=False, unique=False)


def with_observed_order(storage: Storage, declared: FormatDescription) -> Storage:
    """Return a checked storage with the order that `declared` declares, as far as its arrays have it."""
    axes = tuple(
        _with_order(storage, axis, wanted)
        for axis, wanted in zip(storage.description.axes, declared.axes, strict=True)
    )
    return storage._replace(description=replace(storage.description, axes=axes))


def _with_order(storage: Storage, axis: Axis, declared: Axis) -> Axis:
    wanted, indices = indices_of(declared), indices_of(axis)
    # The bits of a mask have no order that a description declares.
    if wanted is None or indices is None or indices.is_mask:
        return axis
    is_sorted, is_unique = _order_of(fibers_of(storage, axis, indices))
    return with_declared_order(
        axis, sorted=wanted.sorted and is_sorted, unique=wanted.unique and is_unique
    )


def _order_of(fibers: Segments) -> tuple[bool, bool]:
    """Return whether the coordinates of each fiber are sorted, and whether they are unique."""
    # Most tensors are sorted and unique, which one pass finds.
    if first_unsorted(fibers, unique=True) is None:
        return True, True
    if first_unsorted(fibers, unique=False) is None:
        return True, False
    return False, not has_repeated(fibers)
