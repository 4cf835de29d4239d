"""Storage that owns its arrays or borrows them: copies, new arrays without copies, read-only views."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from gossamer_formats.checks.coordinate_order import with_observed_order
from gossamer_formats.checks.storage_checks import require_valid_storage
from gossamer_formats.memory.ownership import adopt_array, is_owned, owned_array
from gossamer_formats.storage import Storage
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array


def owned_storage(storage: Storage) -> Storage:
    """Return the storage with owned arrays; those that are not are copied. Nothing is checked."""
    return _with_arrays(storage, owned_array)


def adopted_storage(storage: Storage) -> Storage:
    """Return the storage with read-only arrays without copies: its arrays are owned, or new and the caller
    keeps no reference to them. Nothing is checked."""
    return _with_arrays(storage, lambda array: array if is_owned(array) else adopt_array(array))


def borrowed_storage(storage: Storage) -> Storage:
    """Return the storage with read-only views of arrays that the caller can write to. Nothing is checked."""
    return _with_arrays(storage, _read_only_view)


def _with_arrays(storage: Storage, held: Callable[[Array], Array]) -> Storage:
    arrays = {name: held(array) for name, array in storage.arrays.items()}
    # A copy, since the mapping of the caller may change, and with it what the arrays mean.
    sizes = MappingProxyType(dict(storage.sizes))
    return Storage(storage.description, sizes, MappingProxyType(arrays))


def _read_only_view(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def checked_copy(storage: Storage, declared: FormatDescription) -> Storage:
    """Return a read-only copy of the storage, checked. Its description declares as much of the order in
    `declared` as the arrays have. Raises `FormatError`.

    >>> import numpy as np
    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 2]), "indices": np.array([2, 0]), "data": np.ones(2)}
    >>> wide = csr("float64", indptr_dtype="int64", indices_dtype="int64", sorted=False, unique=False)
    >>> owned = checked_copy(Storage(wide, {"m": 1, "n": 3, "nnz": 2}, arrays), csr())
    >>> owned.description.axes[1].sorted, owned.description.axes[1].unique
    (False, True)
    """
    # The copy is checked, since callers can change their own arrays after a check.
    copy = owned_storage(storage)
    require_valid_storage(copy)
    return with_observed_order(copy, declared)
