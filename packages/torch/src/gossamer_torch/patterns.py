"""Patterns of sparse matrices: checked index arrays for kernels, made once for the tensors of a matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from gossamer_formats import Decomposition, SparseTensor, from_arrays
from gossamer_formats.internal_api import replace_values, value_array_dtype
from gossamer_ir.support.arrays import Array
from gossamer_torch.counting_sort import counting_order
from gossamer_torch.kept_results import kept_result, memoize_with
from gossamer_torch.numpy_views import dtype_name_of, shared_array
from gossamer_torch.tensor_states import TensorState, state_of


class Transposed(NamedTuple):
    """The pattern of the transposed matrix, and the places of its nonzeros in the values of the matrix."""

    structure: SparseTensor
    order: torch.Tensor


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


class CheckedPattern:
    """The checked index arrays of a matrix in CSR. They are copies, so that no write to the tensors can make
    a kernel read out of bounds. Those of tensors on a GPU are checked and transposed by the host."""

    def __init__(self, crow: torch.Tensor, col: torch.Tensor, columns: int) -> None:
        self.structure = _structure(shared_array(crow.cpu()), shared_array(col.cpu()), columns)
        self._device = col.device
        self._has_stored = False
        # Values may be passed on with another pattern, whose matrix is another one.
        self._stored_key = (_STORED, object())
        self._transposed_key = (_TRANSPOSED, object())
        self._transposed: Transposed | None = None
        self._constant: dict[bool, _ConstantValues] = {}
        self._last_states: dict[bool, TensorState] = {}
        self._tensors: dict[bool, PatternTensors] = {}
        self._masks: dict[str, SparseTensor] = {}

    def mask(self, dtype: str) -> SparseTensor:
        """Return the pattern as a matrix for operators that ignore its values, but know them by their
        dtype. The zeros are never read, so they take no memory."""
        if dtype not in self._masks:
            zeros = np.zeros(self.structure.nnz, value_array_dtype(dtype))
            self._masks[dtype] = replace_values(self.structure, zeros, dtype)
        return self._masks[dtype]

    @property
    def transposed(self) -> Transposed:
        """The transposed pattern, which is made once."""
        if self._transposed is None:
            self._transposed = _transpose(self.structure)
        return self._transposed

    def tensors(self, *, transposed: bool) -> PatternTensors:
        """Return the pattern, or the transposed one, on the device of the tensors that it was made of. It is
        copied there once."""
        if transposed not in self._tensors:
            structure, order = self.transposed if transposed else (self.structure, None)
            indptr, indices = (
                torch.from_numpy(structure.arrays[name].copy()).to(self._device)
                for name in ("indptr", "indices")
            )
            rows, columns = structure.shape
            self._tensors[transposed] = PatternTensors(
                indptr, indices, None if order is None else order.to(self._device), (rows, columns)
            )
        return self._tensors[transposed]

    def count_rows(self, *, transposed: bool) -> int:
        """Return the number of rows of the matrix, or of the transposed one."""
        rows, columns = self.structure.shape
        return columns if transposed else rows

    def matrix(self, values: torch.Tensor, *, transposed: bool) -> SparseTensor:
        """Return the matrix with these values, or the transposed one, for the kernels of a call. Values that
        stay the same from call to call have one matrix, which many products convert to a faster format."""
        if values.requires_grad or values.is_inference():
            return self.new_matrix(values, transposed=transposed)
        constant = self._constant.get(transposed)
        if constant is not None and constant.has_values(values):
            return constant.matrix
        state, last_state = state_of(values), self._last_states.get(transposed)
        self._last_states[transposed] = state
        if state != last_state:
            return self.new_matrix(values, transposed=transposed)
        copy = values.clone()
        matrix = self.new_matrix(copy, transposed=transposed)
        self._constant[transposed] = _ConstantValues(_bits_of(copy), dtype_name_of(copy), matrix)
        return matrix

    def new_matrix(self, values: torch.Tensor, *, transposed: bool) -> SparseTensor:
        """Return the matrix with values that are of one call, or the transposed one."""
        values = values.detach()
        structure = self.structure
        if transposed:
            structure, order = self.transposed
            values = values.index_select(0, order)
        return replace_values(structure, shared_array(values), dtype_name_of(values))

    def keep_stored(self, values: torch.Tensor, stored: SparseTensor | Decomposition) -> None:
        """Keep a matrix in another format, or in parts, for products with these values, until
        they are written to."""
        self._has_stored = True
        memoize_with([values], self._stored_key, lambda: stored)

    def operand(self, values: torch.Tensor, *, transposed: bool) -> SparseTensor | Decomposition:
        """Return the matrix with these values, or the transposed one, for a product: in the format that was
        kept for the values, if there is one. Then the transposed matrix is kept, too, so that repeated
        products convert it to a faster format."""
        stored: SparseTensor | Decomposition | None = None
        if self._has_stored:
            stored = kept_result([values], self._stored_key)
        if stored is None:
            return self.matrix(values, transposed=transposed)
        if not transposed:
            return stored
        return memoize_with(
            [values], self._transposed_key, lambda: self.matrix(values, transposed=True)
        )


_STORED, _TRANSPOSED = "stored", "transposed"
"""The keys of results that are kept with the values of a matrix: the same matrix in the format that it was
passed in, and the transposed one in CSR."""


def kept_pattern(crow: torch.Tensor, col: torch.Tensor, columns: int) -> CheckedPattern:
    """Return the pattern of a matrix in CSR, which is made and checked at the first call with its tensors.

    Raises `FormatError` if the offsets or the columns are not valid.
    """
    return memoize_with(
        (crow, col), ("pattern", columns), lambda: CheckedPattern(crow, col, columns)
    )


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


def _transpose(structure: SparseTensor) -> Transposed:
    rows, columns = structure.shape
    indptr, indices = structure.arrays["indptr"], structure.arrays["indices"]
    offsets, order = counting_order(indices, columns)
    numbers = np.repeat(np.arange(rows, dtype=indices.dtype), np.diff(indptr))
    transposed = _structure(offsets, numbers[order], rows)
    return Transposed(transposed, torch.from_numpy(order))
