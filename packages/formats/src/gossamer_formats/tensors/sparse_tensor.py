"""A sparse tensor at run time: a format description with checked, read-only arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gossamer_formats.arithmetic.refused_operators import RefusedOperators
from gossamer_formats.array_protocol import NotAnArray
from gossamer_formats.checks.array_checks import require_value_dtype
from gossamer_formats.checks.owned_storage import (
    adopted_storage,
    borrowed_storage,
    checked_copy,
    owned_storage,
)
from gossamer_formats.checks.storage_checks import require_valid_storage
from gossamer_formats.conversion.by_numpy.csr_matrices import transposed_storage
from gossamer_formats.conversion.destination.conversion_options import (
    ConversionOptions,
    Duplicates,
    Zeros,
)
from gossamer_formats.conversion.destination.recognized_formats import is_format
from gossamer_formats.descriptions.csr import csr
from gossamer_formats.memo import MemoKey, SparsityPattern
from gossamer_formats.registry.composable_names import ComposableName
from gossamer_formats.registry.operators import operator_of
from gossamer_formats.stats import storage_stats
from gossamer_formats.storage import Storage, value_count, with_values_in
from gossamer_formats.tensors.scipy_storage import unchecked_storage
from gossamer_formats.value_dtypes import dtype_name, value_array_dtype
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount, readable_size

if TYPE_CHECKING:
    from gossamer_formats.arithmetic.reduce_elements import ReductionName
    from gossamer_formats.conversion.destination.converted_storage import ConvertedStorage


class SparseTensor(RefusedOperators, NotAnArray):
    """A sparse tensor with checked, read-only copies of its arrays, so that kernels need not check them.

    Made of a SciPy matrix, or by `from_scipy`, `from_torch`, `from_arrays` and `read`. With `copy=False`,
    the first two return a tensor that borrows the arrays of the caller, who can still write to them
    (`is_borrowed`): operators check it at each call, and what is derived from it is checked as well.

    >>> from gossamer_formats import from_arrays
    >>> A = from_arrays(
    ...     "csr", (2, 3), indptr=np.array([0, 1, 3]), indices=np.array([2, 0, 1]), data=np.ones(3)
    ... )
    >>> A
    SparseTensor(csr, 2 by 3, 3 nonzeros, float64, 72 bytes)
    >>> A.stats.longest_row
    2
    >>> A.arrays["data"][0] = 2.0
    Traceback (most recent call last):
    ...
    ValueError: assignment destination is read-only
    >>> A.astype("float32").dtype
    dtype('float32')
    >>> A.T.toarray()
    array([[0., 1.],
           [0., 1.],
           [1., 0.]])
    """

    def __init__(self, source: Any) -> None:
        """Check and copy the arrays of a `Storage`, or those of a SciPy matrix, as `from_scipy` does.

        Arrays that another tensor owns are shared. Raises `FormatError`.
        """
        if isinstance(source, Storage):
            # Copied first: a check of the arrays of the caller could be out of date before they are copied.
            self._hold(owned_storage(source))
            require_valid_storage(self._storage)
        else:
            self._hold(checked_copy(unchecked_storage(source, None), csr()))

    @classmethod
    def from_checked(cls, storage: Storage) -> SparseTensor:
        """Return a tensor of arrays that the caller has checked after they became read-only."""
        tensor = cls.__new__(cls)
        tensor._hold(owned_storage(storage))
        return tensor

    @classmethod
    def from_new(cls, storage: Storage) -> SparseTensor:
        """Return a tensor of valid, read-only arrays: those of other tensors, or without other references."""
        tensor = cls.__new__(cls)
        tensor._hold(adopted_storage(storage))
        return tensor

    @classmethod
    def from_borrowed(cls, storage: Storage) -> SparseTensor:
        """Return a tensor that shares arrays of the caller; raises `FormatError` if they are not valid now.

        >>> from scipy.sparse import eye_array
        >>> from gossamer_formats import borrow_scipy
        >>> SparseTensor.from_borrowed(borrow_scipy(eye_array(3))).is_borrowed
        True
        """
        require_valid_storage(storage)
        tensor = cls.__new__(cls)
        tensor._hold(borrowed_storage(storage))
        tensor._is_borrowed = True
        return tensor

    def _hold(self, storage: Storage) -> None:
        self._storage = storage
        self._is_borrowed = False
        self.memo: dict[MemoKey[Any], Any] = {}
        self.pattern = SparsityPattern()
        self._shape: tuple[int, ...] | None = None

    @property
    def storage(self) -> Storage:
        """The description, sizes and arrays."""
        return self._storage

    @property
    def description(self) -> FormatDescription:
        """The description of the tensor's format."""
        return self._storage.description

    @property
    def format(self) -> str:
        """The name of the tensor's format, as that of a SciPy matrix."""
        return self._storage.description.name

    @property
    def sizes(self) -> Mapping[str, int]:
        """The values of the description's scalar parameters."""
        return self._storage.sizes

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The arrays by the names of the description's handles, read-only."""
        return self._storage.arrays

    @property
    def is_borrowed(self) -> bool:
        """True if the arrays belong to the caller, who can write to them: they are checked at each use."""
        return self._is_borrowed

    def checked_storage(self) -> Storage:
        """Return the storage; of a borrowed tensor, a private copy that has been checked.

        Raises `FormatError` if the arrays were changed so that they are not valid.
        """
        return SparseTensor(self._storage)._storage if self._is_borrowed else self._storage

    # Not `cached_property`: before Python 3.12 it takes a lock, which a process forked in the meantime
    # would inherit locked.
    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        if self._shape is None:
            self._shape = self._storage.shape
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array of values. It is uint16 for bfloat16, which NumPy lacks (`value_dtype`)."""
        return value_array_dtype(self.value_dtype)

    @property
    def value_dtype(self) -> str:
        """The name of the dtype of the values: float32, float64, float16, bfloat16 or int8.

        >>> from scipy.sparse import eye_array
        >>> A = SparseTensor(eye_array(2)).astype("bfloat16")
        >>> A.value_dtype, A.dtype, A.toarray().dtype
        ('bfloat16', dtype('uint16'), dtype('float32'))
        """
        return self.description.buffer.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of all arrays in bytes."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def T(self) -> SparseTensor:  # noqa: N802 - NumPy's name
        """The transposed matrix in CSR, computed once unless the tensor is borrowed; raises `FormatError`."""
        return _transpose(self) if self._is_borrowed else _TRANSPOSED.get(self, _transpose)

    @property
    def nnz(self) -> int:
        """The number of stored values, explicit zeros and duplicates included."""
        return value_count(self._storage)

    @property
    def stats(self) -> Stats:
        """Statistics of the matrix, which the scheduling rules use; computed once unless the tensor is
        borrowed."""
        return (
            _stats(self)
            if self._is_borrowed
            else _STATS.get(self.pattern, lambda _pattern: _stats(self))
        )

    def toarray(self) -> Array:
        """Return the dense array; duplicates are added. Values of bfloat16 become float32."""
        from gossamer_formats.conversion.by_numpy.stored_elements import to_dense

        return to_dense(self.checked_storage())

    def todense(self) -> Array:
        """Return the dense array, as `toarray` does: SciPy has both names.

        >>> from scipy.sparse import eye_array
        >>> SparseTensor(eye_array(2)).todense()
        array([[1., 0.],
               [0., 1.]])
        """
        return self.toarray()

    # A `Decomposition`, whose module imports this one; `decompose` is annotated with it.
    @overload
    def asformat(
        self,
        format: ComposableName,
        *,
        duplicates: Duplicates = ...,
        zeros: Zeros | None = ...,
        index_dtype: str | None = ...,
        order: None = ...,
        **parameters: int,
    ) -> Any: ...

    @overload
    def asformat(
        self,
        format: str | FormatDescription,
        *,
        duplicates: Duplicates = ...,
        zeros: Zeros | None = ...,
        index_dtype: str | None = ...,
        order: Array | None = ...,
        **parameters: int,
    ) -> SparseTensor: ...

    def asformat(
        self,
        format: str | FormatDescription,
        *,
        duplicates: Duplicates = "sum",
        zeros: Zeros | None = None,
        index_dtype: str | None = None,
        order: Array | None = None,
        **parameters: int,
    ) -> Any:
        """Return the tensor in another format: `convert` without the permutation.

        A tensor that has the format already is returned itself, unless something else is asked for. The name
        of a composable format, such as "hyb", gives a `Decomposition`.

        >>> from scipy.sparse import eye_array
        >>> from gossamer_formats import from_scipy
        >>> tensor = from_scipy(eye_array(4))
        >>> tensor.asformat("csr") is tensor
        True
        >>> tensor.asformat("bsr", block_rows=2, block_columns=2).arrays["indices"].tolist()
        [0, 1]
        >>> tensor.asformat("hyb", c=2).parts[1].name
        'p1b0'
        """
        asks_more = (
            parameters
            or duplicates != "sum"
            or zeros is not None
            or index_dtype is not None
            or order is not None
        )
        # The tensor itself keeps what was memoized for it; also a borrowed one stays as it is.
        if isinstance(format, str) and not asks_more and is_format(self.description, format):
            return self
        # The parts of a composable format have orders of rows of their own.
        # Imported late: most programs convert no tensor.
        from gossamer_formats.conversion.destination.conversion_destination import (
            conversion_destination,
        )
        from gossamer_formats.registry.composable_formats import find_composable

        composable = find_composable(format) if order is None else None
        if composable is not None:
            matrix = self.asformat(
                "csr", duplicates=duplicates, zeros=zeros, index_dtype=index_dtype
            )
            return composable.decomposition_of(matrix, parameters)
        storage, _ = _converter()(
            self.checked_storage(),
            conversion_destination(format, parameters, ndim=self.ndim, order=order),
            options=ConversionOptions(duplicates, zeros, index_dtype, wants_permutation=False),
        )
        return SparseTensor.from_new(storage)

    def tocsr(self) -> SparseTensor:
        """Return the matrix in CSR, converted once unless the tensor is borrowed; duplicates are kept.

        A borrowed tensor is copied and checked, also one in CSR.

        >>> from scipy.sparse import eye_array
        >>> from gossamer_formats import from_scipy
        >>> from_scipy(eye_array(3)).asformat("coo").tocsr().arrays["indptr"].tolist()
        [0, 1, 2, 3]
        """
        if self._is_borrowed:
            return SparseTensor(self._storage).tocsr()
        if is_format(self.description, "csr"):
            return self
        return MATRIX_IN_CSR.get(self, lambda tensor: tensor.asformat("csr", duplicates="keep"))

    @property
    def kept_csr(self) -> SparseTensor | None:
        """The matrix in CSR that an earlier `tocsr` made of a tensor in another format; None otherwise.

        >>> from scipy.sparse import eye_array
        >>> from gossamer_formats import from_scipy
        >>> tensor = from_scipy(eye_array(3)).asformat("coo")
        >>> tensor.kept_csr is None, tensor.tocsr() is tensor.kept_csr
        (True, True)
        """
        return MATRIX_IN_CSR.find(self)

    def __matmul__(self, other: Any) -> Any:
        """Return the product with a dense matrix or vector; needs distribution `gossamer`. Raises
        `UnsupportedError` (`tensor.operator`) for a sparse one."""
        if hasattr(other, "tocsr"):
            raise self._operator_error("@")
        return self._operator("matmul")(self._operand(), other)

    def __rmatmul__(self, other: Any) -> Any:
        """Return the product of a dense matrix or vector with the tensor; needs distribution `gossamer`."""
        return self._operator("rmatmul")(self._operand(), other)

    def __mul__(self, other: Any) -> SparseTensor:
        """Return the tensor with its elements multiplied by a number, or by those of an array whose shape
        broadcasts to that of the tensor: one factor for each column `(n,)`, row `(m, 1)` or element.

        The format is kept. Raises `ArgumentError` (`tensor.factor`), and `UnsupportedError`
        (`tensor.operator`) for a sparse factor: `gossamer.einsum` multiplies two sparse matrices.

        >>> from scipy.sparse import eye_array
        >>> (2 * SparseTensor(eye_array(2)) * np.array([[1.0], [10.0]])).toarray()
        array([[ 2.,  0.],
               [ 0., 20.]])
        """
        from gossamer_formats.arithmetic.multiply_values import multiplied_storage

        if hasattr(other, "tocsr"):
            raise self._operator_error("*")
        return SparseTensor.from_new(multiplied_storage(self.checked_storage(), other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        """Return the tensor with its elements divided by a number or an array, as `*` multiplies them."""
        with np.errstate(divide="ignore"):
            return self * (1 / other if np.ndim(other) == 0 else 1 / np.asarray(other))

    def __neg__(self) -> SparseTensor:
        """Return the tensor with negated elements."""
        return self * -1

    def sum(self, axis: int | None = None) -> Any:
        """Return the sum of the elements along a dimension, or of all: an array with one dimension less, or a
        number. It has the dtype of the tensor; it is accumulated in float64.

        >>> from scipy.sparse import eye_array
        >>> SparseTensor(eye_array(2, 3)).sum(axis=0)
        array([1., 1., 0.])
        """
        return self._reduce("sum", axis)

    def mean(self, axis: int | None = None) -> Any:
        """Return the mean of the elements, those that are not stored included, as `sum` does."""
        return self._reduce("mean", axis)

    def max(self, axis: int | None = None) -> Any:
        """Return the maximum of the elements, those that are not stored included, as `sum` does. It
        propagates NaN; `ArgumentError` (`tensor.empty`) if there are no elements."""
        return self._reduce("max", axis)

    def min(self, axis: int | None = None) -> Any:
        """Return the minimum of the elements, as `max` does."""
        return self._reduce("min", axis)

    def _reduce(self, reduction: ReductionName, axis: int | None) -> Any:
        from gossamer_formats.arithmetic.reduce_elements import reduce_storage

        return reduce_storage(self.checked_storage(), reduction, axis)

    def __getitem__(self, rows: Any) -> SparseTensor:
        """Return rows of the matrix in CSR: a slice, their numbers, or a mask with a bool for each row.

        Raises `ArgumentError` (`tensor.rows`).

        >>> from scipy.sparse import eye_array
        >>> SparseTensor(eye_array(3))[1:].toarray()
        array([[0., 1., 0.],
               [0., 0., 1.]])
        """
        from gossamer_formats.arithmetic.select_rows import selected_rows

        return SparseTensor.from_new(selected_rows(self.tocsr().storage, rows))

    def _operator(self, operator: str) -> Callable[..., Any]:
        """Return the function of an operator for the format; that of CSR for a description that has no name,
        which is converted."""
        name = self.format
        # A description without a record may have the name of one, whose operator would misread it.
        return operator_of(operator, format=name if is_format(self.description, name) else "csr")

    def _operand(self) -> SparseTensor:
        """Return the tensor for an operator: those of CSR check a borrowed one, others get a copy."""
        if self._is_borrowed and not is_format(self.description, "csr"):
            return SparseTensor(self._storage)
        return self

    def astype(self, dtype: Any) -> SparseTensor:
        """Return the tensor with its values converted to another dtype (`value_dtype`); index arrays are
        shared. Floats are rounded to the nearest, and become int8 by truncation, with saturation.

        >>> from scipy.sparse import diags_array
        >>> SparseTensor(diags_array([1.75, -500.0])).astype("int8").toarray().diagonal()
        array([   1, -128], dtype=int8)
        """
        dtype = dtype_name(np.dtype(dtype)) if isinstance(dtype, (type, np.dtype)) else dtype
        if dtype == self.description.buffer.dtype:
            return self
        require_value_dtype(dtype)
        converted = SparseTensor.from_checked(with_values_in(self.checked_storage(), dtype))
        if not self._is_borrowed:
            converted.pattern = self.pattern
        return converted

    def __reduce__(self) -> tuple[type[SparseTensor], tuple[Storage]]:
        """Pickle the storage; loading it checks the arrays again."""
        return SparseTensor, (Storage(self.description, dict(self.sizes), dict(self.arrays)),)

    def __repr__(self) -> str:
        shape = " by ".join(str(length) for length in self.shape)
        return (
            f"SparseTensor({self.format}, {shape}, {amount(self.nnz, 'nonzero')}, {self.value_dtype}, "
            f"{readable_size(self.nbytes)})"
        )


MATRIX_IN_CSR = MemoKey[SparseTensor]("the matrix in CSR")
_TRANSPOSED = MemoKey[SparseTensor]("the transposed matrix in CSR")
_STATS = MemoKey[Stats]("the statistics")


def _transpose(tensor: SparseTensor) -> SparseTensor:
    return SparseTensor.from_checked(transposed_storage(tensor.tocsr().storage))


def _stats(tensor: SparseTensor) -> Stats:
    return storage_stats(tensor.tocsr().storage)


@cache
def _converter() -> Callable[..., ConvertedStorage]:
    """Return the function that converts a storage. Imported late, since most tensors are never converted, and
    operators import this module."""
    from gossamer_formats.conversion.convert_storage import convert_storage

    return convert_storage
