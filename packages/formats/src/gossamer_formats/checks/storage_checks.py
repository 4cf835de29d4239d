"""Checks that arrays form a valid tensor of a format. Each check reports the first violation.

Unsorted or duplicate columns are valid unless the description declares them sorted or unique.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from math import prod
from numbers import Integral

import numpy as np

from gossamer_formats.checks.array_checks import require_dtype, require_length, require_vector
from gossamer_formats.checks.fibers import fibers_of, first_repeated_coordinate
from gossamer_formats.checks.index_checks import refuse, require_indices_shape, require_indptr_ends
from gossamer_formats.description_sizes import MAX_FORMATS, evaluate
from gossamer_formats.storage import Storage, element_count, value_count, values_handle
from gossamer_formats.value_dtypes import value_array_dtype
from gossamer_ir.analysis.axes.axis_facts import facts_of_axis
from gossamer_ir.core.axis_kinds import Indices, indices_of, indptr_of, is_varied
from gossamer_ir.errors import FormatError, UnsupportedError
from gossamer_ir.facts.array_violations import Violation, order_violation
from gossamer_ir.facts.fact_index import stated_fact_index
from gossamer_ir.facts.fact_violations import FactOperands, first_violation
from gossamer_ir.facts.index_arrays import FactChecker, Segments
from gossamer_ir.nodes import Axis, Buffer, Fact, FormatDescription, SortedSegments
from gossamer_support.typed_calls import typed


@typed
def require_valid_storage(storage: Storage, *, check: FactChecker | None = None) -> None:
    """Raise a `FormatError` that names array, position and value, unless all arrays form a valid tensor.

    `check` is a fast check of the contents of index arrays. Where it returns False, NumPy checks them
    again to find the first violation.

    >>> import numpy as np
    >>> from gossamer_formats import Storage, csr
    >>> arrays = {"indptr": np.array([0, 1]), "indices": np.array([4]), "data": np.ones(1)}
    >>> description = csr("float64", indptr_dtype="int64", indices_dtype="int64")
    >>> require_valid_storage(Storage(description, {"m": 1, "n": 4, "nnz": 1}, arrays))
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.FormatError: Element 0 of 'indices' is 4; expected a value from 0 to 3. [format.range]
    """
    require_one_buffer(storage.description)
    _require_parameters(storage)
    for axis in storage.description.axes:
        # All shapes before any contents: the checks of contents rely on them.
        _require_shapes(storage, axis)
    for array in storage.description.index_arrays:
        _require_map_array(storage, array)
    require_value_array(storage)
    # Apart from those of axes: they name buffers of the description, not handles.
    _require_map_facts(storage)
    facts = axis_facts(storage.description)
    if check is None or not check(facts, storage.sizes, storage.arrays):
        names = {name: name for name in storage.arrays}
        refuse(_violation(storage, facts, names))
    # Last, since it sorts: the range of coordinates has been checked, which the sort relies on.
    _require_order_of_slots(storage)


def _require_parameters(storage: Storage) -> None:
    """Require an array and a size for each parameter of the description."""
    for param in storage.description.params:
        name = param.name
        if param.dtype == "handle":
            array = storage.arrays.get(name)
            if not isinstance(array, np.ndarray):
                actual = "missing" if array is None else f"of type {type(array).__name__}"
                raise FormatError(
                    "format.arrays", f"The array '{name}' is {actual}; expected a NumPy array."
                )
            continue
        size = storage.sizes.get(name)
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 0:
            actual = "missing" if size is None else repr(size)
            raise FormatError(
                "format.shape", f"The size {name} is {actual}; expected an integer of 0 or more."
            )


def require_one_buffer(description: FormatDescription) -> None:
    """Refuse descriptions with several value buffers: a tensor has one."""
    if description.more_buffers:
        raise UnsupportedError(
            "format.value_buffers",
            f"The description '{description.name}' has several value buffers; expected one.",
            hint="Describe each tensor by itself; they may share index arrays.",
        )


@lru_cache(maxsize=MAX_FORMATS)
def axis_facts(description: FormatDescription) -> tuple[Fact, ...]:
    """Return the facts about index arrays that the axes of a description declare.

    The order within axes of fixed width is left out: a storage has their coordinates without rows.

    >>> from gossamer_formats import csr
    >>> [type(fact).__name__ for fact in axis_facts(csr())]
    ['Monotone', 'InRange', 'SortedSegments']
    """
    promised = tuple(
        fact
        for axis in description.axes
        for fact in facts_of_axis(axis, name_of=lambda handle: handle)
    )
    segments = stated_fact_index(promised).facts_of_type(SortedSegments)
    row_facts = {fact for fact in segments if fact.indptr is None}
    return tuple(fact for fact in promised if fact not in row_facts)


def _require_map_facts(storage: Storage) -> None:
    """Require what the description declares of the arrays that its map reads."""
    description = storage.description
    if description.facts:
        handles = {array.name: array.handle or array.name for array in description.index_arrays}
        refuse(_violation(storage, description.facts, handles))


def _violation(
    storage: Storage, facts: tuple[Fact, ...], handles: Mapping[str, str]
) -> Violation | None:
    arrays = {name: storage.arrays[handle] for name, handle in handles.items()}
    return first_violation(
        facts, FactOperands(arrays, handles, partial(evaluate, sizes=storage.sizes))
    )


def require_value_array(storage: Storage) -> None:
    """Require the dtype and the length of the array of values."""
    name = values_handle(storage.description)
    values = storage.arrays[name]
    require_vector(name, values)
    require_dtype(name, values, (value_array_dtype(storage.description.buffer.dtype).name,))
    require_length(name, values, value_count(storage), reason="one value per nonzero")


def _require_map_array(storage: Storage, array: Buffer) -> None:
    """Require the shape and dtype of an array that the map reads. Any contents are valid, unless a fact says
    more: slots that they map beyond the shape are unused."""
    name = array.handle or array.name
    stored = storage.arrays[name]
    require_vector(name, stored)
    require_dtype(name, stored, (array.dtype,))
    count = prod(evaluate(size, storage.sizes) for size in array.shape)
    require_length(name, stored, count, reason="the product of its dimensions")


def _require_shapes(storage: Storage, axis: Axis) -> None:
    """Require shapes, dtypes and the ends of `indptr`, in constant time per array."""
    indptr, indices = indptr_of(axis), indices_of(axis)
    if indptr is not None:
        offsets = storage.arrays[indptr.handle]
        require_dtype(indptr.handle, offsets, (indptr.dtype,))
        # Without a parameter for the number of elements, the last offset defines it.
        total = int(offsets[-1]) if indptr.nnz is None else evaluate(indptr.nnz, storage.sizes)
        parents = element_count(storage, indptr.parent)
        require_indptr_ends(offsets, segments=parents, total=total, name=indptr.handle)
    if indices is not None:
        require_indices_shape(
            storage.arrays[indices.handle],
            count=element_count(storage, axis.parent if indices.is_mask else axis.name),
            name=indices.handle,
            dtypes=(indices.dtype,),
            reason="one per fiber" if indices.is_mask else "one per nonzero",
        )


def _require_order_of_slots(storage: Storage) -> None:
    """Require the order that `axis_facts` leaves out, and that unsorted coordinates are unique, which no fact
    expresses."""
    for axis in storage.description.axes:
        indices = indices_of(axis)
        # Bits of a mask are sorted and unique by themselves; the facts cover sorted fibers with offsets.
        if indices is None or indices.is_mask or (indices.sorted and is_varied(axis)):
            continue
        fibers = fibers_of(storage, axis, indices)
        if indices.sorted:
            refuse(order_violation(indices.handle, fibers, unique=indices.unique))
        elif indices.unique:
            refuse(_find_repeated(indices, fibers))


def _find_repeated(indices: Indices, fibers: Segments) -> Violation | None:
    first = first_repeated_coordinate(fibers)
    if first is None:
        return None
    repeated = fibers.values[first]
    return Violation(
        "unique",
        f"Element {first} of '{indices.handle}' is {repeated}, which already occurs in its fiber.",
    )
