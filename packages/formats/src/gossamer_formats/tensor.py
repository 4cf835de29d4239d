"""A sparse tensor at run time: a format description and its arrays, checked once and read-only."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from gossamer_formats.checks.storage_checks import check_storage, require_value_dtype
from gossamer_formats.ownership import owned
from gossamer_formats.stats import storage_stats
from gossamer_formats.storage import Array, Storage, value_count, values_handle, with_value_dtype
from gossamer_ir.core.typed_calls import typed
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import FormatDescription


class SparseTensor:
    """A sparse tensor that owns its arrays: they were checked and nobody can write to them, so a
    kernel may rely on them. Make one with `from_scipy`, `from_arrays` or `read`.

    >>> from gossamer_formats import from_arrays
    >>> A = from_arrays(
    ...     "csr", (2, 3), indptr=np.array([0, 1, 3]), indices=np.array([2, 0, 1]), data=np.ones(3)
    ... )
    >>> A
    SparseTensor(csr, 2 by 3, 3 nonzeros, float64)
    >>> A.stats.longest_row
    2
    >>> A.arrays["data"][0] = 2.0
    Traceback (most recent call last):
    ...
    ValueError: assignment destination is read-only
    >>> A.astype("float32").dtype
    'float32'
    """

    @typed
    def __init__(self, storage: Storage) -> None:
        """Copies the arrays, unless another tensor owns them already, and checks them."""
        self._hold(_owned(storage))
        check_storage(self._storage)

    @classmethod
    def of_checked(cls, storage: Storage) -> SparseTensor:
        """A tensor of arrays that are owned already and that the caller has checked since."""
        tensor = cls.__new__(cls)
        tensor._hold(_owned(storage))
        return tensor

    def _hold(self, storage: Storage) -> None:
        self._storage = storage
        self._shape: tuple[int, ...] | None = None
        self._stats: Stats | None = None

    @property
    def storage(self) -> Storage:
        """Description, sizes and arrays together."""
        return self._storage

    @property
    def format(self) -> FormatDescription:
        """How the tensor is stored."""
        return self._storage.format

    @property
    def sizes(self) -> Mapping[str, int]:
        """The values of the description's scalar parameters."""
        return self._storage.sizes

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The arrays by the names of the description's handles, read-only."""
        return self._storage.arrays

    # What follows is remembered without the lock that `cached_property` takes before Python 3.12: in a
    # child that is forked meanwhile nobody would release it.
    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        if self._shape is None:
            self._shape = self._storage.shape
        return self._shape

    @property
    def dtype(self) -> str:
        """The dtype of the values."""
        return self.format.buffer.dtype

    @property
    def nnz(self) -> int:
        """How many values are stored, explicit zeros and duplicates included."""
        return value_count(self._storage)

    @property
    def stats(self) -> Stats:
        """What rules for schedules look at in the data."""
        if self._stats is None:
            self._stats = storage_stats(self._storage)
        return self._stats

    def astype(self, dtype: str) -> SparseTensor:
        """The same structure with values as float32 or float64; the index arrays are shared."""
        if dtype == self.dtype:
            return self
        require_value_dtype(dtype)
        with np.errstate(over="ignore"):
            values = self._storage.values.astype(dtype)
        arrays = {**self.arrays, values_handle(self.format): values}
        described = with_value_dtype(self.format, dtype)
        return SparseTensor.of_checked(Storage(described, self.sizes, arrays))

    def __reduce__(self) -> tuple[type[SparseTensor], tuple[Storage]]:
        """Pickles the storage, which is checked again when it is loaded."""
        return SparseTensor, (Storage(self.format, dict(self.sizes), dict(self.arrays)),)

    def __repr__(self) -> str:
        shape = " by ".join(str(length) for length in self.shape)
        return f"SparseTensor({self.format.name}, {shape}, {self.nnz} nonzeros, {self.dtype})"


def _owned(storage: Storage) -> Storage:
    arrays = {name: owned(array) for name, array in storage.arrays.items()}
    sizes = MappingProxyType(dict(storage.sizes))
    return Storage(storage.format, sizes, MappingProxyType(arrays))


@typed
def stats_of(tensor: SparseTensor) -> Stats:
    """What rules for schedules look at in the data; computed once for a tensor.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import from_scipy
    >>> stats_of(from_scipy(eye_array(3)))
    Stats(rows=3, columns=3, nnz=3, longest_row=1, empty_rows=0)
    """
    return tensor.stats
