"""Storages in a recording: what is known about all tensors of a kind, and their arrays as values."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from gossamer_formats.axis_order import ancestors
from gossamer_formats.conversion.by_kernels.recording.array_scalars import size_of
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_formats.description_sizes import evaluated_shape
from gossamer_formats.memory.ownership import is_owned
from gossamer_formats.permutation import compose
from gossamer_formats.storage import Storage, values_handle
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, is_full, width_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Axis, Expr, FormatDescription, Var
from gossamer_support.items_by_name import items_by_name


class RecordedStorage(NamedTuple):
    """The description, the sizes that are the same for all tensors of the kind, and the arrays by handle.

    `value_count` is the number of values. The arrays of a storage that the conversion makes `are_new`.
    """

    description: FormatDescription
    sizes: dict[str, int]
    arrays: dict[str, RecordedValue]
    value_count: RecordedValue
    are_new: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        return evaluated_shape(self.description, self.sizes)

    @property
    def values(self) -> RecordedValue:
        """The array of values."""
        return self.arrays[values_handle(self.description)]


class RecordedConversion(NamedTuple):
    """A storage that was recorded, the values of all its sizes, and the permutation if there is one."""

    storage: RecordedStorage
    sizes: dict[str, int | RecordedValue]
    permutation: RecordedValue | None


def compose_value_indices(
    recorder: Recorder, first: RecordedConversion, second: RecordedConversion
) -> RecordedValue | None:
    """Return the value indices in the source of the first of two conversions; None if one has none."""
    if first.permutation is None or second.permutation is None:
        return None
    return recorder.compute(compose, first.permutation, second.permutation)


def kind_sizes(storage: Storage) -> tuple[tuple[str, int], ...]:
    """Return the sizes that all tensors of a kind have: not the numbers of slots.

    >>> from gossamer_formats import csr
    >>> kind_sizes(Storage(csr(), {"m": 3, "n": 4, "nnz": 2}, {}))
    (('m', 3), ('n', 4))
    """
    counts = _slot_counts(storage.description)
    return tuple([item for item in storage.sizes.items() if item[0] not in counts])


@lru_cache(maxsize=256)
def _slot_counts(description: FormatDescription) -> frozenset[str]:
    """Return the sizes that are the numbers of all slots of an axis."""
    counts = [_slot_count(description, axis) for axis in description.axes]
    return frozenset([count.name for count in counts if isinstance(count, Var)])


def _slot_count(description: FormatDescription, axis: Axis) -> Expr | None:
    """Return the number of all slots of an axis with fibers of any length, or with a single fiber."""
    indptr = indptr_of(axis)
    if indptr is not None:
        return indptr.nnz
    return width_of(axis) if is_list(description, axis) else None


def is_list(description: FormatDescription, axis: Axis) -> bool:
    """Return whether an axis stores the coordinates of a single fiber, as the first one of COO.

    >>> from gossamer_formats.descriptions.coo import coo
    >>> [is_list(coo(), axis) for axis in coo().axes]
    [False, True, False]
    """
    axes = items_by_name(description.axes)
    above = [axes[name] for name in ancestors(axes, axis.name)]
    is_single = all(is_full(ancestor) and integer_value(ancestor.length) == 1 for ancestor in above)
    return is_single and indptr_of(axis) is None and indices_of(axis) is not None


def recorded_source(recorder: Recorder, storage: Storage) -> RecordedStorage:
    """Return the storage whose arrays are the inputs of a recording, in their order."""
    arrays = {handle: RecordedValue(number) for number, handle in enumerate(storage.arrays)}
    count = recorder.compute(size_of, arrays[values_handle(storage.description)])
    return RecordedStorage(
        storage.description, dict(kind_sizes(storage)), arrays, count, are_new=False
    )


def is_shareable(recorder: Recorder, storage: RecordedStorage, array: RecordedValue) -> bool:
    """Return whether other storages may share an array."""
    return storage.are_new or bool(recorder.decide(is_owned, array))
