"""Patterns of sparse matrices: checked index arrays for kernels, made once for the tensors of a matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from gossamer_formats import Decomposition, SparseTensor, from_arrays
from gossamer_formats.internal_api import replace_values, value_array_dtype
from gossamer_support.arrays import Array
from gossamer_torch.counting_sort import counting_order
from gossamer_torch.kept_results import ResultKey
from gossamer_torch.numpy_views import dtype_name_of, shared_array
from gossamer_torch.tensor_states import TensorState, state_of


class _ConstantValues(NamedTuple):
    """The bits of a copy of values and their dtype, and the matrix with them, or the transposed one."""

    bits: Array
    dtype: str
    matrix: SparseTensor

    def has_values(self, values: torch.Tensor) -> bool:
        """Return whether the matrix is that of these values: torch does not count all writes to them."""
        # By NumPy, in this thread: in a forked process, torch would wait for threads of the parent.
        return dtype_name_of(values) == self.dtype and np.array_equal(self.bits, _bits_of(values))


def _bits_of(values: torch.Tensor) -> Array:
    """Return the values as integers, of which those of NaN are equal, too."""
    array = shared_array(values)
    return array.view(f"u{array.itemsize}")


class PatternTensors(NamedTuple):
    """The checked index arrays of a matrix as tensors on a GPU; `order` has the places of the nonzeros in the
    values of the matrix, for the transposed one."""

    indptr: torch.Tensor
    indices: torch.Tensor
    order: torch.Tensor | None
    shape: tuple[int, int]


class OrientedPattern:
    """The index arrays of a matrix, or of the transposed one, as a matrix whose values are not used, and the
    matrices with them that are kept. `order` has the places of the nonzeros in the values of the matrix, for
    the transposed one."""

    def __init__(
        self, structure: SparseTensor, order: torch.Tensor | None, device: torch.device
    ) -> None:
        self.structure, self._order, self._device = structure, order, device
        self._constant: _ConstantValues | None = None
        self._last_state: TensorState | None = None
        self._tensors: PatternTensors | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.structure.shape[0]

    @property
    def tensors(self) -> PatternTensors:
        """The index arrays on the device of the tensors that the pattern was made of. They are copied there
        once."""
        if self._tensors is None:
            indptr, indices = (
                torch.from_numpy(self.structure.arrays[name].copy()).to(self._device)
                for name in ("indptr", "indices")
            )
            rows, columns = self.structure.shape
            order = None if self._order is None else self._order.to(self._device)
            self._tensors = PatternTensors(indptr, indices, order, (rows, columns))
        return self._tensors

    def matrix(self, values: torch.Tensor) -> SparseTensor:
        """Return the matrix with these values for the kernels of a call. Values that stay the same from call
        to call have one matrix, which many products convert to a faster format."""
        if values.requires_grad or values.is_inference():
            return self.new_matrix(values)
        if self._constant is not None and self._constant.has_values(values):
            return self._constant.matrix
        state, last_state = state_of(values), self._last_state
        self._last_state = state
        if state != last_state:
            return self.new_matrix(values)
        copy = values.clone()
        matrix = self.new_matrix(copy)
        self._constant = _ConstantValues(_bits_of(copy), dtype_name_of(copy), matrix)
        return matrix

    def new_matrix(self, values: torch.Tensor) -> SparseTensor:
        """Return the matrix with values that are of one call."""
        values = values.detach()
        if self._order is not None:
            values = values.index_select(0, self._order)
        return replace_values(self.structure, shared_array(values), dtype_name_of(values))


class CheckedPattern:
    """The checked index arrays of a matrix in CSR. They are copies, so that no write to the tensors can make
    a kernel read out of bounds. Those of tensors on a GPU are checked and transposed by the host."""

    def __init__(self, crow: torch.Tensor, col: torch.Tensor, columns: int) -> None:
        structure = _structure(shared_array(crow.cpu()), shared_array(col.cpu()), columns)
        self._device = col.device
        self.direct = OrientedPattern(structure, None, self._device)
        self._transposed: OrientedPattern | None = None
        self._has_stored = False
        # Keys of its own: values may be passed on with another pattern, whose matrix is another one.
        self._stored = ResultKey[SparseTensor | Decomposition]("the matrix in the format passed in")
        self._transposed_matrix = ResultKey[SparseTensor]("the transposed matrix in CSR")
        self._masks: dict[str, SparseTensor] = {}

    @property
    def transposed(self) -> OrientedPattern:
        """The pattern of the transposed matrix, which is made once."""
        if self._transposed is None:
            structure, order = _transpose(self.direct.structure)
            self._transposed = OrientedPattern(structure, order, self._device)
        return self._transposed

    def orientation(self, *, transposed: bool) -> OrientedPattern:
        """Return the pattern of the transposed matrix, or of the matrix itself."""
        return self.transposed if transposed else self.direct

    def mask(self, dtype: str) -> SparseTensor:
        """Return the pattern as a matrix for operators that ignore its values, but know them by their
        dtype. The zeros are never read, so they take no memory."""
        if dtype not in self._masks:
            structure = self.direct.structure
            zeros = np.zeros(structure.nnz, value_array_dtype(dtype))
            self._masks[dtype] = replace_values(structure, zeros, dtype)
        return self._masks[dtype]

    def keep_stored(self, values: torch.Tensor, stored: SparseTensor | Decomposition) -> None:
        """Keep a matrix in another format, or in parts, for products with these values, until
        they are written to."""
        self._has_stored = True
        self._stored.get([values], lambda: stored)

    def operand(self, values: torch.Tensor, *, transposed: bool) -> SparseTensor | Decomposition:
        """Return the matrix with these values, or the transposed one, for a product: in the format that was
        kept for the values, if there is one. Then the transposed matrix is kept, too, so that repeated
        products convert it to a faster format."""
        stored = self._stored.find([values]) if self._has_stored else None
        if stored is None:
            return self.orientation(transposed=transposed).matrix(values)
        if not transposed:
            return stored
        return self._transposed_matrix.get([values], lambda: self.transposed.matrix(values))


_PATTERN = ResultKey[CheckedPattern]("the pattern of a matrix in CSR")


def kept_pattern(crow: torch.Tensor, col: torch.Tensor, columns: int) -> CheckedPattern:
    """Return the pattern of a matrix in CSR, which is made and checked at the first call with its tensors.

    Raises `FormatError` if the offsets or the columns are not valid.
    """
    return _PATTERN.get((crow, col), lambda: CheckedPattern(crow, col, columns), options=(columns,))


def _structure(indptr: Array, indices: Array, columns: int) -> SparseTensor:
    """Return checked copies of index arrays, as a matrix whose values are not used. Indices are narrowed to
    32 bits if they fit, which halves the memory that kernels read."""
    widest = max(columns, indices.size, indptr.size)
    if widest <= _MAX_INT32 and _fits(indptr) and _fits(indices):
        indptr, indices = indptr.astype(np.int32), indices.astype(np.int32)
    data = np.zeros(indices.size, np.int8)
    shape = (indptr.size - 1, columns)
    return from_arrays("csr", shape, indptr=indptr, indices=indices, data=data)


_MAX_INT32 = np.iinfo(np.int32).max


def _fits(indices: Array) -> bool:
    """Return whether 32 bits hold these numbers, which may be wrong indices."""
    is_narrow = indices.dtype == np.int32 or not indices.size
    return is_narrow or bool(-_MAX_INT32 <= indices.min() <= indices.max() <= _MAX_INT32)


def _transpose(structure: SparseTensor) -> tuple[SparseTensor, torch.Tensor]:
    """Return the pattern of the transposed matrix, and the places of its nonzeros in the values of the
    matrix."""
    rows, columns = structure.shape
    indptr, indices = structure.arrays["indptr"], structure.arrays["indices"]
    offsets, order = counting_order(indices, columns)
    numbers = np.repeat(np.arange(rows, dtype=indices.dtype), np.diff(indptr))
    transposed = _structure(offsets, numbers[order], rows)
    return transposed, torch.from_numpy(order)
