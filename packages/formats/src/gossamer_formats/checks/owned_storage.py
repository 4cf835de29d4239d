"""Read-only copies of storage, with checks and without."""

from __future__ import annotations

from types import MappingProxyType

from gossamer_formats.checks.coordinate_order import with_observed_order
from gossamer_formats.checks.storage_checks import check_storage
from gossamer_formats.memory.ownership import owned_array
from gossamer_formats.storage import Storage
from gossamer_ir.nodes import FormatDescription


def owned_storage(storage: Storage) -> Storage:
    """Return the storage with owned arrays; those that are not are copied. Nothing is checked."""
    arrays = {name: owned_array(array) for name, array in storage.arrays.items()}
    sizes = MappingProxyType(dict(storage.sizes))
    return Storage(storage.description, sizes, MappingProxyType(arrays))


def checked_copy(storage: Storage, declared: FormatDescription) -> Storage:
    """Return a read-only copy of the storage, checked. Its description declares as much of the order in
    `declared` as the arrays have. Raises `FormatError`.

    >>> import numpy as np
    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 2]), "indices": np.array([2, 0]), "data": np.ones(2)}
    >>> wide = csr("float64", indptr_dtype="int64", indices_dtype="int64", sorted=False, unique=False)
    >>> found = checked_copy(Storage(wide, {"m": 1, "n": 3, "nnz": 2}, arrays), csr())
    >>> found.description.axes[1].sorted, found.description.axes[1].unique
    (False, True)
    """
    # The copy is checked, since callers can change their own arrays after a check.
    copy = owned_storage(storage)
    check_storage(copy)
    return with_observed_order(copy, declared)
